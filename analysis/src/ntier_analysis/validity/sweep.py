"""O1, O3, O4, W2, W5-W8, H7.sweep, S1.sweep, S2.sweep: do the trials of one sweep fit together? Tables of the store in,
checks out; imported sweeps too, with what they have. None is required: they warn. Rules: docs/validity.md."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import system_of
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics import stationarity
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.validity.lines import Line, Points, fit, left_out
from ntier_analysis.validity.loads import Loads, loads_of
from ntier_analysis.validity.registry import (
    SIGNIFICANT,
    Finding,
    exact,
    not_applicable,
    registered,
    switched_off,
    undecidable,
)
from ntier_analysis.wording import counted

LAW_PCT = 5.0
VISITS_PCT = 3.0
IMPOSSIBLE_PCT = 3.0
IDENTITY_PCT = 1.0
LOW_RESPONSE = 0.1
"""Share of the think time below which loads hardly wait (as for the verdict's lowest load)."""
UNSATURATED = 0.9
CHANCE = 0.01
MIN_ORDER = 6
"""Trials from which on six ranks can be as unlikely as 1 %: 2 / 6! = 0.3 %, of five 2 / 5! = 1.7 %."""
VALID_PCT, MAX_RETRIES = 90.0, 2
CANARY_PCT = 3.0
FALSE_ALARM = float(2 * stats.norm.sf(SIGNIFICANT))
"""Probability of 3 standard errors: a sign test below it counts as much (from ten trials of one sign on)."""


LAWS = ("O1", "O3", "O4", "W2", "W5", "W7")
"""Checks that compare one load with others; the loads must ask for the same work in other amounts."""
OTHER = "the factor changes something other than the amount of load, so the loads cannot be compared"
STEADY_CHECKS = ("S1.sweep", "S2.sweep")
"""Checks that one sentence of the evidence sums up (`steadiness`)."""


def sweep_checks(
    trials: pd.DataFrame,
    samples: pd.DataFrame,
    nodes: pd.DataFrame,
    interactions: pd.DataFrame | None = None,
    checks: pd.DataFrame | None = None,
    unsettled: Collection[str] = (),
) -> list[Check]:
    """Tables of one sweep -> its checks. Without single interactions the drifts of S1 and S2 come from `checks`.
    `unsettled`: trials whose run is too short for their load; they do not count in those two if two others are left."""
    loads = loads_of(trials, samples, nodes, interactions, checks, unsettled)
    off = system_of(trials).checks_off if len(trials) else {}
    outcomes = [_run(entry, loads) for entry in _CHECKS]
    return [switched_off(c, off[c.id]) if c.id in off else c for c in outcomes]


def check_names() -> list[str]:
    """Of all checks, of trials and of sweeps."""
    return sorted([*(entry.id for entry in registered()), *(id_ for id_, *_ in _CHECKS)])


def unused_checks(off: dict[str, str]) -> list[str]:
    """A sentence on each check that a system switches off, and on names that no check has."""
    known = set(check_names()) if off else set()
    return [
        f"check {i} is switched off by the system: {why}"
        if i in known
        else f"the system switches off a check {i}, which does not exist"
        for i, why in off.items()
    ]


def table(sweep: str, checks: Iterable[Check]) -> pd.DataFrame:
    """Rows of the store's table `sweep_checks`."""
    rows = [check.model_dump() | {"outcome": check.outcome.value} for check in checks]
    return pd.DataFrame(rows).assign(sweep=sweep).astype({"n": "Int64"})


def _run(entry: tuple[str, str, str, Callable[[Loads], Finding]], loads: Loads) -> Check:
    id_, title, reason, function = entry
    try:
        finding = not_applicable(OTHER) if id_ in LAWS and not loads.comparable else function(loads)
    except Exception as error:  # a checker that throws must not decide, nor hide the others
        finding = undecidable(f"the check itself failed: {type(error).__name__}: {error}")
    passed = finding.outcome is Outcome.PASS
    return Check(
        id=id_, title=title, required=False, outcome=finding.outcome, value=_finite(finding.value), limit=finding.limit,
        unit=finding.unit, n=finding.n, standard_error=_finite(finding.standard_error), reason="" if passed else reason,
        detail=finding.detail,
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


# ---- laws ----------------------------------------------------------------------------------------------------------


Seen = tuple[float, float, str]
"""Deviation from what a law says and its standard error, both in percent; a text."""


def _critical(n: int) -> float:
    """Standard errors that are as unlikely as 3 of them, for n looks together (t of the batches, Bonferroni)."""
    return float(stats.t.isf(stats.norm.sf(SIGNIFICANT) / n, BATCHES - 1))


def _worst(seen: list[Seen], limit: float, *, above: bool = False) -> Finding:
    """The worst of several looks: one that fails, else one beyond the limit within its error, else the largest.
    `above`: only what is above the law counts."""
    critical = _critical(len(seen))

    def rank(item: Seen) -> tuple[int, float]:
        off = item[0] if above else abs(item[0])
        return (0 if off <= limit else 2 if off > critical * item[1] else 1), off

    off, error, text = max(seen, key=rank)
    outcome = (Outcome.PASS, Outcome.UNDECIDABLE, Outcome.FAIL)[rank((off, error, text))[0]]
    return Finding(outcome, off, limit, "pct", len(seen), error, text)


def _residuals(lines: dict[str, Points], limit_pct: float, what: str, floors: dict[str, float]) -> Finding:
    """Each load against the line through the others, of all `lines`: relative to what the line says, at least to
    `floors`."""
    seen = []
    for name, points in lines.items():
        for trial, value, expected, error in left_out(points):
            scale = max(abs(expected), floors.get(name, 0.0), 1e-12)
            text = f"{what}: {name} in {trial}: {value:.4g}, where the other loads suggest {expected:.4g}"
            seen.append((100 * (value - expected) / scale, 100 * error / scale, text))
    if not seen:
        return undecidable(
            f"{what}: too few loads that differ by a tenth (three are needed besides the judged one)", n=0
        )
    return _worst(seen, limit_pct)


def utilization_law(loads: Loads) -> Finding:
    floors = {name: 0.1 * loads.capacity[name] for name in loads.used}
    return _residuals(_unsaturated(loads), LAW_PCT, "cores in use, U = U0 + D X", floors)


def _unsaturated(loads: Loads) -> dict[str, Points]:
    return {name: points.below(UNSATURATED * loads.capacity[name]) for name, points in loads.used.items()}


def forced_flow(loads: Loads) -> Finding:
    """The line has a constant term, since collectors and health checks ask at any load."""
    if not loads.visits:
        return undecidable("not collected: no tier counts its requests or statements")
    return _residuals(loads.visits, VISITS_PCT, "requests or statements per s", {})


def bounds(loads: Loads) -> Finding:
    """X <= (capacity - idle) / D of each node, D from the other trials; X <= N / (Z + R) of the trial itself."""
    seen = [item for trial in loads.valid.index for item in _beyond(loads, str(trial))]
    if not seen:
        return undecidable("no bound is known: neither demands from other trials nor response times")
    return _worst(seen, IMPOSSIBLE_PCT, above=True)


def _beyond(loads: Loads, trial: str) -> list[Seen]:
    """Percent by which a trial is above each of its bounds, s.e., text."""
    limits = []
    row = loads.valid.loc[trial]
    x, error = float(row["throughput_per_s"]), float(row["x_error"])
    for name, points in _unsaturated(loads).items():
        line = fit(points.without(trial))
        if line is None or line.slope <= 0:
            continue
        bound, relative = _capacity_bound(line, loads.capacity[name])
        both = 100 * x / bound * float(np.hypot(relative, error / x))
        limits.append((100 * (x / bound - 1), both, f"{trial}: {x:.1f}/s, {name} can serve {bound:.1f}/s"))
    share, share_error = loads.little(trial)
    if np.isfinite(share) and loads.model is not LoadModel.OPEN:
        limits.append((100 * (share - 1), 100 * share_error, f"{trial}: X (Z + R) is {100 * share:.1f} % of the users"))
    return limits


def _capacity_bound(line: Line, capacity: float) -> tuple[float, float]:
    """(capacity - idle) / demand and its relative standard error."""
    room = capacity - line.intercept
    gradient = np.array([-1 / room, -1 / line.slope])
    return room / line.slope, float(np.sqrt(gradient @ line.covariance @ gradient))


def low_load(loads: Loads) -> Finding:
    """X (Z + R) / N = 1 at loads that hardly wait; with the measured think times an identity."""
    if loads.model is not LoadModel.CLOSED:
        return not_applicable("nobody thinks under this load")
    low = loads.valid[loads.valid["response_s"] <= LOW_RESPONSE * loads.valid["think_time_s"]]
    shares = [(*loads.little(str(name)), name) for name in low.index]
    seen = [
        (100 * (share - 1), 100 * error, f"{name}: X (Z + R) is {100 * share:.1f} % of the users")
        for share, error, name in shares
        if np.isfinite(share)
    ]
    if not seen:
        return undecidable("no load whose response time is below a tenth of the think time", n=0)
    finding = _worst(seen, IDENTITY_PCT)
    if not loads.measured_thinks:
        finding = replace(
            finding, detail=f"{finding.detail} (think times were not measured; their given mean was used)"
        )
    return finding


def demands_agree(loads: Loads) -> Finding:
    """Chi-square of D = (U - U0) / X over the loads, and by how much they differ beyond their errors."""
    seen = [(name, *_spread(points)) for name, points in _unsaturated(loads).items() if len(points.x) > 3]
    seen = [item for item in seen if np.isfinite(item[1])]
    if not seen:
        return undecidable("no node with four loads below 90 % that differ by a tenth", n=0)
    name, spread, error, p, n = max(seen, key=lambda item: item[1])
    text = f"{name}: demands at {n} loads differ by {spread:.1f} % beyond their errors of {error:.1f} % (p = {p:.2g})"
    if spread > LAW_PCT and p < CHANCE / len(seen):
        outcome = Outcome.FAIL
    else:
        precise = all(item[2] <= LAW_PCT for item in seen)
        outcome = Outcome.PASS if spread <= LAW_PCT and precise else Outcome.UNDECIDABLE
    return Finding(outcome, spread, LAW_PCT, "pct", n, error, text)


def _spread(points: Points) -> tuple[float, float, float, int]:
    """Standard deviation between loads beyond the errors (DerSimonian-Laird) and median error, both in percent of the
    demand; p that there is none; loads."""
    line = fit(points)
    if line is None or line.slope <= 0:
        return float("nan"), float("nan"), float("nan"), 0
    each = (points.y - line.intercept) / points.x
    variance = (points.y_error**2 + line.covariance[0, 0]) / points.x**2 + (line.slope * points.x_error / points.x) ** 2
    weight, k = 1 / variance, len(each)
    q = float((weight * (each - np.average(each, weights=weight)) ** 2).sum())
    between = max(0.0, (q - (k - 1)) / float(weight.sum() - (weight**2).sum() / weight.sum()))
    error = 100 * float(np.median(np.sqrt(variance))) / line.slope
    return 100 * float(np.sqrt(between)) / line.slope, error, float(stats.chi2.sf(q, k - 2)), k


# ---- the course of the sweep ---------------------------------------------------------------------------------------


def order_effect(loads: Loads) -> Finding:
    """Each throughput against what its neighbours in load lead to, in the order of execution."""
    timed = loads.valid.dropna(subset=["run_start_s"]).sort_values("run_start_s")
    if len(timed) < MIN_ORDER or timed["run_start_s"].duplicated().any():
        return undecidable(
            f"{counted(len(timed), 'valid trial')} in a known order; {MIN_ORDER} are needed", n=len(timed)
        )
    rising = stats.spearmanr(np.arange(len(timed)), timed["asked"])
    if rising.pvalue < CHANCE:
        text = "the loads were run in order of their size: warm-up and load cannot be told apart; run them at random"
        return undecidable(f"{text} (Spearman {rising.statistic:+.2f})", n=len(timed))
    ratios = np.array([_against_neighbours(timed, name) for name in timed.index])
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios) < MIN_ORDER:
        text = f"{counted(len(ratios), 'trial')} between other loads; {MIN_ORDER} are needed"
        return undecidable(text, n=len(ratios))
    return _drift(stationarity.drift(ratios), len(ratios), "throughput, over the order of execution, drifts by")


def _against_neighbours(timed: pd.DataFrame, name: object) -> float:
    """Throughput / what the other trials' means give for its load by interpolation; NaN outside of them."""
    others = timed.drop(index=name).groupby("asked")["throughput_per_s"].mean()
    users = timed.loc[name, "asked"]
    expected = np.interp(users, others.index, others, left=np.nan, right=np.nan)
    return float(timed.loc[name, "throughput_per_s"] / expected)


def _drift(trend: stationarity.Drift, n: int, what: str, limit: float = stationarity.LIMIT) -> Finding:
    if not np.isfinite(trend.standard_error):
        return undecidable(f"{counted(n, 'trial')} cannot show a drift", n=n)
    text = f"{what} {100 * trend.drift:+.1f} % (s.e. {100 * trend.standard_error:.1f}, p = {trend.p:.2g})"
    return Finding(Outcome(trend.outcome), 100 * trend.drift, 100 * limit, "pct", n, 100 * trend.standard_error, text)


def valid_loads(loads: Loads) -> Finding:
    """Which of the loads that were run have a valid trial."""
    by_load = loads.all.groupby("level")["valid"].any()
    if by_load.empty:
        return undecidable("there is no trial", n=0)
    share = 100 * float(by_load.mean())
    lacking = ", ".join(f"{load:.12g}" for load in by_load.index[~by_load])
    outcome = Outcome.PASS if share >= VALID_PCT else Outcome.FAIL
    text = f"{int(by_load.sum())} of {len(by_load)} loads have a valid trial"
    return Finding(
        outcome, share, VALID_PCT, "pct (at least)", len(by_load), None, text + f"; not {lacking}" * bool(lacking)
    )


def retries(loads: Loads) -> Finding:
    attempts = loads.all["attempts"] if "attempts" in loads.all else pd.Series(dtype=float)
    if attempts.dropna().empty:
        return not_applicable("the trials do not record their attempts")
    again = attempts.fillna(1).astype(int) - 1
    listed = ", ".join(f"{name} valid after {n + 1}" if loads.all.loc[name, "valid"] else f"{name} tried {n + 1} times"
                       for name, n in again[again > 0].items())  # fmt: skip
    return exact(float(again.max()), MAX_RETRIES, "retries", listed or "no trial was repeated", len(again))


def repeated_load(loads: Loads) -> Finding:
    """First against last repetition of a load, of the load whose repetitions lie furthest apart in time."""
    timed = loads.valid.dropna(subset=["run_start_s"]).sort_values("run_start_s")
    groups = [group for _, group in timed.groupby("level") if len(group) > 1]
    if not groups:
        return not_applicable("no load was run twice")
    group = max(groups, key=lambda g: g["run_start_s"].iloc[-1] - g["run_start_s"].iloc[0])
    first, last = group.iloc[0], group.iloc[-1]
    x = float(first["throughput_per_s"])
    off = 100 * (float(last["throughput_per_s"]) / x - 1)
    error = 100 * float(np.hypot(first["x_error"], last["x_error"])) / x
    text = f"{first['throughput_per_s']:.1f}/s in {first.name}, {last['throughput_per_s']:.1f}/s in {last.name}"
    if abs(off) > LAW_PCT and abs(off) > SIGNIFICANT * error:
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.PASS if abs(off) + 2 * error <= LAW_PCT else Outcome.UNDECIDABLE
    return Finding(outcome, off, LAW_PCT, "pct", len(group), error, text)


def canary(loads: Loads) -> Finding:
    """CPU time of the same work, median of each trial, over the order of execution: of the canary that drifts more."""
    if not loads.canaries:
        return undecidable("not collected: no trial ran a canary")
    drifts = {
        name: (stationarity.drift(series, CANARY_PCT / 100), len(series)) for name, series in loads.canaries.items()
    }
    rank = {"pass": 0, "undecidable": 1, "fail": 2}
    name = max(drifts, key=lambda key: (rank[drifts[key][0].outcome], abs(drifts[key][0].drift)))
    trend, n = drifts[name]
    return _drift(trend, n, f"the {name} canary's CPU time drifts over the sweep by", CANARY_PCT / 100)


# ---- steadiness ----------------------------------------------------------------------------------------------------


def _pooled(values: np.ndarray, what: str) -> Finding:
    """Mean of all trials' drifts, and their signs: many small drifts of one sign say what no single trial can."""
    limit, n = 100 * stationarity.LIMIT, len(values)
    if n < 2:
        return undecidable(f"{counted(n, 'trial')} with a {what}; two are needed", n=n)
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(n))
    up, down = int((values > 0).sum()), int((values < 0).sum())
    p = float(stats.binomtest(up, up + down).pvalue) if up + down else 1.0
    text = f"mean {what} {mean:+.1f} % (s.e. {error:.1f}); {up} of the trials up, {down} down (sign test p = {p:.2g})"
    reach, critical = (float(stats.t.isf(q, n - 1)) * error for q in (0.025, FALSE_ALARM / 2))
    if abs(mean) > limit and (abs(mean) > critical or p < FALSE_ALARM):
        return Finding(Outcome.FAIL, mean, limit, "pct", n, error, text)
    outcome = Outcome.PASS if abs(mean) + reach <= limit else Outcome.UNDECIDABLE
    if p < FALSE_ALARM:
        text += ": they go the same way" + ", by too little to matter" * (outcome is Outcome.PASS)
    return Finding(outcome, mean, limit, "pct", n, error, text)


def drift(loads: Loads) -> Finding:
    return _pooled(loads.drifts, "drift of the throughput over the run")


def start(loads: Loads) -> Finding:
    return _pooled(loads.starts, "deviation of the run's first tenth from its rest")


STEADY = ("S1", "S2")


def steady(checks: Iterable[Check]) -> str:
    """`steady`, `not_steady` or `undecidable`, by the checks S1 and S2 of a trial, or of a sweep (S1.sweep,
    S2.sweep) where those are among them: not steady if one of them failed, steady if all passed."""
    by_id = {check.id: check.outcome for check in checks}
    pooled = [by_id[f"{id_}.sweep"] for id_ in STEADY if f"{id_}.sweep" in by_id]
    outcomes = pooled or [by_id[id_] for id_ in STEADY if id_ in by_id]
    if Outcome.FAIL in outcomes:
        return "not_steady"
    return "steady" if len(outcomes) == len(STEADY) and set(outcomes) == {Outcome.PASS} else "undecidable"


_SENTENCES = {
    "steady": "the runs were steady",
    "not_steady": "the runs were not steady: give the warm-up more time, or run longer",
    "undecidable": "it is not known whether the runs were steady: repeat loads, or run longer",
}


def steadiness(checks: Iterable[Check]) -> str:
    """The sentence for the evidence of a sweep."""
    outcomes = list(checks)
    seen = [c.detail for c in outcomes if c.id in STEADY_CHECKS and c.detail]
    return f"{_SENTENCES[steady(outcomes)]}" + (f" ({'; '.join(seen)})" if seen else "")


_CHECKS: tuple[tuple[str, str, str, Callable[[Loads], Finding]], ...] = (
    ("O1", "Utilization law: CPU in use against throughput, over the loads", "law_violated", utilization_law),
    ("O3", "Bounds: throughput beyond what demands and users allow", "impossible", bounds),
    ("O4", "Forced flow: requests and statements per interaction, over the loads", "visits_differ", forced_flow),
    ("W2", "Low loads: throughput x (think + response time) against the users", "not_linear", low_load),
    ("W5", "Order effect: throughput over the order of execution", "order_effect", order_effect),
    ("W6", "Loads with a valid trial", "few_valid", valid_loads),
    ("W6.retries", "Repeats of a trial that failed or was invalid", "retried", retries),
    ("W7", "Demands of different loads agree", "demands_differ", demands_agree),
    ("W8", "Repetitions of a load agree", "not_repeatable", repeated_load),
    ("H7.sweep", "Speed of the machine: the canary over the sweep", "host_speed", canary),
    ("S1.sweep", "Throughput drift over the run, all trials together", "not_steady", drift),
    ("S2.sweep", "Throughput of the first tenth, all trials together", "not_steady", start),
)
