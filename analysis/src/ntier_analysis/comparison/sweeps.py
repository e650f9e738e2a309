"""Compares two sweeps: the maximum, all loads together, each load, and what an interaction costs each tier."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.comparison.conditions import differences
from ntier_analysis.comparison.values import METRICS, Side, read_side
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.described import LoadAxis, axis_of, factor_of, order_of, ordered
from ntier_analysis.errors import DataError
from ntier_analysis.setting import by_make, is_imported
from ntier_analysis.statistics import ratios
from ntier_analysis.statistics.groups import opened
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import Interval, Ratio, estimated
from ntier_analysis.verdict.plateau import ON_PLATEAU
from ntier_analysis.wording import counted, join

MARGIN = 0.05
REPETITIONS = 3
"""With three common repetitions or more, these are the sample (docs/analysis.md); with fewer, loads or batches are."""
BATCHES_ONLY = "batches of one trial each"
NO_CAPACITY = "of at least one sweep no capacity is known: it serves all that was offered, or that cannot be told"
BEYOND = "beyond the knees"
SCOPES = (BEYOND, "maximum", "all loads")


@dataclass(frozen=True)
class Row:
    """`scope`: maximum (of the verdicts), beyond the knees (equal loads and repetitions), all loads, or load (then
    `users` is set: whole users, or the value of another factor). `a`, `b`: the maxima, else (geometric) means; plain
    means where one value is 0. `ratio` = b / a, None if it cannot be told. `basis`: what the interval is made of, or
    why there is no ratio."""

    scope: str
    users: int | float | None
    metric: str
    tier: str
    a: float
    b: float
    ratio: Ratio | None
    basis: str
    outcome: str

    @property
    def name(self) -> str:
        return METRICS[self.metric] if not self.tier else METRICS[self.metric].replace("CPU", f"{self.tier} CPU")


@dataclass
class Comparison:
    """`outcome`: that of `primary`."""

    a: Side
    b: Side
    margin: float
    rows: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def factor(self) -> tuple[str, str] | None:
        """Name and unit of what both sweeps vary; None if they vary different things, whose values are never equal."""
        x, y = (factor_of(s.trials) for s in (self.a, self.b))
        if x[0] == y[0] == USERS:
            return USERS, ""  # older stores and imports do not name its unit
        return x if x == y else None

    @property
    def axis(self) -> LoadAxis:
        """Of the loads that have rows; there are none where `factor` is None. Two load models have no name in common
        for who asks: these are users."""
        x, y = (axis_of(s.trials) for s in (self.a, self.b))
        order = ordered([*x.order, *y.order], x.order)
        return LoadAxis(*(self.factor or (USERS, "")), tuple(order), x.who if x.who == y.who else USERS)

    @property
    def by_users(self) -> bool:
        return self.factor == (USERS, "")

    @property
    def open_load(self) -> bool:
        """Of both sweeps."""
        return self.a.open_load and self.b.open_load

    @property
    def of_itself(self) -> bool:
        """Whether both sides are the same sweep of the same store."""
        x, y = ((side.store.resolve(), side.sweep) for side in (self.a, self.b))
        return x == y

    @property
    def at_least(self) -> list[str]:
        """Sweeps of whose maximum only a lower bound is known: what they reach at the loads that both have does not
        tell how the maxima compare."""
        return [side.label for side in (self.a, self.b) if side.verdict.at_least]

    @property
    def primary(self) -> Row | None:
        """The throughput beyond both knees if there are repetitions, which alone hold what differs between runs; else,
        or if of one maximum only a lower bound is known, the ratio of the maxima; else, if not both sweeps reach one,
        the throughput over all loads. None over another factor than users, unless it sets the rate of an open load:
        each of its values has a ratio of its own."""
        scopes = [s for s in SCOPES if s != BEYOND or not self.at_least]
        wanted = [r for r in self.rows if r.metric == "throughput_per_s" and r.scope in scopes]
        return min(wanted, key=lambda r: SCOPES.index(r.scope), default=None)

    @property
    def outcome(self) -> str:
        return self.primary.outcome if self.primary else "undecided"


class NotComparable(DataError):
    """Two sweeps under conditions in which a ratio says nothing; `why`: which these are."""

    def __init__(self, a: str, b: str, why: str):
        super().__init__(f"{a} and {b} cannot be compared: {why} (--anyway compares them nevertheless)")
        self.why = why


def compare(a: str, b: str, store: Path, *, margin: float = MARGIN, anyway: bool = False) -> Comparison:
    """`a`, `b`: `SWEEP` of `store`, or `STORE:SWEEP`. Raises DataError for an unknown sweep, one without a valid trial,
    and (unless `anyway`) NotComparable for conditions under which a ratio says nothing."""
    if not 0 < margin < 1:
        raise DataError(f"margin is {margin:g}, allowed are shares between 0 and 1")
    sides = read_side(a, store), read_side(b, store)
    for side in sides:
        if side.values.empty:
            raise DataError(f"{side.label}: no valid trial to compare")
    refused, warnings = differences(*sides)
    if refused and not anyway:
        raise NotComparable(a, b, "; ".join(refused))
    comparison = Comparison(*sides, margin, warnings=refused + warnings)
    comparison.rows = _rows(comparison)
    _advise(comparison)
    return comparison


def _rows(comparison: Comparison) -> list[Row]:
    keys = ["metric", "tier", "load", "rep"]
    rows = _demands(comparison)
    both = comparison.a.values.merge(comparison.b.values, on=keys, suffixes=("_a", "_b"))
    if comparison.factor is None:
        both = both[:0]  # 100 users and 100 ms are no equal loads
    order = {name: i for i, name in enumerate(METRICS)}
    groups = sorted(both.groupby(["metric", "tier"]), key=lambda g: (order[g[0][0]], g[0][1]))
    if comparison.by_users:
        rows = _at_equal_speed(comparison, both) + rows
        for (metric, tier), part in groups:
            if part["load"].nunique() > 1:
                rows.append(_row(comparison, "all loads", None, metric, tier, part))
    rows = _maximum(comparison, both) + rows
    # Values of another factor (a pause, a size) are different conditions, and what B is of A may depend on them. A mean
    # over them would tell which values were chosen, so there is none; the verdict too judges each value by itself.
    for load in sorted(both["load"].unique()):
        for (metric, tier), part in groups:
            mine = part[part["load"] == load]
            if len(mine):
                at = int(load) if comparison.by_users else float(load)
                rows.append(_row(comparison, "load", at, metric, tier, mine))
    return rows


def _maximum(comparison: Comparison, both: pd.DataFrame) -> list[Row]:
    """Ratio of the two maxima, as the verdicts and the map state them; open on the side of a lower bound. With three
    common repetitions also the ratio at equal loads beyond both knees, in which an effect common to a block of
    repetitions cancels."""
    x, y = (s.verdict.max_throughput for s in (comparison.a, comparison.b))
    if not comparison.open_load and (comparison.a.open_load or comparison.b.open_load or not comparison.by_users):
        return []
    if not (x and y and comparison.a.reaches_maximum and comparison.b.reaches_maximum):
        return []
    ratio = opened(ratios.of_intervals(x, y), comparison.b.verdict.at_least, comparison.a.verdict.at_least)
    basis = f"pooled plateaus of {x.n} and {y.n} trials"
    rows = [
        Row("maximum", None, "throughput_per_s", "", x.value, y.value, ratio, basis, ratio.outcome(comparison.margin))
    ]
    plateau = _beyond_both_knees(comparison, both)
    plateau = plateau[plateau["metric"] == "throughput_per_s"]
    if plateau["rep"].nunique() >= REPETITIONS:
        rows.append(_row(comparison, BEYOND, None, "throughput_per_s", "", plateau))
    return rows


def _beyond_both_knees(comparison: Comparison, both: pd.DataFrame) -> pd.DataFrame:
    knees = [s.verdict.knee_users for s in (comparison.a, comparison.b)]
    return both[both["load"] >= ON_PLATEAU * np.max(knees)]  # without one of the knees: none


def _at_equal_speed(comparison: Comparison, both: pd.DataFrame) -> list[Row]:
    """A maximum that CPUs limit, in units of the CPU that an interaction costs the tiers that limit on neither side.
    The machine's changes of speed cancel in it, if these tiers did the same work on both sides. On a virtual machine
    with neighbours single trials differed by 11 %, and by 3 % in this unit (docs/analysis.md)."""
    named = [b for s in (comparison.a, comparison.b) for b in s.verdict.bottlenecks]
    if not named or any(b.resource != "cpu" for b in named):
        return []  # when CPUs are slow, a disk or a pool is not
    plateau = _beyond_both_knees(comparison, both)
    rates = plateau[plateau["metric"] == "throughput_per_s"]
    if _zeros(rates):
        return []  # where a side answers nothing, no interaction has a cost; the other loads alone would hide that
    cost = plateau[(plateau["metric"] == "cpu_ms") & ~plateau["tier"].isin({b.tier for b in named})]
    tiers = ordered(cost["tier"], order_of(comparison.a.trials))
    trials = cost.groupby(["load", "rep"])
    spent = trials[["value_a", "value_b"]].sum()[trials["tier"].nunique() == len(tiers)]
    spent = spent.reindex(pd.MultiIndex.from_frame(rates[["load", "rep"]]))
    pairs = rates.assign(**{k: rates[k].to_numpy() * spent[k].to_numpy() for k in spent}).dropna(subset=list(spent))
    pairs = pairs.assign(error_a=np.nan, error_b=np.nan)  # those of the rate hold the machine's speed
    return [_row(comparison, BEYOND, None, "cpu_ms_per_s", "+".join(tiers), pairs)] if len(pairs) > 1 else []


def _demands(comparison: Comparison) -> list[Row]:
    """CPU demand of an interaction on each tier by the utilization law, over all loads of each sweep (they may
    differ)."""
    rows = []
    for tier in [t for t in comparison.a.demands if t in comparison.b.demands]:
        a, b = (_in_ms(s.demands[tier].demand.interval) for s in (comparison.a, comparison.b))
        ratio = ratios.of_intervals(a, b)
        basis = f"utilization law over {a.n} and {b.n} loads"
        outcome = ratio.outcome(comparison.margin)
        rows.append(Row("all loads", None, "demand_ms", tier, a.value, b.value, ratio, basis, outcome))
    return rows


def _in_ms(x: Interval) -> Interval:
    return Interval(1e3 * x.value, 1e3 * x.low, 1e3 * x.high, 1e3 * x.standard_error, x.n, x.freedom)


def _zeros(pairs: pd.DataFrame) -> int:
    """Pairs of trials of which one has a 0, or both."""
    return int((pairs[["value_a", "value_b"]] == 0).any(axis=1).sum())


def _row(
    comparison: Comparison, scope: str, users: int | float | None, metric: str, tier: str, pairs: pd.DataFrame
) -> Row:
    if zeros := _zeros(pairs):  # a ratio of the other pairs would leave out the loads at which the sides differ most
        a, b = (float(pairs[f"value_{s}"].mean()) for s in "ab")
        basis = f"no ratio: a 0 in {zeros} of {counted(len(pairs), 'pair')} of trials"
        return Row(scope, users, metric, tier, a, b, None, basis, "undecided")
    try:
        ratio, basis = _ratio(pairs, same=comparison.of_itself)
    except ValueError:
        ratio, basis = None, "too few data"
    a, b = (float(np.exp(np.log(pairs[f"value_{s}"]).mean())) for s in "ab")
    return Row(
        scope, users, metric, tier, a, b, ratio, basis, ratio.outcome(comparison.margin) if ratio else "undecided"
    )


def _ratio(pairs: pd.DataFrame, *, same: bool) -> tuple[Ratio, str]:
    """The sample: repetitions if there are enough, else loads, else batches within a trial (the first varies most). The
    interval is never narrower than the trials' own errors say, nor than what the values are rounded to; of two sides
    that are the `same` sweep it is as it comes."""
    ratio, basis = _between(pairs)
    if same:
        return ratio, basis
    own = ratios.of_intervals(
        *(ratios.of_batches(*(pairs[f"{c}_{s}"].to_numpy(float) for c in ("value", "error"))) for s in "ab")
    )
    rounded = [float(np.log1p(pairs[f"resolution_{s}"] / pairs[f"value_{s}"]).mean()) for s in "ab"]
    ratio = ratio if basis == BATCHES_ONLY else ratios.never_narrower(ratio, own)
    return ratios.at_least(ratio, math.hypot(*rounded)), basis


def _between(pairs: pd.DataFrame) -> tuple[Ratio, str]:
    reps, loads = pairs["rep"].nunique(), pairs["load"].nunique()
    if reps >= (REPETITIONS if loads > 1 else 2):
        means = _means(pairs, "rep")
        in_turn = interleaved(pairs)
        test = ratios.paired if in_turn else ratios.unpaired
        ratio = test(means["value_a"].to_numpy(), means["value_b"].to_numpy())
        return ratio, f"{reps} repetitions, {'' if in_turn else 'not '}interleaved"
    if loads > 1:  # repetitions of a load have its ratio in common, so they are one value of the sample
        means = _means(pairs, "load")
        ratio = ratios.paired(means["value_a"].to_numpy(), means["value_b"].to_numpy())
        return ratio, f"{loads} pairs of equal load"
    pair = pairs.iloc[0]
    a, b = (estimated(pair[f"value_{s}"], pair[f"error_{s}"], BATCHES - 1, BATCHES) for s in "ab")
    return ratios.of_intervals(a, b), BATCHES_ONLY


def _means(pairs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Geometric means of both sides for each repetition, or each load."""
    return np.exp(np.log(pairs.set_index(by)[["value_a", "value_b"]]).groupby(by).mean())


def interleaved(pairs: pd.DataFrame) -> bool:
    """Whether each repetition of both sweeps was run before the next of either (A B B A ...)."""
    starts = pairs.melt("rep", ["start_s_a", "start_s_b"])
    blocks = starts.groupby("rep")["value"].agg(["min", "max"]).sort_values("min")
    return len(blocks) > 1 and bool((blocks["min"].to_numpy()[1:] > blocks["max"].to_numpy()[:-1]).all())


def _advise(comparison: Comparison) -> None:
    rows, warnings = comparison.rows, comparison.warnings
    if comparison.of_itself:
        warnings.append("both are the same sweep")
    if not any(r.scope == "load" for r in rows):
        left = ": only the maxima can be compared" if comparison.by_users else ""
        warnings.append(f"no load and repetition is valid in both sweeps{left}")
    silent = {r.users for r in rows if r.scope == "load" and r.metric == "throughput_per_s" and r.ratio is None}
    if silent and comparison.by_users:
        loads = join([f"{users:,}" for users in sorted(silent)])
        warnings.append(f"a side answers nothing at {loads} users: no response time and no CPU per interaction there")
    if comparison.primary is not None and comparison.primary.scope == "all loads":
        warnings.append(
            "at least one sweep reaches no maximum; below the knee throughput depends on the users, not on the system"
        )
    if any(r.basis == BATCHES_ONLY for r in rows):
        imported = is_imported(comparison.a.trials) and is_imported(comparison.b.trials)
        warnings.append(
            "without repetitions the intervals of single loads lack the variance between runs, often the larger part; "
            f"measure both in turn{by_make('REPS=5', imported)}"
        )
    if any("not interleaved" in r.basis for r in rows):
        warnings.append(
            "the repetitions were not interleaved, so the ratios contain whatever changed between the two sweeps"
        )
    for side in (comparison.a, comparison.b):
        if side.verdict.at_least and side.reaches_maximum:
            few = "at too few rates the backlog grows" if side.open_load else "too few loads lie beyond the knee"
            warnings.append(f"{side.label}: its maximum is a lower bound, {few}")
    told = [r for r in rows if r is not comparison.primary and r.ratio is not None]
    if len(told) >= 20:
        warnings.append(f"{len(told)} further ratios at 95 %: about {len(told) / 20:.0f} differ by chance alone")
