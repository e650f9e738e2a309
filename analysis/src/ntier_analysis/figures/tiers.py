"""In which tier an interaction spends its time: a stacked bar per load."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.style import PAGE_IN, styled, thousands, tier_look

BEFORE, WEB, APP, WAITING, MIDDLEWARE, DB = (
    "before the web server", "web", "app", "waiting for a connection", "middleware", "db"
)  # fmt: skip
LEVELS = ("client", "web_log", "web_workers", "app_threads", "connections", "statements")
"""Time within a part of the system and all behind it, from the outside in; of the web server one of the two."""
BEHIND = LEVELS[1:]
"""Without one of them the client's response time is all that is known."""
LEVEL_METRICS = ["active", "waiting", "pending"]
LOOKS: dict[str, tuple[str, str]] = {
    BEFORE: ("#dddddd", "...."),
    WEB: (tier_look("web").color, ""),
    APP: (tier_look("app").color, "////"),
    WAITING: ("#f5f5f5", "xxxx"),
    MIDDLEWARE: (tier_look("middleware").color, ""),
    DB: (tier_look("db").color, r"\\\\"),
}
"""Colour and hatch: told apart without colour too."""


def levels(trial, samples: pd.DataFrame, web_ms: float | None) -> pd.DataFrame:
    """Time per interaction, ms, that is spent in a part of the system and in all behind it: level, ms, n, source.

    What no log times is read off Little's law: mean number within / completions per second. trial: a row of the
    store's trials; samples: of its run phase; web_ms: time in the web server per interaction by its access log."""
    run_s = trial.run_end_s - trial.run_start_s
    rate = (trial.interactions + trial.errors) / run_s
    rows = [("client", trial.response_time_mean_ms, int(trial.interactions), "client's log")]
    if web_ms is not None:
        rows.append(("web_log", web_ms, int(trial.interactions), "access log"))
    pool = samples[samples["resource"] == "pool"]
    workers = _mean_sum(pool[(pool["tier"] == "web") & (pool["item"] == "workers") & (pool["metric"] == "active")])
    if web_ms is None and workers:
        rows.append(("web_workers", 1000 * workers[0] / rate, workers[1], "workers in use"))
    app = pool[pool["tier"] == "app"]
    threads = _mean_sum(app[(app["item"] == "threads") & (app["metric"] == "active")])
    held = _mean_sum(app[(app["item"] == "connections") & (app["metric"] == "active")])
    waiting = _mean_sum(app[(app["item"] == "connections") & (app["metric"] == "waiting")])
    if threads:
        rows.append(("app_threads", 1000 * threads[0] / rate, threads[1], "threads in use"))
    if held:
        rows.append(("connections", 1000 * held[0] / rate, held[1], "connections in use"))
    if waiting:
        rows.append(("waiting", 1000 * waiting[0] / rate, waiting[1], "threads that wait for a connection"))
    middleware = samples[(samples["tier"] == "middleware")]
    if (middleware["metric"] == "statements_per_s").any():  # else it counts connections, not statements
        pending = _mean_sum(middleware[middleware["metric"] == "pending"])
        if pending:
            rows.append(("statements", 1000 * pending[0] / rate, pending[1], "statements pending"))
    return pd.DataFrame(rows, columns=["level", "ms", "n", "source"]).assign(trial=trial.trial, users=trial.users)


def _mean_sum(rows: pd.DataFrame) -> tuple[float, int] | None:
    """Sum over nodes and items of the mean number, and the fewest readings of one; None without any."""
    known = rows.dropna(subset=["value"])
    if known.empty:
        return None
    groups = known.groupby(["node", "item"])["value"]
    return float(groups.mean().sum()), int(groups.size().min())


def segments(levels: pd.DataFrame) -> pd.DataFrame:
    """Levels of one trial -> what lies between them: segment, ms, negative (the readings' error exceeded the time,
    which is then drawn as 0). The deepest one that is known has all behind it in its name."""
    ms = levels.set_index("level")["ms"]
    web = next((name for name in ("web_log", "web_workers") if name in ms.index), None)
    there = [name for name in ("client", web, "app_threads", "connections", "statements") if name and name in ms.index]
    own = {"client": BEFORE, "web_log": WEB, "web_workers": WEB, "app_threads": APP, "connections": MIDDLEWARE,
           "statements": DB}  # fmt: skip
    order = (BEFORE, WEB, APP, MIDDLEWARE, DB)
    waiting = float(ms.get("waiting", 0.0)) if "app_threads" in there and "connections" in there else 0.0
    rows = []
    for place, name in enumerate(there):
        deepest = place + 1 == len(there)
        value = ms[name] - (0.0 if deepest else ms[there[place + 1]]) - (waiting if name == "app_threads" else 0.0)
        first = order.index(own[name])
        last = len(order) if deepest else order.index(own[there[place + 1]])
        rows.append((order[first], value, last - first > 1 or (deepest and own[name] != DB), order[first:last]))
    if waiting:
        rows.append((WAITING, waiting, False, (WAITING,)))
    frame = pd.DataFrame(rows, columns=["segment", "ms", "joint", "parts"])
    return frame.assign(negative=frame["ms"] < 0, ms=frame["ms"].clip(lower=0))


def per_tier(levels: pd.DataFrame, trials: pd.DataFrame) -> Drawing:
    """levels: of all trials, as `levels` returns them. trials: rows of the store's trials, for the loads and validity.

    Repetitions of a load are averaged. Left: time in ms; right: its share."""
    parts = [segments(rows).assign(trial=name) for name, rows in levels.groupby("trial", sort=False)]
    table = pd.concat(parts, ignore_index=True).merge(trials[["trial", "users", "valid"]], on="trial")
    usable = table[table["valid"]] if table["valid"].any() else table
    wide = usable.pivot_table(index="users", columns="segment", values="ms", aggfunc="mean").fillna(0.0)
    names = [n for n in (DB, MIDDLEWARE, WAITING, APP, WEB, BEFORE) if n in wide.columns]
    joint = usable[usable["joint"]].drop_duplicates("segment").set_index("segment")["parts"]
    with styled():
        figure = Figure(figsize=(PAGE_IN, 2.7))
        left, right = figure.subplots(1, 2)
        place = np.arange(len(wide))
        for axes, values in ((left, wide), (right, 100 * wide.div(wide.sum(axis=1), axis=0))):
            base = np.zeros(len(wide))
            for name in names:
                color, hatch = LOOKS[name]
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
    known = set(levels["level"])
    web = "the web server's access log" if "web_log" in known else "readings of its workers in use, by Little's law"
    text = (
        f"Mean time of an interaction by part of the system. Web (from {web}) includes the wait for a thread of the "
        f"app server. App, connections and statements: from the number in use each second, by Little's law (n = "
        f"{levels['n'].min():,} readings or more per trial). Before the web server: the rest of the client's waiting "
        f"(network, a free worker). Middleware: a connection is held and no statement is pending, which includes the "
        f"app server's own work in between; scale {trials['scale'].iloc[0]:g}."
    )
    if len(joint):
        text += " The parts behind " + joint.index[-1] + " were not measured separately."
    n = int(table["negative"].sum())
    if n:
        text += f" {n} of {len(table)} parts came out below 0 by the readings' error and are drawn as 0."
    bad = sorted(set(table.loc[~table["valid"], "users"]))
    if bad and table["valid"].any():
        text += " Not drawn, since INVALID: " + ", ".join(f"{u:,}" for u in bad) + " users."
    return text
