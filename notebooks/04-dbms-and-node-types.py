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
# # Does it matter which DBMS, and which type of node?
#
# Sweeps that are alike but for the DBMS, then those that are alike but for the type of the database nodes: ratios with
# 95 % intervals; the same (shown to be within 5 %), different, or undecided.

# %%
from pathlib import Path

from IPython.display import Markdown, display
from ntier_analysis.comparison import compare
from ntier_analysis.comparison.texts import comparison_text, conclusion, table
from ntier_analysis.figures import overview as figures
from ntier_analysis.figures.comparison import ratios
from ntier_analysis.overview import lacking, overview, pairs

# %% tags=["parameters"]
STORE = "results/store"
MARGIN = 0.05  # what still counts as the same

# %%
store = Path(STORE)
frame = overview(store)
display(Markdown("\n\n".join(lacking(frame))))
drawing = figures.maxima(frame)
display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %%
for a, b in pairs(frame, "dbms") + pairs(frame, "low_cost"):
    found = compare(a, b, store, margin=MARGIN)
    display(Markdown(f"## {a} and {b}\n\n**{conclusion(found)}**\n```\n{comparison_text(found, loads=False)}\n```"))
    display(ratios(table(found), a, b, MARGIN, conclusion(found)))
