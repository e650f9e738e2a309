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
# # How many users does a topology serve, and what does one cost?
#
# Users at the knee, users whom the response-time objective still suits, and what each tier must spend per interaction.
# Prices are parameters; the search for the cheapest topology needs sweeps of several.

# %%
from pathlib import Path

from IPython.display import Markdown, display
from ntier_analysis.figures import loads
from ntier_analysis.figures import overview as figures
from ntier_analysis.overview import lacking, overview
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.tables import demands
from ntier_analysis.store.tables import sweeps

# %% tags=["parameters"]
STORE = "results/store"
PRICE_PER_NODE_HOUR = 0.10  # any currency, all nodes alike

# %%
store = Path(STORE)
frame = overview(store)
display(Markdown("\n\n".join(lacking(frame))))

# %%
drawing = figures.reach(frame)
display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %%
cost = frame[["sweep", "topology", "nodes", "nominal_per_s", "at_least", "knee_users", "users_within_slo"]].copy()
cost["per_million_interactions"] = PRICE_PER_NODE_HOUR * cost["nodes"] / (3600 * cost["nominal_per_s"]) * 1e6
cost["per_1000_users_hour"] = PRICE_PER_NODE_HOUR * cost["nodes"] / cost["users_within_slo"] * 1000
cost.round(3)

# %% [markdown]
# ## CPU per interaction of each node, and the response times behind the objective

# %%
for name in sweeps(store):
    data = read_sweep(store, name)
    drawing = loads.response_time(data.trials)
    display(Markdown(f"## {name}"), drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))
    display(demands(data).round(3))
