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
# # Do users wait for a few long queries?
#
# The figures show the share of all response time that each interaction takes, at the lowest, a middle and the highest
# load of every sweep. Where the lowest load is far below the knee, nearly nothing waits there, and each response time
# is what the interaction itself needs. Far beyond the knee most of the response time is waiting.

# %%
import ntier_analysis as na
from IPython.display import Markdown, display

# %% tags=["parameters"]
STORE = "results/store"
MIX = "browse_only"

# %%
store = na.Store(STORE)

# %%
for sweep in (s for s in store if MIX in set(s.trials["mix"])):
    display(Markdown(f"## {sweep.name}"))
    for drawing in sweep.long_interactions():
        display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## Do long reads turn the balancer?
#
# The list shows what rises or falls with the disk of each database, second by second. Section 4 of the study describes
# a queue that grows while statements and CPU fall: the balancer, which counts running statements, then prefers the
# other replicas.

# %%
for sweep in store:
    display(Markdown(f"{sweep.name}\n\n" + "\n".join(f"* {text}" for text in sweep.chains)))

# %% [markdown]
# ## All interactions of each sweep's lowest load

# %%
for sweep in (s for s in store if s.trials["valid"].any()):
    display(Markdown(sweep.name), sweep.by_interaction().round(3))
