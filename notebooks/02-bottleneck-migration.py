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
# # Which resource limits, and does it change with the load?
#
# The verdict of every load, the saturation behind it, and the changes from one load to the next. A change from one
# topology to the next is in 03.

# %%
from pathlib import Path

import pandas as pd
from IPython.display import Markdown, display
from ntier_analysis.figures import loads
from ntier_analysis.report import words
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.tables import demands, trial_rows
from ntier_analysis.store.tables import sweeps

# %% tags=["parameters"]
STORE = "results/store"
SWEEP = ""  # empty: the first sweep of the store

# %%
store = Path(STORE)
data = read_sweep(store, SWEEP or sweeps(store)[0])
display(Markdown(f"**{words.verdict_sentence(data.verdict, data.scale)}**"))
display(Markdown("; ".join(words.migrations(data.verdict)) or "The bottleneck does not change over the loads."))

# %% [markdown]
# ## Verdict of each load
# Saturation is the share of the run at or above 95 % of a node's capacity, with its 95 % interval.

# %%
pd.DataFrame(trial_rows(data))[["users", "valid", "throughput", "mean", "hot", "saturation", "verdict"]]

# %% [markdown]
# ## Utilization and saturation over the users

# %%
cpu = data.saturation[data.saturation["resource"] == "cpu"]
for drawing in (loads.utilization(cpu, data.scale), loads.throughput(data.trials, data.plateau)):
    display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## Which would be next?
# The node with the largest demand for CPU per interaction saturates first, the next one when that is relieved.

# %%
demands(data).round(3)
