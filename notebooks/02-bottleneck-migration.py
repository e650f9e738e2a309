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
# This page shows the verdict of every load, the saturation behind it, and the changes from one load to the next.
# Notebook 03 shows how the bottleneck changes from one topology to the next.

# %%
import ntier_analysis as na
from IPython.display import Markdown, display

# %% tags=["parameters"]
STORE = "results/store"
SWEEP = ""  # empty: the first sweep of the store

# %%
store = na.Store(STORE)
sweep = store.sweep(SWEEP)
display(sweep.verdict)
display(Markdown(sweep.verdict.migration_sentence))

# %% [markdown]
# ## Verdict of each load
# The columns on the right show the server and resource that was saturated most: the share of the run at or above 95 %
# of its capacity, with a 95 % interval.

# %%
hot = sweep.hottest[["node", "resource", "saturation", "saturation_low", "saturation_high"]]
sweep.verdict.trials.drop(columns=["evidence", "verdict"]).set_index("trial").join(hot).round(3)

# %% [markdown]
# ## Utilization and saturation over the users

# %%
for drawing in sweep.figures("utilization", "throughput"):
    display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## Which node would limit next?
# A node with a `reason` comes first: its loads do not tell at which throughput its CPU is full, so it may limit before
# all others (one that is full at all loads but one does). Of the other nodes, the one whose CPU is full at the lowest
# throughput (`full_at_per_s`) saturates first. When it is relieved, the next one does.

# %%
sweep.demands.round(3)
