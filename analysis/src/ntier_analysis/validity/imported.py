"""I: what can be checked of a trial that another system measured (docs/validity.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.contracts.layout import counts_of
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.validity.generator import CLIENT_BUSY_PCT
from ntier_analysis.validity.host import HOST_MEAN_PCT, HOST_P95_PCT, STEAL_MEAN_PCT
from ntier_analysis.validity.registry import SIGNIFICANT, Finding, exact, not_applicable, sampled, undecidable
from ntier_analysis.verdict.saturation import preference

CLIENTS, HOSTS = ("client", "controller"), ("host",)
NO_SERVERS = CLIENTS + HOSTS
LAW = 0.1
"""Share by which X (Z + R) may miss the users: what waiting must cost before a hidden limit is named."""
SLIP_FITS, MOST_OFF = 0.05, 0.2
"""A slip explains the users if they then fit to 5 % and two standard errors, never more than 20 %."""
SLIPS = (
    ("throughput_per_s is per minute: divide it by 60", (1 / 60, 1, 1)),
    ("throughput_per_s is per hour: divide it by 3,600", (1 / 3600, 1, 1)),
    ("throughput_per_s is in thousands, or per ms: multiply it by 1,000", (1000, 1, 1)),
    ("response_time_mean_ms is in seconds: multiply it by 1,000", (1, 1, 1000)),
    ("response_time_mean_ms is in microseconds: divide it by 1,000", (1, 1, 1 / 1000)),
    ("think_time_s is in milliseconds: divide it by 1,000", (1, 1 / 1000, 1)),
    ("think_time_s is in minutes: multiply it by 60", (1, 60, 1)),
)
"""Slips of a unit, as factors of X, Z and R."""
WRONG = 1.5
"""Factor by which X (Z + R) misses the users, from which on a number is wrong, not only few or unsettled: the smallest
slip of a unit is 60. Simulated sweeps without any fault reach 1.33 (docs/families.md)."""
VARIES = 2.0
"""Coefficient of variation of a cycle of thinking and waiting; 1 for exponential think times, more for those with long
pauses."""
MIN_RESPONSE_MS = 1.0
"""No dynamic page comes through several tiers in less: each hop alone takes 0.1 ms and more."""
HALF = 0.5
"""A share of 1 that never passes a half over WINDOW_S belongs to a node that limits nothing: it is not told from 0.5 %.
Single samples of an idle node may: noise, or a daemon."""
MIN_SAMPLES = 10
"""The least from which an interval of a saturation can be made (10 batch means)."""
DISTINCT = 10
"""Different values that the use of a CPU must have for another one that reads the same throughout to be the same: two
that idle may read 0 and 1 % alike."""
MISSING_PCT = 10.0
"""Share of missing samples from which on the verdict counts a CPU as not measured."""
SECOND_S, SECOND_PCT = 1.0, 110.0
"""Over a second a counter of ticks (10 ms) and slices (up to 50 ms, at both ends) may be ahead by a tenth."""
WINDOW_S, CAPACITY_PCT = 10.0, 103.0
"""As H3."""
SCRAPE = "scrape_s"
"""Metric that tells how long the scrape took in which a node's counters were read, s: when in it is unknown."""
COUNTS_PCT = 5.0
"""By how much two files may differ: from here on a verdict counts throughput as lost."""
ERRORS_PCT = 1.0
"""As E1."""
NOBODY = "nobody thinks under this load"
NO_THINK = 0.05
"""Users who think for less than this share of their response time do not think."""
WORKERS = "for users who never pause give --load-model work (in trials.csv: load_model = work)"


@dataclass(frozen=True)
class Imported:
    """One trial: its row, its samples and nodes, its interactions (None without), and `like_shares` of its sweep."""

    row: pd.Series
    samples: pd.DataFrame
    nodes: pd.DataFrame
    interactions: pd.DataFrame | None
    shares: dict[str, float]

    @property
    def model(self) -> LoadModel:
        told = self.row.get("load_model")
        return LoadModel(told) if told is not None and pd.notna(told) else LoadModel.CLOSED

    def number(self, name: str) -> float:
        value = self.row.get(name)
        return float("nan") if value is None or pd.isna(value) else float(value)

    @property
    def run(self) -> tuple[float, float]:
        return self.number("run_start_s"), self.number("run_end_s")

    @property
    def run_s(self) -> float:
        return self.run[1] - self.run[0]

    @cached_property
    def utilization(self) -> dict[tuple[str, str, str, str], pd.DataFrame]:
        """(node, resource, item, source) -> t_s, value in order of time, all phases."""
        rows = self.samples[self.samples["metric"] == "utilization_pct"].sort_values("t_s")
        return {key: part[["t_s", "value"]] for key, part in rows.groupby(["node", "resource", "item", "source"])}

    @cached_property
    def counted(self) -> dict[tuple[str, str, str, str], pd.DataFrame]:
        """The same without the sources that the verdict does not look at: of each resource one is left."""
        times = {key: self.in_run(part)["t_s"].to_numpy() for key, part in self.utilization.items()}
        order = sorted(times, key=lambda key: (not len(times[key]), preference(key[3], times[key])), reverse=True)
        best = {key[:3]: key for key in order}
        return {key: part for key, part in self.utilization.items() if best[key[:3]] == key}

    @cached_property
    def scrapes(self) -> dict[tuple[str, str], pd.Series]:
        """(node, source) -> how long its scrapes took, s, by time; empty where nobody told it."""
        rows = self.samples[self.samples["metric"] == SCRAPE]
        return {key: part.groupby("t_s")["value"].max() for key, part in rows.groupby(["node", "source"])}

    def in_run(self, part: pd.DataFrame) -> pd.DataFrame:
        """Without gaps."""
        return part[(part["t_s"] >= self.run[0]) & (part["t_s"] < self.run[1])].dropna(subset="value")

    def cpu_of(self, tiers: tuple[str, ...]) -> dict[str, np.ndarray]:
        """1-s means (or samples, if these are longer) of the CPUs of the tiers' nodes in the run."""
        names = set(self.nodes.loc[self.nodes["tier"].isin(tiers), "node"])
        busy = {}
        for (node, resource, _, _), part in self.counted.items():
            if node in names and resource == "cpu":
                inside = self.in_run(part)
                busy[node] = _means(inside, self.run[0], SECOND_S)
        return {node: values for node, values in busy.items() if len(values)}

    @cached_property
    def completed(self) -> pd.DataFrame | None:
        """Interactions that were completed in the run."""
        done = self.interactions
        return None if done is None else done[(done["t_s"] >= self.run[0]) & (done["t_s"] < self.run[1])]


def _means(part: pd.DataFrame, start: float, window_s: float) -> np.ndarray:
    return part.groupby(np.floor((part["t_s"] - start) / window_s))["value"].mean().to_numpy(dtype=float)


_CHECKS: list[tuple[str, str, str, Callable[[Imported], Finding]]] = []


def _check(id_: str, title: str, reason: str):
    def register(function: Callable[[Imported], Finding]) -> Callable[[Imported], Finding]:
        _CHECKS.append((id_, title, reason, function))
        return function

    return register


def checks(trial: Imported) -> list[Check]:
    """All checks; each must pass unless it says otherwise."""
    return [_outcome(trial, *entry) for entry in _CHECKS]


def _outcome(trial: Imported, id_: str, title: str, reason: str, function: Callable[[Imported], Finding]) -> Check:
    finding = function(trial)
    return Check(
        id=id_,
        title=title,
        required=True if finding.required is None else finding.required,
        outcome=finding.outcome,
        value=None if finding.value is None or not np.isfinite(finding.value) else float(finding.value),
        limit=finding.limit,
        unit=finding.unit,
        n=finding.n,
        standard_error=None if finding.standard_error is None else float(finding.standard_error),
        reason="" if finding.outcome is Outcome.PASS else reason,
        detail=finding.detail,
    )


def at_least(value: float, limit: float, unit: str, detail: str, n: int | None = None) -> Finding:
    return Finding(Outcome.PASS if value >= limit else Outcome.FAIL, value, limit, unit, n, None, detail)


# ---- the load ------------------------------------------------------------------------------------------------------


@_check("I1", "Something was completed in the run", "no_throughput")
def completed(trial: Imported) -> Finding:
    x, r = trial.number("throughput_per_s"), trial.number("response_time_mean_ms")
    if np.isnan(r) and x > 0:
        return undecidable("response_time_mean_ms is empty")
    ok = x > 0
    return Finding(Outcome.PASS if ok else Outcome.FAIL, x, 0.0, "1/s", None, None, f"throughput is {x:g}/s")


@_check("I2", "Users think between interactions", "no_think_time")
def thinking(trial: Imported) -> Finding:
    if trial.model is not LoadModel.CLOSED:
        return not_applicable(NOBODY)
    z = trial.number("think_time_s")
    text = f"think time is {z:g} s"
    if z == 0:
        text += (
            ": users who do not think wait at every load (R = N/X), so no load shows the response time without "
            f"waiting, which the knee and 'nothing limits yet' need; {WORKERS}"
        )
    return Finding(Outcome.PASS if z > 0 else Outcome.FAIL, z, 0.0, "s", None, None, text)


@_check("I3", "Users by Little's law: X (Z + R) against N", "law")
def law(trial: Imported) -> Finding:
    """A wrong unit is wrong by a factor; a run beyond the knee that has not settled, or few users who think very
    differently long, are 10 to 30 % off without any fault."""
    if trial.model is not LoadModel.CLOSED:
        return not_applicable(NOBODY)
    users, x = trial.number("users_real"), trial.number("throughput_per_s")
    z, r = trial.number("think_time_s"), trial.number("response_time_mean_ms") / 1000
    errors = trial.number("errors")
    x += errors / trial.run_s if errors > 0 else 0.0
    if not (x > 0 and r >= 0 and z > 0):
        return undecidable("throughput, response time or think time is missing or 0", required=False)
    n, ratio = x * trial.run_s, x * (z + r) / users
    text = (
        f"X (Z + R) = {x:.4g}/s x ({z:g} s + {r:.4g} s) = {x * (z + r):.4g} users, {ratio:.3g} times the {users:g} "
        f"given; with {users:g} users, N/X - R is {users / x - r:.3g} s of thinking"
    )
    if abs(ratio - 1) <= LAW:
        return Finding(Outcome.PASS, ratio - 1, LAW, "", round(n), None, text)
    if max(ratio, 1 / ratio) <= WRONG or abs(ratio - 1) <= SIGNIFICANT * VARIES * ratio / np.sqrt(n):
        why = "the run is short, or its think times vary much" if n else "no interaction"
        return undecidable(f"{text}; {why}", n=round(n), required=False)
    slip = _slip(users, x, z, r, trial.run_s)
    hint = f"it fits if {slip}" if slip else "are users, think time and units right?"
    if abs(users / x - r) < NO_THINK * r:
        hint += f"; {WORKERS}"
    return Finding(Outcome.FAIL, ratio - 1, LAW, "", round(n), None, f"{text}; {hint}")


def _slip(users: float, x: float, z: float, r: float, run_s: float) -> str:
    """The slip of a unit that explains the users best; empty if none does."""
    off, n, text = min(
        (abs(of_x * x * (of_z * z + of_r * r) / users - 1), of_x * x * run_s, text)
        for text, (of_x, of_z, of_r) in SLIPS
    )
    return text if off <= min(SLIP_FITS + 2 / np.sqrt(n), MOST_OFF) else ""


@_check("I4", "Response times are in milliseconds", "response_time_unit")
def response_unit(trial: Imported) -> Finding:
    r = trial.number("response_time_mean_ms")
    text = f"the mean response time is {r:.4g} ms"
    if r < MIN_RESPONSE_MS:
        text += ", less than any page takes: seconds? multiply by 1,000"
    return at_least(r, MIN_RESPONSE_MS, "ms", text) if np.isfinite(r) else undecidable("none", required=False)


@_check("I5", "Interactions that failed", "errors")
def failed(trial: Imported) -> Finding:
    errors, good = trial.number("errors"), trial.number("interactions")
    good = trial.number("throughput_per_s") * trial.run_s if np.isnan(good) else good
    if np.isnan(errors) or not errors + good > 0:
        return undecidable("the data do not give errors", required=False)
    share, n = errors / (errors + good), errors + good
    text = f"{errors:.0f} of {n:.0f} interactions failed"
    finding = sampled(100 * share, ERRORS_PCT, 100 * np.sqrt(share * (1 - share) / n), "pct", text, round(n))
    return finding if finding.outcome is not Outcome.UNDECIDABLE else undecidable(text, n=round(n), required=False)


@_check("I6", "interactions.csv against trials.csv: throughput", "files_differ")
def same_throughput(trial: Imported) -> Finding:
    count = None if trial.completed is None else int(trial.completed["ok"].sum())
    if count is None and np.isfinite(trial.number("interactions")):
        count = int(trial.number("interactions"))
    if count is None:
        return not_applicable("no single interactions")
    x, own = trial.number("throughput_per_s"), count / trial.run_s
    off = 100 * max(0.0, abs(own - x) * trial.run_s - 1) / max(count, 1)
    text = f"{count} successes in a run of {trial.run_s:.1f} s are {own:.4g}/s, trials.csv says {x:.4g}/s"
    return exact(off, COUNTS_PCT, "pct", text + (_times(x / own) if off > COUNTS_PCT and own else ""), count)


@_check("I7", "interactions.csv against trials.csv: mean response time", "files_differ")
def same_response(trial: Imported) -> Finding:
    if trial.completed is None:
        return not_applicable("no single interactions")
    good = trial.completed.loc[trial.completed["ok"], "response_time_ms"]
    if good.empty:
        return undecidable("no success in the run", n=0)
    r, own = trial.number("response_time_mean_ms"), float(good.mean())
    off = 100 * max(0.0, abs(r - own) - MIN_RESPONSE_MS) / own if own else float("nan")
    text = f"the mean of {len(good)} successes is {own:.4g} ms, trials.csv says {r:.4g} ms"
    return exact(off, COUNTS_PCT, "pct", text + (_times(r / own) if off > COUNTS_PCT else ""), len(good))


def _times(ratio: float) -> str:
    near = next((f for f in (60, 1000, 3600) if 0.9 < ratio / f < 1.1 or 0.9 < ratio * f < 1.1), None)
    return f": {ratio:.3g} times as much" + (f"; a factor of {near} looks like a wrong unit" if near else "")


# ---- the samples ---------------------------------------------------------------------------------------------------


@_check("I8", "Samples of utilization in the run, of the resource that has fewest", "too_few_samples")
def enough(trial: Imported) -> Finding:
    """Nodes that have no samples at all are told apart: the verdict knows of them."""
    counted = {key: len(trial.in_run(part)) for key, part in trial.counted.items()}
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    if not any(node in servers and resource == "cpu" for node, resource, _, _ in counted):
        return at_least(0, MIN_SAMPLES, "samples", "no CPU utilization (metric utilization_pct) of any server", 0)
    key = min(counted, key=lambda k: counted[k])
    n, in_all = counted[key], len(trial.utilization[key])
    text = f"{_name(key)} has {n} samples of utilization_pct in the run phase ({in_all} in all)"
    return at_least(counted[key], MIN_SAMPLES, "samples", text, sum(counted.values()))


@_check("I9", "Share of the run without samples, of the resource that has most gaps", "gaps")
def covered(trial: Imported) -> Finding:
    missing = {key: _missing_pct(trial, part) for key, part in trial.counted.items()}
    if not missing:
        return undecidable("no samples of utilization", n=0)
    key = max(missing, key=lambda k: missing[k])
    return exact(
        missing[key], MISSING_PCT, "pct", f"{_name(key)} has none for {missing[key]:.0f} % of the run", len(missing)
    )


def _missing_pct(trial: Imported, part: pd.DataFrame) -> float:
    """A sample stands for the median interval before it."""
    inside = trial.in_run(part)["t_s"].to_numpy()
    if len(inside) < 2:
        return 100.0
    interval = float(np.median(np.diff(inside)))
    edges = np.concatenate([[trial.run[0]], inside, [trial.run[1]]])
    gaps = np.diff(edges)
    return 100 * float(np.maximum(gaps - 1.5 * interval, 0.0).sum()) / trial.run_s


@_check("I10", "Utilization over 10 s against the capacity", "wrong_capacity")
def capacity(trial: Imported) -> Finding:
    return _above(trial, WINDOW_S, CAPACITY_PCT, "over 10 s")


@_check("I10.second", "Utilization over a second against the capacity", "wrong_capacity")
def capacity_second(trial: Imported) -> Finding:
    return _above(trial, SECOND_S, SECOND_PCT, "in a second")


def _above(trial: Imported, window_s: float, limit: float, said: str) -> Finding:
    worst, where, late = 0.0, "", False
    for key, part in trial.utilization.items():
        # windows from the node's first sample in the run, the last one only if it is whole
        inside = trial.in_run(part)
        if inside.empty:
            continue
        begin = float(inside["t_s"].min())
        whole = inside[inside["t_s"] < begin + window_s * max(1, (trial.run_s - 1) // window_s)]
        means, scrapes = _means(whole, begin, window_s), trial.scrapes.get((key[0], key[3]))
        if scrapes is not None:
            means = _least(means, whole, scrapes, begin, window_s)
        if len(means) and means.max() > worst:
            worst, where, late = float(means.max()), _name(key), scrapes is not None
    text = f"{where} was used {'at least ' * late}{worst:.0f} % {said}"
    text += ", whenever in its scrape a counter was read" * late
    if worst > limit:
        text += ", more than it has; is the value in percent of the whole node (not of one core) during the run?"
    return exact(worst, limit, "pct", text, len(trial.utilization))


def _least(means: np.ndarray, whole: pd.DataFrame, scrapes: pd.Series, begin: float, window_s: float) -> np.ndarray:
    """What each window was used at least: the counters at its ends were read up to half a scrape before or after their
    times, so the window may be longer than it says."""
    before = scrapes.rolling(2, min_periods=1).mean().reindex(whole["t_s"]).fillna(0.0).to_numpy()
    window = np.floor((whole["t_s"].to_numpy() - begin) / window_s)
    longest = pd.Series(before).groupby(window).max().to_numpy()
    length = max(window_s, float(np.median(np.diff(whole["t_s"]))) if len(whole) > 1 else window_s)
    return means * length / (length + longest)


@_check("I11", "Utilization of each CPU is in percent, not a share of 1", "utilization_unit")
def percent(trial: Imported) -> Finding:
    """Over the whole sweep, where others are in percent."""
    if "unit_given" in trial.samples and trial.samples["unit_given"].any():
        return not_applicable("the file says that the unit is pct")
    odd = {n: v for n, v in trial.shares.items() if n in set(trial.nodes["node"])}
    text = ", ".join(f"{n} never passes {v:g} %" for n, v in sorted(odd.items())) or "none looks like a share"
    if odd:
        text += " in the sweep: looks like a share of 1, multiply by 100 (if it is percent, put unit = pct)"
    return exact(float(len(odd)), 0.0, "nodes", text, len(trial.nodes))


def like_shares(samples: pd.DataFrame) -> dict[str, float]:
    """Node -> its largest CPU utilization, of those that never pass 1 % in a sweep but come near it over WINDOW_S."""
    cpu = samples[(samples["resource"] == "cpu") & (samples["metric"] == "utilization_pct")].dropna(subset="value")
    largest = cpu["value"].groupby(cpu["node"].astype(str)).max()
    small = cpu[cpu["node"].isin(largest.index[largest <= 1.0])]
    keys = [small["trial"].astype(str), small["node"].astype(str), np.floor(small["t_s"] / WINDOW_S).rename("window")]
    windows = small["value"].groupby(keys).agg(["mean", "count"])
    whole = windows[windows["count"] >= windows["count"].groupby(level="node").transform("max") / 2]
    sustained = whole["mean"].groupby(level="node").max()
    return {str(node): float(largest[node]) for node in sustained.index[sustained > HALF]}


def _name(key: tuple[str, str, str, str]) -> str:
    node, resource, item, _ = key
    return f"{node} {resource}" + f" ({item})" * bool(item)


# ---- the machines --------------------------------------------------------------------------------------------------


@_check("I12", "CPU of the clients, 95th percentile of 1-s means", "generator_cpu")
def clients(trial: Imported) -> Finding:
    return _busiest(trial, CLIENTS, CLIENT_BUSY_PCT, lambda v: float(np.percentile(v, 95)), "no client was measured")


@_check("I13", "Host CPU, 95th percentile of 1-s means", "host_saturated")
def host(trial: Imported) -> Finding:
    return _busiest(trial, HOSTS, HOST_P95_PCT, lambda v: float(np.percentile(v, 95)), "no host was measured")


@_check("I13.mean", "Host CPU, mean", "host_saturated")
def host_mean(trial: Imported) -> Finding:
    return _busiest(trial, HOSTS, HOST_MEAN_PCT, lambda v: float(np.mean(v)), "no host was measured")


def _busiest(trial: Imported, tiers: tuple[str, ...], limit: float, of: Callable, otherwise: str) -> Finding:
    values = {node: of(v) for node, v in trial.cpu_of(tiers).items()}
    if not values:
        return undecidable(otherwise, n=0, required=False)
    node = max(values, key=lambda n: values[n])
    return exact(values[node], limit, "pct", f"{node} was {values[node]:.0f} % busy", len(values))


@_check("I14", "Nodes that the topology does not have", "topology")
def topology(trial: Imported) -> Finding:
    told = trial.row.get("tiers")
    order = "" if told is None or pd.isna(told) else str(told)
    counts = counts_of(str(trial.row["topology"]), order, trial.nodes["tier"])
    if counts is None:
        return not_applicable("the topology is free text, or of other tiers than the nodes")
    here = trial.nodes.groupby("tier")["node"].nunique()
    more = [f"{here[t]} {t} for {n}" for t, n in counts.items() if here.get(t, 0) > n]
    text = f"{trial.row['topology']}: nodes with samples: {', '.join(more)}" if more else "none"
    return exact(float(len(more)), 0.0, "tiers", text, len(trial.nodes))


@_check("I15", "CPU stolen from a server by a hypervisor, mean", "host_robbed")
def stolen(trial: Imported) -> Finding:
    """Its CPU is full before it reads 100 %."""
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    rows = trial.samples[(trial.samples["metric"] == "steal_pct") & trial.samples["node"].isin(servers)]
    means = trial.in_run(rows).groupby("node", observed=True)["value"].mean()
    if means.empty:
        return undecidable("not measured", n=0, required=False)
    node, value = str(means.idxmax()), float(means.max())
    return exact(value, STEAL_MEAN_PCT, "pct", f"{value:.2f} % of the CPU time of {node} was stolen", len(means))


@_check("I16", "Servers whose CPU reads the same throughout: one machine under two names", "same_machine")
def twice(trial: Imported) -> Finding:
    """It would limit in both tiers at once. Replicas that were given their tier's mean are one tier's."""
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    tiers = dict(zip(trial.nodes["node"], trial.nodes["tier"], strict=True))
    first: dict[bytes, str] = {}
    pairs = []
    for (node, resource, _, _), part in sorted(trial.counted.items()):
        values = trial.in_run(part)["value"].to_numpy(float)
        if resource == "cpu" and node in servers and len(np.unique(values)) >= DISTINCT:
            other = first.setdefault(values.tobytes(), node)
            pairs += [f"{other} and {node}"] if tiers[other] != tiers[node] else []
    text = f"{', '.join(pairs)}: the same machine? give it one name, in one tier" if pairs else "none"
    return exact(float(len(pairs)), 0.0, "pairs", text, len(first))


# ---- what remains --------------------------------------------------------------------------------------------------


def not_validated(trial: Imported, *, think_time_given: bool) -> str:
    """What no check has examined, joined by '; '."""
    texts = ["whether users were late (generator lag) or died", "think times as drawn", "the mix", "clocks"]
    if not trial.cpu_of(CLIENTS):
        texts.append("the client's CPU")
    if not trial.cpu_of(HOSTS):
        texts.append("the host's CPU, stolen time and quotas")
    if trial.completed is None:
        texts.append("single interactions (throughput and response times are taken as given)")
    if np.isnan(trial.number("errors")):
        texts.append("errors")
    if not think_time_given and trial.model is LoadModel.CLOSED:
        texts.append(f"the think time ({trial.number('think_time_s'):g} s assumed)")
    if topology(trial).n == 0:
        texts.append("the topology against the nodes")
    return "; ".join(texts)


def reasons(checks: list[Check]) -> list[str]:
    """Reasons of the checks that invalidate the trial, each once."""
    return list(dict.fromkeys(c.reason for c in checks if c.required and c.outcome is not Outcome.PASS))
