# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where do the nodes spend their time?
#
# Density of every node's CPU utilization over the users, as in Figure 1 of the paper, and beside it the saturation: the
# share of samples at or above 95 %. The densities only show; the verdict comes from the counted shares.

# %%
from pathlib import Path

from IPython.display import Markdown, display
from ntier_analysis.figures import loads
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.drawings import density_figures
from ntier_analysis.report.tables import hottest
from ntier_analysis.report.words import verdict_sentence
from ntier_analysis.store.tables import sweeps

# %% tags=["parameters"]
STORE = "results/store"
SWEEP = ""  # empty: the first sweep of the store

# %%
store = Path(STORE)
data = read_sweep(store, SWEEP or sweeps(store)[0])
display(Markdown(f"**{verdict_sentence(data.verdict, data.scale)}**"))

# %% [markdown]
# ## Throughput
# Does it follow N/(Z+R), and from where on does it not?

# %%
rate = loads.throughput(data.trials, data.plateau)
display(rate, Markdown(rate.finding))

# %% [markdown]
# ## Densities
# The node that limits first, as a surface and as a map; then every other node as a map, each with its own colours.

# %%
for pair in density_figures(data):
    display(pair.drawing, Markdown(f"**{pair.drawing.finding}** {pair.drawing.caption}"))

# %% [markdown]
# ## The numbers behind it

# %%
shown = [
    "users",
    "node",
    "resource",
    "utilization_mean_pct",
    "saturation",
    "saturation_low",
    "saturation_high",
    "n_effective",
]
hottest(data)[shown].sort_values("users").round(2)
