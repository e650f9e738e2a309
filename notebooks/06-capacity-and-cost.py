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
# # How many users does a topology serve, and what does it cost?
#
# This page shows the users at the knee, the most users within the response-time objective, and the CPU that each tier
# spends per interaction. Prices are parameters. The search for the cheapest topology needs sweeps of several
# topologies.

# %%
import ntier_analysis as na
from IPython.display import Markdown, display

# %% tags=["parameters"]
STORE = "results/store"
PRICE_PER_NODE_HOUR = 0.10  # any currency, all nodes alike

# %%
store = na.Store(STORE)
display(Markdown("\n\n".join(store.missing)))

# %%
drawing = store.reach()
display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %%
columns = ["sweep", "topology", "nodes", "nominal_per_s", "at_least", "knee_users", "users_within_slo"]
cost = store.overview[columns].copy()
cost["nodes"] = cost["nodes"].astype(float)  # none where a topology has another notation
cost["per_million_interactions"] = PRICE_PER_NODE_HOUR * cost["nodes"] / (3600 * cost["nominal_per_s"]) * 1e6
cost["per_1000_users_hour"] = PRICE_PER_NODE_HOUR * cost["nodes"] / cost["users_within_slo"] * 1000
cost.round(3)

# %% [markdown]
# ## CPU per interaction of each node, and the response times behind the objective

# %%
for sweep in store:
    display(Markdown(f"## {sweep.name}"))
    for drawing in sweep.figures("response-time"):
        display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))
    display(sweep.demands.round(3))
