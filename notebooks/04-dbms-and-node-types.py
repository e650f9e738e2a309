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
# This page compares sweeps that differ only in the DBMS, then sweeps that differ only in the type of the database
# nodes. Each ratio has a 95 % interval and one of three outcomes: the same (shown to be within 5 %), different, or
# undecided.

# %%
import ntier_analysis as na
from IPython.display import Markdown, display

# %% tags=["parameters"]
STORE = "results/store"
MARGIN = 0.05  # what still counts as the same

# %%
store = na.Store(STORE)
display(Markdown("\n\n".join(store.missing)))
drawing = store.maxima()
display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %%
for a, b in store.pairs("dbms") + store.pairs("low_cost"):
    both = store.compare(a, b, margin=MARGIN)
    display(Markdown(f"## {a} and {b}\n\n**{both.conclusion}**\n```\n{both.text(loads=False)}\n```"), both.figure())
