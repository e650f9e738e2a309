"""Did the policy choose the replica with the least pending statements? Judged from begin and end of each statement."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.statistics import distributions as stats

BATCHES = 10
"""Parts of the run phase whose shares give the interval, as for the throughput."""


@dataclass(frozen=True)
class Choices:
    """Choices of one middleware node. `pending`: statements that held a connection of each replica at the choice, shape
    (choices, replicas), by begin and end alone. `waiting`: the same and those that were chosen and had no connection
    yet: what a policy that chooses and counts in one step would see. `chosen`: index of the replica."""

    replicas: list[str]
    chosen: np.ndarray
    pending: np.ndarray
    waiting: np.ndarray


def natural(names) -> list[str]:
    """db1, db2, ..., db10: by the number at the end."""
    return sorted(set(names), key=lambda n: (re.sub(r"\d+$", "", n), int((re.findall(r"\d+$", n) or ["0"])[0])))


def rebuild(trace: pd.DataFrame, replicas: list[str], start_ns: int, end_ns: int) -> tuple[Choices, pd.DataFrame]:
    """Choices within [start_ns, end_ns), and their records. trace: `parsers.trace.middleware_trace`; records outside of
    the window count as pending. A statement is pending from its begin (exclusive) to its end (inclusive)."""
    asked = trace[trace["choice_ns"] > 0]
    chose = asked[(asked["choice_ns"] >= start_ns) & (asked["choice_ns"] < end_ns)]
    at = chose["choice_ns"].to_numpy()
    used = trace[trace["begin_ns"] > 0]
    # one that never got a connection waited for nobody knows how long: it is left out
    from_ns = used["begin_ns"].where(used["choice_ns"] == 0, used["choice_ns"])
    pending, waiting = (
        np.stack([_open(begin[rows], used["end_ns"][rows], at) for rows in _rows(used, replicas)], axis=1)
        for begin in (used["begin_ns"], from_ns)
    )
    index = {name: i for i, name in enumerate(replicas)}
    return Choices(replicas, chose["replica"].map(index).to_numpy(dtype=int), pending, waiting), chose


def _rows(used: pd.DataFrame, replicas: list[str]) -> list[np.ndarray]:
    return [(used["replica"] == name).to_numpy() for name in replicas]


def _open(begin: pd.Series, end: pd.Series, at: np.ndarray) -> np.ndarray:
    """Number of [begin, end] that are open just before each time."""
    return np.searchsorted(np.sort(begin), at, "left") - np.searchsorted(np.sort(end), at, "left")


def regret(pending: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Pending statements of the chosen replica beyond the least of all, per choice; 0 = none had fewer."""
    return pending[np.arange(len(chosen)), chosen] - pending.min(axis=1) if len(chosen) else np.zeros(0, dtype=int)


def first_of_least(pending: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Whether the choice is the first in the list of those with the least (C-JDBC's rule for ties)."""
    return chosen == pending.argmin(axis=1) if len(chosen) else np.zeros(0, dtype=bool)


def choice_table(trace: pd.DataFrame, replicas: list[str], seen: np.ndarray, start_s: float, end_s: float):
    """Counts of one middleware node in the run phase -> frame `measure, regret, n` (columns of the store's table
    choices). seen: `parsers.trace.seen_pending` of all records, shape (records, replicas)."""
    rebuilt, chose = rebuild(trace, replicas, round(start_s * 1e9), round(end_s * 1e9))
    rows: list[tuple[str, int | None, int]] = []
    for measure, vector in (("pending", rebuilt.pending), ("with_waiting", rebuilt.waiting)):
        values, counts = np.unique(regret(vector, rebuilt.chosen), return_counts=True)
        rows += [(measure, int(v), int(n)) for v, n in zip(values, counts, strict=True)]
    looked = seen[chose.index.to_numpy()]
    asked = ~np.isnan(looked)
    rows += [
        ("first_of_least", None, int(first_of_least(rebuilt.pending, rebuilt.chosen).sum())),
        ("ties", None, int(((rebuilt.pending == rebuilt.pending.min(axis=1, keepdims=True)).sum(axis=1) > 1).sum())),
        ("seen", None, int(asked.sum())),
        ("seen_confirmed", None, int((looked[asked] == rebuilt.pending[asked]).sum())),
        ("never_begun", None, int((chose["begin_ns"] == 0).sum())),
        ("lost", None, int(trace["number"].iloc[-1] - trace["number"].iloc[0] + 1 - len(trace)) if len(trace) else 0),
    ]
    return pd.DataFrame(rows, columns=["measure", "regret", "n"]).astype({"regret": "Int64"})


def replica_shares(rates: pd.DataFrame, start_s: float, end_s: float) -> pd.DataFrame:
    """rates: t_s, item (replica), value (statements per s) of one trial, of one or several middlewares -> frame
    `item, share, low, high, per_s`: share of all statements of the run phase with its 95 % interval (Student's t over
    the shares of 10 parts of the run, which respects that neighbouring seconds are alike)."""
    run = rates[(rates["t_s"] >= start_s) & (rates["t_s"] < end_s)].dropna(subset=["value"])
    names = natural(run["item"])
    part = np.minimum(((run["t_s"] - start_s) / (end_s - start_s) * BATCHES).astype(int), BATCHES - 1)
    sums = run.groupby([part.rename("part"), "item"])["value"].sum().unstack("item").reindex(columns=names).fillna(0)
    totals = sums.sum(axis=1)
    parts = sums[totals > 0].div(totals[totals > 0], axis=0)
    share = sums.sum() / totals.sum() if totals.sum() > 0 else sums.sum() * np.nan
    reach = stats.t.ppf(0.975, len(parts) - 1) * parts.std() / np.sqrt(len(parts)) if len(parts) > 1 else np.nan
    seconds = max(run["t_s"].round().nunique(), 1)
    return (
        pd.DataFrame(
            {"share": share, "low": (share - reach).clip(0, 1), "high": (share + reach).clip(0, 1)}
            | {"per_s": run.groupby("item")["value"].sum().reindex(names) / seconds}
        )
        .rename_axis("item")
        .reset_index()
    )


def regret_summary(choices: pd.DataFrame) -> pd.Series:
    """Rows of the store's table choices of one trial (all its middlewares) -> choices, least, least_waiting and
    first_of_least (shares 0..1), regret_mean, regret_p99, regret_max, seen_confirmed (share), lost."""
    by = choices.groupby("measure")["n"].sum()
    total = int(by.get("pending", 0))
    numbers = {"choices": total, "lost": int(by.get("lost", 0)), "never_begun": int(by.get("never_begun", 0))}
    for name, measure in (("least", "pending"), ("least_waiting", "with_waiting")):
        rows = choices[choices["measure"] == measure]
        numbers[name] = rows.loc[rows["regret"] == 0, "n"].sum() / total if total else np.nan
    rows = choices[choices["measure"] == "pending"].groupby("regret")["n"].sum().sort_index()
    numbers["regret_mean"] = float((rows.index.astype(float) * rows).sum() / total) if total else np.nan
    numbers["regret_p99"] = float(rows.index[(rows.cumsum() >= 0.99 * total).to_numpy().argmax()]) if total else np.nan
    numbers["regret_max"] = float(rows.index.max()) if total else np.nan
    numbers["first_of_least"] = by.get("first_of_least", 0) / total if total else np.nan
    numbers["seen_confirmed"] = by.get("seen_confirmed", 0) / by["seen"] if by.get("seen", 0) else np.nan
    return pd.Series(numbers)
