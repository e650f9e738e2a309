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
# # What do the topologies reach, and where is the bottleneck of each?
#
# This page shows every sweep of the store with its maximum, its knee and its bottleneck, and maps over application and
# database nodes. Maps need two topologies or more. The text below says what is missing.

# %%
import ntier_analysis as na
from IPython.display import Markdown, display

# %% tags=["parameters"]
STORE = "results/store"

# %%
store = na.Store(STORE)
display(Markdown("\n\n".join(store.missing)))

# %%
shown = ["topology", "mix", "middleware", "verdict", "bottleneck", "nominal_per_s", "at_least", "knee_users"]
store.overview[shown].round(1)

# %%
for drawing in (store.maxima(), store.reach()):
    display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## Maps
# The maps show what limits each topology, which neighbours reach the same throughput, how throughput grows with nodes,
# and what it costs.

# %%
for maps in store.maps:
    display(maps)
    for drawing in maps.figures:
        display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))
    display(maps.table.round(2))
