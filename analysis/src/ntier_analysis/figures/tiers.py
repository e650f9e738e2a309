"""In which tier an interaction spends its time: a stacked bar per load."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ntier_analysis.described import order_of
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.style import PAGE_IN, styled, thousands, tier_look
from ntier_analysis.wording import join

CLIENT, WAITING = "client", "waiting for a connection"
IN_PROGRESS = ("workers", "threads")
"""Pools of which each interaction in the tier takes a place."""
HELD = "connections"
"""The pool of those that a tier opens to the next one. It tells how many wait for it; what a tier accepts is counted
under the same name, but nobody waits there."""
LOGGED, HELD_IN_USE, PENDING = "its access log", f"{HELD} in use", "statements pending"
LEVEL_METRICS = ["active", "waiting", "pending"]
AROUND: dict[str, tuple[str, str]] = {"before": ("#dddddd", "...."), WAITING: ("#f5f5f5", "xxxx")}
"""Colour and hatch of what is in no tier: told apart without colour too, as are the tiers."""
HATCHES = ("", "////", "", r"\\\\")
"""Of the tiers, from the users inwards."""


def before(order: tuple[str, ...]) -> str:
    """What is neither in a tier nor behind one."""
    return f"before {order[0]}"


def levels(trial, samples: pd.DataFrame, logged_ms: float | None, order: tuple[str, ...]) -> pd.DataFrame:
    """Time per interaction, ms, that is spent in a tier and in all behind it (`client`: in all): level, ms, n, source;
    `waiting_ms`: what of a tier's is the wait for a connection to the next one.

    What no log times is read off Little's law: mean number within / completions per second. trial: a row of the
    store's trials; samples: of its run phase; logged_ms: time in the first tier per interaction by its access log;
    order: the tiers from the users inwards."""
    rate = (trial.interactions + trial.errors) / (trial.run_end_s - trial.run_start_s)
    rows = [(CLIENT, trial.response_time_mean_ms, int(trial.interactions), "client's log", 0.0)]
    parts = dict(iter(samples.groupby("tier", observed=True)))
    none = samples.head(0)
    if logged_ms is not None:
        rows.append((order[0], logged_ms, int(trial.interactions), LOGGED, 0.0))
    for depth, tier in enumerate(order):
        held = _pool(parts.get(tier, none), HELD, "waiting")
        waiting_ms = 1000 * held[0] / rate if held else 0.0
        if rows[-1][0] == tier:  # logged
            rows[-1] = (*rows[-1][:-1], waiting_ms)
            continue
        found = _within(parts.get(tier, none), parts.get(order[depth - 1], none) if depth else none)
        if found:
            (number, n), source = found
            rows.append((tier, 1000 * number / rate, n, source, waiting_ms))
    columns = ["level", "ms", "n", "source", "waiting_ms"]
    return pd.DataFrame(rows, columns=columns).assign(trial=trial.trial, users=trial.users)


def _within(tier: pd.DataFrame, above: pd.DataFrame) -> tuple[tuple[float, int], str] | None:
    """Mean number in a tier and behind it, its readings, and what was read: of the tier itself, else of the one above,
    which counts what it has asked and not got. `above`: samples of that tier."""
    for item in IN_PROGRESS:
        if found := _pool(tier, item, "active"):
            return found, f"{item} in use"
    if (above["metric"] == "statements_per_s").any():  # else it counts connections, not statements
        if found := _mean_sum(above[above["metric"] == "pending"]):
            return found, PENDING
    elif _pool(above, HELD, "waiting") and (found := _pool(above, HELD, "active")):
        return found, HELD_IN_USE
    return None


def _pool(tier: pd.DataFrame, item: str, metric: str) -> tuple[float, int] | None:
    return _mean_sum(tier[(tier["resource"] == "pool") & (tier["item"] == item) & (tier["metric"] == metric)])


def _mean_sum(rows: pd.DataFrame) -> tuple[float, int] | None:
    """Sum over nodes and items of the mean number, and the fewest readings of one; None without any."""
    known = rows.dropna(subset=["value"])
    if known.empty:
        return None
    groups = known.groupby(["node", "item"])["value"]
    return float(groups.mean().sum()), int(groups.size().min())


def segments(levels: pd.DataFrame, order: tuple[str, ...]) -> pd.DataFrame:
    """Levels of one trial -> what lies between them: segment, ms, negative (the readings' error exceeded the time,
    which is then drawn as 0). The deepest one that is known has all behind it in its name."""
    there = levels.set_index("level").reindex([level for level in (CLIENT, *order) if level in set(levels["level"])])
    names = (before(order), *order)
    place = [0 if level == CLIENT else 1 + order.index(level) for level in there.index]
    ends = [*place[1:], len(names)]
    inner = [*there["ms"].iloc[1:], 0.0]
    # without the level behind, its wait is not told apart from the work there
    waits = [wait if end < len(names) else 0.0 for wait, end in zip(there["waiting_ms"], ends, strict=True)]
    rows = []
    for first, last, ms, behind, wait in zip(place, ends, there["ms"], inner, waits, strict=True):
        rows.append((names[first], ms - behind - wait, last - first > 1, names[first:last]))
    if any(waits):
        rows.append((WAITING, sum(waits), False, (WAITING,)))
    frame = pd.DataFrame(rows, columns=["segment", "ms", "joint", "parts"])
    return frame.assign(negative=frame["ms"] < 0, ms=frame["ms"].clip(lower=0))


def per_tier(levels: pd.DataFrame, trials: pd.DataFrame) -> Drawing:
    """levels: of all trials, as `levels` returns them. trials: rows of the store's trials, for the tiers, the loads and
    validity.

    Repetitions of a load are averaged. Left: time in ms; right: its share."""
    order = order_of(trials)
    parts = [segments(rows, order).assign(trial=name) for name, rows in levels.groupby("trial", sort=False)]
    table = pd.concat(parts, ignore_index=True).merge(trials[["trial", "users", "valid"]], on="trial")
    usable = table[table["valid"]] if table["valid"].any() else table
    wide = usable.pivot_table(index="users", columns="segment", values="ms", aggfunc="mean").fillna(0.0)
    looks = {tier: (tier_look(tier).color, HATCHES[depth % len(HATCHES)]) for depth, tier in enumerate(order)}
    looks |= {before(order): AROUND["before"], WAITING: AROUND[WAITING]}
    names = [name for name in _from_within(levels, order) if name in wide.columns]
    joint = usable[usable["joint"]].drop_duplicates("segment").set_index("segment")["parts"]
    with styled():
        figure = Figure(figsize=(PAGE_IN, 2.7))
        left, right = figure.subplots(1, 2)
        place = np.arange(len(wide))
        for axes, values in ((left, wide), (right, 100 * wide.div(wide.sum(axis=1), axis=0))):
            base = np.zeros(len(wide))
            for name in names:
                color, hatch = looks[name]
                look = {"color": color, "hatch": hatch, "edgecolor": "0.4" if name == WAITING else "white"}
                axes.bar(place, values[name], bottom=base, linewidth=0.4, width=0.78, label=_label(name, joint), **look)
                base = base + values[name].to_numpy()
            axes.set_xticks(place, [thousands(u) for u in wide.index], rotation=45 if len(wide) > 9 else 0)
            axes.set_xlabel(axis_label())
            axes.grid(False, axis="x")
        left.set_ylabel("mean time per interaction [ms]")
        left.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:,.10g}"))
        right.set(ylabel="share of the response time [%]", ylim=(0, 100))
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=min(len(names), 3))
    data = table.drop(columns="parts").merge(levels.groupby("trial")["n"].min().rename("n"), on="trial")
    return Drawing("time-per-tier", figure, _finding(wide, names), _caption(levels, table, joint, trials), data)


def _from_within(levels: pd.DataFrame, order: tuple[str, ...]) -> list[str]:
    """What is stacked, the deepest tier first; the wait for a connection before the tier that makes it."""
    waiting = [order.index(tier) for tier in levels.loc[levels["waiting_ms"] > 0, "level"]]
    behind = max(waiting, default=0) + 1
    return [*order[behind:][::-1], WAITING, *order[:behind][::-1], before(order)]


def _label(name: str, joint: pd.Series) -> str:
    if name not in joint.index:
        return name
    parts = joint[name]
    return f"{' + '.join(parts)}: not separated" if len(parts) <= 2 else f"{parts[0]} and all behind it: not separated"


def _finding(wide: pd.DataFrame, names: list[str]) -> str:
    last = wide.iloc[-1]
    top = max(names, key=lambda n: last[n])
    return (
        f"At {wide.index[-1]:,} users an interaction takes {last.sum():,.0f} ms; the largest part, "
        f"{100 * last[top] / last.sum():.0f} %, is spent here: {top}."
    )


def _caption(levels: pd.DataFrame, table: pd.DataFrame, joint: pd.Series, trials: pd.DataFrame) -> str:
    order = order_of(trials)
    known = levels[levels["level"] != CLIENT].drop_duplicates("level").set_index("level")["source"]
    told = [f"{tier} by {known[tier]}" for tier in order if tier in known]
    n, scale = levels["n"].min(), trials["scale"].iloc[0]
    text = (
        f"Mean time of an interaction by tier: {join(told)}; scale {scale:g}. Numbers in use or pending, read each "
        f"second, give times by Little's law (n = {n:,} readings or more per trial). A tier's time includes the wait "
        f"for a free thread of the next one. {before(order).capitalize()}: the rest of the client's waiting (network, "
        "a free worker)."
    )
    for tier in [tier for tier in order if known.get(tier) == HELD_IN_USE]:
        above = order[order.index(tier) - 1]
        text += f" {tier}: a connection to it is held, which includes what {above} does meanwhile."
    if len(joint):
        text += " The parts behind " + joint.index[-1] + " were not measured separately."
    n = int(table["negative"].sum())
    if n:
        text += f" {n} of {len(table)} parts came out below 0 by the readings' error and are drawn as 0."
    bad = sorted(set(table.loc[~table["valid"], "users"]))
    if bad and table["valid"].any():
        text += " Not drawn, since INVALID: " + ", ".join(f"{u:,}" for u in bad) + " users."
    return text
