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
# Every sweep of the store with its maximum, its knee and its bottleneck. A map over web, application and database nodes
# needs sweeps of several topologies; what is missing is said below.

# %%
from pathlib import Path

from IPython.display import Markdown, display
from ntier_analysis.figures import overview as figures
from ntier_analysis.overview import lacking, overview

# %% tags=["parameters"]
STORE = "results/store"

# %%
frame = overview(Path(STORE))
display(Markdown("\n\n".join(lacking(frame))))

# %%
frame[["topology", "mix", "middleware", "verdict", "bottleneck", "nominal_per_s", "at_least", "knee_users"]].round(1)

# %%
for drawing in (figures.maxima(frame), figures.reach(frame)):
    display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))
