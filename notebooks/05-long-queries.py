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
# # Are a few long queries what users wait for?
#
# Share of all response time that each interaction takes, at the lowest, a middle and the highest load of every sweep.
# At the lowest load nothing waits, so its response times are the interactions' own; at the highest they are queueing.

# %%
from pathlib import Path

from IPython.display import Markdown, display
from ntier_analysis.figures.interactions import by_interaction, long_interactions
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.drawings import telling_trials
from ntier_analysis.store.tables import sweeps

# %% tags=["parameters"]
STORE = "results/store"
MIX = "browse_only"

# %%
store = Path(STORE)
found = [read_sweep(store, name) for name in sweeps(store)]

# %%
for data in [d for d in found if MIX in set(d.trials["mix"])]:
    display(Markdown(f"## {data.sweep}"))
    for trial in telling_trials(data.trials[data.trials["valid"]], data.verdict["knee_users"]).itertuples():
        drawing = long_interactions(data.interactions, trial.trial, trial.users)
        display(drawing, Markdown(f"**{drawing.finding}** {drawing.caption}"))

# %% [markdown]
# ## Do long reads turn the balancer?
#
# What moves with the disk of each database, second by second: a queue that grows, statements and CPU that fall are the
# study's section 4 (a balancer that counts running statements turns to the other replicas).

# %%
for data in found:
    lines = [f"* {trial}: {chain.text}" for trial, chains in data.chains.items() for chain in chains]
    display(Markdown(f"{data.sweep}\n\n" + ("\n".join(lines) or "nothing moves with the disk of a database")))

# %% [markdown]
# ## All interactions of each sweep's lowest load

# %%
for data in found:
    lowest = data.trials[data.trials["valid"]].iloc[0]
    display(Markdown(f"{data.sweep}, {lowest['users']:,} users"))
    display(by_interaction(data.interactions[data.interactions["trial"] == lowest["trial"]]).round(3))
