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
# The figures show the density of every node's CPU utilization over the users, as in Figure 1 of the paper. Beside it
# stands the saturation: the share of samples at or above 95 %. The verdict comes from these counted shares. The
# densities are only pictures.

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

# %% [markdown]
# ## Throughput
# Up to which load does throughput follow N/(Z+R)?

# %%
for rate in sweep.figures("throughput"):
    display(rate, Markdown(rate.finding))

# %% [markdown]
# ## Densities
# The node that limits comes first, as a surface and as a map. Every other node follows as a map with its own colours.

# %%
for drawing in sweep.densities():
    display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## The numbers behind it

# %%
shares = ["saturation", "saturation_low", "saturation_high", "n_effective"]
sweep.hottest[["users", "node", "resource", "utilization_mean_pct", *shares]].sort_values("users").round(2)
