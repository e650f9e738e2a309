"""The numbers that an expectation may name, each with its interval. What is not known has no interval, or an open one:
it then cannot make an expectation hold."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.implied import USERS
from ntier_analysis.described import factor_of, order_of, servers_of
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.cores import cores
from ntier_analysis.expectation.loads import AT_LOAD, NO_TRIAL, at_load, trials_at
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity, mean_of_trials, measured
from ntier_analysis.expectation.saturations import saturation
from ntier_analysis.expectation.with_disk import with_disk
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.throughput import at_load as of_load
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from ntier_analysis.wording import counted

ALLOWED = (
    "max_throughput",
    "knee_users",
    "saturation(db cpu)",
    "invalid_trials",
    *(f"{n}(USERS)" for n in AT_LOAD),
    "mean_throughput",
    "cores(web)",
    "with_disk(USERS queue up)",
)
NAMES = tuple(n.partition("(")[0] for n in ALLOWED)


@dataclass(frozen=True)
class Facts:
    """One sweep: its verdict (the JSON of contract 5), `beyond_knee` (nominal users of each trial that the verdict is
    of), its trials, and where the rest is stored."""

    verdict: dict
    beyond_knee: tuple[int, ...]
    trials: pd.DataFrame
    store: Path

    @property
    def sweep(self) -> str:
        return self.verdict["sweep"]

    @property
    def named(self) -> str:
        """`single db cpu`, `multi alternating db cpu and app cpu`."""
        kind = self.verdict["kind"] if self.verdict["verdict"] == "multi" else ""
        names = " and ".join(f"{b['tier']} {b['resource']}" for b in self.verdict["bottlenecks"])
        return " ".join(filter(None, [self.verdict["verdict"], kind, names]))

    @property
    def day(self) -> str:
        """Of its last trial, UTC."""
        return datetime.fromtimestamp(self.trials["run_end_s"].max(), UTC).date().isoformat()

    def table(self, name: str, columns: list[str] | None = None) -> pd.DataFrame:
        return read_table(self.store, name, self.sweep, columns=columns)

    @property
    def order(self) -> tuple[str, ...]:
        return order_of(self.trials)

    def servers(self, trials: list[str]) -> dict[str, int]:
        """Nodes of each tier: by the topology, or by the table of nodes if that lists more."""
        nodes = self.table("nodes", ["trial", "node", "tier"])
        return servers_of(self.trials, nodes[nodes["trial"].isin(trials)])


def read_facts(store: Path, sweeps: list[str]) -> dict[str, Facts]:
    """Facts of the sweeps named, or of all. Raises DataError for an unknown one."""
    return {
        v.sweep: Facts(as_json(v), v.plateau_users, read_table(store, "trials", v.sweep), store)
        for v in verdicts(store, sweeps)
    }


def quantity(name: str, args: str | None, facts: Facts, text: str) -> Quantity:
    """Raises DataError where the argument is missing or names nothing."""
    if name in AT_LOAD:
        return at_load(name, args, facts.trials, lambda: facts.table("interactions"), text)
    if name == "saturation":
        return _saturation(args, facts, text)
    if name == "cores":
        return _cores(args, facts, text)
    if name == "with_disk":
        return with_disk(args, facts.trials, facts.store, facts.sweep, text)
    if args is not None:
        raise DataError(f"expectation {text!r}: {name} takes no argument")
    if name == "invalid_trials":
        return invalid_trials(facts.trials)
    if name == "mean_throughput":
        return mean_throughput(facts.trials)
    found = maximum(facts.verdict) if name == "max_throughput" else knee(facts.verdict)
    trials = len(facts.beyond_knee)
    return replace(found, freedom=trials - 1 if trials > 1 else BATCHES - 1)


def _saturation(args: str | None, facts: Facts, text: str) -> Quantity:
    """`db cpu` or `db1 cpu`: of the decisive trials; `4000 db cpu`: of those at one load."""
    load, _, rest = (args or "").strip().partition(" ")
    at_one = bool(re.fullmatch(r"[\d.]+", load))
    if at_one:
        rows = trials_at("saturation", load, facts.trials, text)
        trials, where = [str(t) for t in rows["trial"]], f"{counted(len(rows), 'trial')} at {load}"
    else:
        (trials, where), rest = decisive_trials(facts), args or ""
    table, listed = facts.table("saturation"), facts.table("nodes", ["node", "tier"])
    nodes = {str(n): str(t) for frame in (listed, table) for n, t in zip(frame["node"], frame["tier"], strict=True)}
    found = saturation(rest, table, facts.servers(trials), trials, where, text, facts.order, nodes)
    return found if trials else replace(found, note=NO_TRIAL if at_one else where)


def _cores(tier: str | None, facts: Facts, text: str) -> Quantity:
    """Of the decisive trials; a lower bound where the maximum is one."""
    trials, where = decisive_trials(facts)
    wanted = [("metric", "==", "used_cores"), ("phase", "==", "run")]
    used = read_table(facts.store, "samples", facts.sweep, columns=["trial", "tier", "node", "value"], filters=wanted)
    limits = any((b["tier"], b["resource"]) == (tier, "cpu") for b in facts.verdict["bottlenecks"])
    servers = facts.servers(trials)
    mine = {name: servers[name] for name in facts.order if name in servers}
    found = cores(tier, used[used["trial"].isin(trials)], mine, limits, where, text)
    if not trials:
        return replace(found, note=where)
    return found if math.isnan(found.value) else _at_least(found, facts.verdict)


def mean_throughput(trials: pd.DataFrame) -> Quantity:
    """Of all valid trials of a sweep, whose loads must all lie on one side of the knee for it to mean something: an
    anchor's all lie beyond. The trials are the sample; three that agree by chance are known no better than each is."""
    valid = trials[trials["valid"].fillna(False).astype(bool)].dropna(subset=["throughput_per_s"])
    if valid.empty:
        return Quantity(math.nan, *UNKNOWN, "there is no valid trial")
    values, low, high = (valid[f"throughput{end}_per_s"].to_numpy(dtype=float) for end in ("", "_low", "_high"))
    note = f"mean of {counted(len(values), 'trial')}"
    return measured(of_load(values, low, high), note) if len(values) > 1 else mean_of_trials(values, note)


def invalid_trials(trials: pd.DataFrame) -> Quantity:
    """A trial whose validity is unknown may be valid or invalid."""
    if trials.empty:
        return Quantity(math.nan, *UNKNOWN, "there is no trial")
    unknown = int(trials["valid"].isna().sum())
    n = float((~trials["valid"].dropna().astype(bool)).sum())
    return Quantity(n, n, n + unknown, f"not known of {unknown}" if unknown else f"of {counted(len(trials), 'trial')}")


def maximum(verdict: dict) -> Quantity:
    value = verdict["max_throughput_per_s"]
    if value is None:
        return Quantity(math.nan, *UNKNOWN, "there is no valid trial")
    low, high = verdict["max_throughput_interval"]
    return _at_least(Quantity(value, low, high), verdict)


def knee(verdict: dict) -> Quantity:
    value = verdict["knee_users"]
    if value is None:
        return Quantity(math.nan, *UNKNOWN, "no knee is known")
    return _at_least(Quantity(value, *verdict["knee_interval"]), verdict)


def _at_least(measured: Quantity, verdict: dict) -> Quantity:
    """If the value is a lower bound, only the lower end of its interval is known."""
    if not verdict["max_throughput_at_least"]:
        return measured
    high = None if measured.low is None else math.inf
    return Quantity(measured.value, measured.low, high, "a lower bound: too few loads beyond the knee")


def decisive_trials(facts: Facts) -> tuple[list[str], str]:
    """The valid trials beyond the knee, else those of the highest valid load; and in words which these are. None, and
    why, of a sweep over another factor: its values are judged one by one, and all have the same users."""
    valid = facts.trials[facts.trials["valid"].fillna(False).astype(bool)]
    factor, _ = factor_of(facts.trials)
    if factor != USERS and valid["factor_value"].nunique() > 1:
        return [], f"the sweep is over {factor}: name a value before the tier"
    if valid.empty:
        return [], "there is no valid trial"
    loads = sorted(set(facts.beyond_knee)) or sorted(valid["users"].unique())[-1:]
    chosen = valid[valid["users"].isin(loads)]
    users = ", ".join(str(int(u)) for u in np.unique(chosen["users"]))
    return [str(t) for t in chosen["trial"]], f"{counted(len(chosen), 'trial')}, {users} users"
