"""Does throughput come back when users leave? Trials that came from above, load by load, against those after a reset
(docs/decisions/hysteresis.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.comparison.sweeps import interleaved
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics import ratios
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import CONFIDENCE, Interval, Ratio
from ntier_analysis.wording import counted, why_invalid

MARGIN = 0.10
"""With repetitions. Simulated for trials that differ by 11 % (s.d., as measured on a virtual machine) and a system that
comes back: of sweeps with three loads and three repetitions 0.9 % name one of them; with margin 0 it were 3 %."""
SINGLE_MARGIN = 0.30
"""Of one pair of trials, whose interval lacks what differs between trials: 0.9 % of sweeps with three such loads (31 %
with the other margin)."""
BACK, AWAY, UNDECIDED = "comes back", "does not come back", "undecided"
LATE = "comes back late"
"""In the second half of the run, though not over the whole of it: at its beginning the system still worked on what had
been asked for before."""
ONCE = "came back in this pair"
"""Of one pair of trials nothing more can be said: with trials that differ by 11 %, one in ten pairs of a system that
keeps 0.8 of its throughput looks like that."""
ENOUGH = 3
"""Repetitions that MARGIN was set for."""
ONE_PAIR = "batches of one trial each"


@dataclass(frozen=True)
class Recovery:
    """One load, nominal users, after `above` users. `reset_per_s`, `above_per_s`: (geometric) mean throughput after a
    reset and from above, NaN without a valid trial. `ratio`: from above over after a reset, None if there is no pair.
    `basis`: what the interval is made of, or why there is none. `outcome`: AWAY if the whole 95 % interval lies below
    1 - margin, BACK if it lies above 1 - MARGIN (ONCE with one pair), else UNDECIDED; LATE instead of AWAY or UNDECIDED
    if several pairs say BACK by `late`, and UNDECIDED if the only pair says ONCE by it. `late`: as `ratio`, but of the
    second half of the run from above (None in stores of before). `pairs`: repetitions that are valid in both kinds.
    `run_s`: the shortest run from above, NaN if unknown; who needs longer to come back is AWAY, too."""

    users: int
    above: int
    reset_per_s: float
    above_per_s: float
    ratio: Ratio | None
    basis: str
    margin: float
    outcome: str
    pairs: int = 0
    late: Ratio | None = None
    run_s: float = float("nan")


def recoveries(trials: pd.DataFrame, from_above: pd.DataFrame) -> list[Recovery]:
    """One per load and number of users before, ascending. Frames as the store's tables `trials` and `from_above`."""
    usual = _valid(trials)
    return [
        _recovery(int(users), int(above), usual[usual["users"] == users], rows)
        for (above, users), rows in from_above.groupby(["above", "users"])
    ]


def _valid(trials: pd.DataFrame) -> pd.DataFrame:
    rate = trials["throughput_per_s"].astype(float)
    return trials[trials["valid"].fillna(False).astype(bool) & (rate > 0)]


def _recovery(users: int, above: int, usual: pd.DataFrame, rows: pd.DataFrame) -> Recovery:
    there = _valid(rows)
    a, b = _mean(usual), _mean(there)
    pairs = usual.merge(there, on="rep", suffixes=("_a", "_b")).sort_values("rep")
    if pairs.empty:
        return Recovery(users, above, a, b, None, _lacking(usual, rows, there), MARGIN, UNDECIDED)
    n, (ratio, basis), late = len(pairs), _ratio(pairs), _late(pairs)
    outcome = _outcome(ratio, n)
    if outcome in (AWAY, UNDECIDED) and late is not None and _outcome(late, n) in (BACK, ONCE):
        outcome = LATE if n > 1 else UNDECIDED
        basis += f"; in the second half of the run {share(late)}"
    a, b, run_s = _mean(pairs, "_a"), _mean(pairs, "_b"), _shortest(pairs)
    return Recovery(users, above, a, b, ratio, basis, _margin(n), outcome, n, late, run_s)


def _shortest(pairs: pd.DataFrame) -> float:
    if "run_end_s_b" not in pairs:
        return float("nan")
    return float((pairs["run_end_s_b"] - pairs["run_start_s_b"]).astype(float).min())


def _late(pairs: pd.DataFrame) -> Ratio | None:
    """The second half of the runs from above over whole runs after a reset, whose throughput does not change."""
    rate, high = "late_throughput_per_s", "late_throughput_high_per_s"
    if rate not in pairs or not (pairs[rate].astype(float) > 0).all():
        return None
    return _ratio(pairs.assign(throughput_per_s_b=pairs[rate], throughput_high_per_s_b=pairs[high]))[0]


def _mean(rows: pd.DataFrame, side: str = "") -> float:
    rates = rows[f"throughput_per_s{side}"].to_numpy(float)
    return float(np.exp(np.log(rates).mean())) if len(rates) else float("nan")


def _lacking(usual: pd.DataFrame, rows: pd.DataFrame, there: pd.DataFrame) -> str:
    if there.empty:
        last = list(rows.sort_values("rep").itertuples())[-1]
        return f"no valid trial from above ({why_invalid(last) or 'not collected'})"
    return "no valid trial after a reset" if usual.empty else "no repetition is valid in both kinds"


def _margin(pairs: int) -> float:
    return SINGLE_MARGIN if pairs == 1 else MARGIN


def _outcome(ratio: Ratio, pairs: int) -> str:
    if not np.isfinite([ratio.low, ratio.high]).all():
        return UNDECIDED
    back = ONCE if pairs == 1 else BACK
    return AWAY if ratio.high < 1 - _margin(pairs) else back if ratio.low > 1 - MARGIN else UNDECIDED


def _ratio(pairs: pd.DataFrame) -> tuple[Ratio, str]:
    """Paired over repetitions that took turns, else of the two groups; never narrower than the trials' own errors say,
    since two pairs can agree by chance. Of one pair by these errors alone."""
    own = ratios.of_intervals(*(_by_own_errors(pairs, side) for side in ("_a", "_b")))
    if len(pairs) == 1:
        return own, ONE_PAIR
    starts = pairs.rename(columns={f"run_start_s{s}": f"start_s{s}" for s in ("_a", "_b")})
    in_turn = interleaved(starts)
    test = ratios.paired if in_turn else ratios.unpaired
    rates = (pairs[f"throughput_per_s{s}"].to_numpy(float) for s in ("_a", "_b"))
    between = test(*rates)
    basis = f"{len(pairs)} repetitions, {'' if in_turn else 'not '}in turns"
    return ratios.never_narrower(between, own), basis


def _by_own_errors(pairs: pd.DataFrame, side: str) -> Interval:
    """Geometric mean of one kind's trials with the error that their batches tell. Taken from the upper end of each
    interval, since the lower one is cut at 0."""
    rates = pairs[f"throughput_per_s{side}"].to_numpy(float)
    reach = pairs[f"throughput_high_per_s{side}"].to_numpy(float) - rates
    return ratios.of_batches(rates, reach / stats.t.ppf(0.5 + CONFIDENCE / 2, BATCHES - 1))


# ---- words ---------------------------------------------------------------------------------------------------------


def share(ratio: Ratio | None) -> str:
    """`0.31 [0.25, 0.38]`"""
    if ratio is None:
        return "unknown"
    known = np.isfinite([ratio.low, ratio.high]).all()
    return f"{ratio.value:.2f}" + (f" [{ratio.low:.2f}, {ratio.high:.2f}]" if known else " [unknown]")


def sentences(found: list[Recovery], topology: str) -> list[str]:
    """One for each number of users before. It names the lowest load from which the system does not come back; if it
    comes back from each, the one with the lowest ratio; else those that are undecided. Of loads with one pair it says
    that the system came back in that pair; loads at which it comes back late have a clause each."""
    said = []
    for above in sorted({r.above for r in found}):
        mine = [r for r in found if r.above == above]
        late, others = ([r for r in mine if (r.outcome == LATE) == so] for so in (True, False))
        if others:
            clauses = [_said(others), *(f"at {r.users:,} it comes back late: {_halves(r)}" for r in late)]
        else:
            first = f"comes back late at {late[0].users:,} users after {above:,}: {_halves(late[0])}"
            clauses = [first, *(f"so it does at {r.users:,}: {_halves(r)}" for r in late[1:])]
        said.append(f"{topology} {'; '.join(clauses)}.")
    return said


def _halves(late: Recovery) -> str:
    return f"{share(late.ratio)} of its throughput over the whole run, {share(late.late)} in its second half"


def _said(mine: list[Recovery]) -> str:
    above = f"after {mine[0].above:,}"
    away, open_ = ([r for r in mine if r.outcome == outcome] for outcome in (AWAY, UNDECIDED))
    if away:
        more = "".join(f", nor at {r.users:,}: {share(r.ratio)}" for r in away[1:])
        seen = float(np.min([r.run_s for r in away]))  # NaN if one is
        within = "the run" if np.isnan(seen) else f"a run of {seen:.0f} s"
        first = f"does not come back within {within} at {away[0].users:,} users {above}: {share(away[0].ratio)}"
        return f"{first} of its throughput{more} (longer runs, by PHASES=, tell whether it comes back later)"
    back = [r for r in mine if r not in open_]
    once = any(r.outcome == ONCE for r in back)
    verb, pairs = ("came back", ", in one pair of trials") if once else ("comes back", "")
    again = "; repeat it (REPS=3) to know whether it comes back" if once else ""
    if open_:
        loads = ", ".join(f"{r.users:,}: {share(r.ratio)}" for r in open_)
        told = f"is undecided (throughput from above over that after a reset, at {loads}); {_to_decide(open_)}"
        if not back:
            return f"may come back {above} users or not: that {told}"
        at = " and ".join(f"{r.users:,}" for r in back)
        return f"{verb} at {at} users {above}{pairs}; whether it does at the others {told}"
    least = min(mine, key=lambda r: r.ratio.value if r.ratio else np.inf)
    kept = f"{share(least.ratio)} of its throughput{again}"
    if len(mine) == 1:
        return f"{verb} at {least.users:,} users {above}{pairs}: {kept}"
    return f"{verb} at each of {len(mine)} loads {above} users{pairs}; least at {least.users:,}, with {kept}"


def _to_decide(open_: list[Recovery]) -> str:
    """What narrows the intervals. Three repetitions do where trials are as alike as usual; after them a system is slow
    to come back, or its trials differ more: then longer runs tell more than the same again."""
    pairs = min(r.pairs for r in open_)
    if not pairs:
        return "; ".join(dict.fromkeys(r.basis for r in open_ if not r.pairs))
    if pairs < ENOUGH:
        return f"repeat them (REPS={ENOUGH})"
    return f"measure them longer (PHASES=standard) or more often (REPS={2 * pairs})"


def warnings(from_above: pd.DataFrame) -> list[str]:
    """Which of these trials count for nothing, and why."""
    bad = from_above[~from_above["valid"].fillna(False).astype(bool)]
    if bad.empty:
        return []
    named = "; ".join(f"{t.trial} ({why_invalid(t) or 'not collected'})" for t in bad.itertuples())
    number = f"{len(bad)} of {counted(len(from_above), 'trial')} from above"
    return [f"{number} {'is' if len(bad) == 1 else 'are'} INVALID and not compared: {named}."]


def as_rows(found: list[Recovery]) -> list[dict]:
    """For JSON and tables: users, above, after_reset_per_s, from_above_per_s, ratio, interval (95 %), the same of the
    second half of the run (late_ratio, late_interval), run_s (the shortest run from above), margin, outcome,
    basis; what is not known is None."""

    def known(value: float | None) -> float | None:
        return None if value is None or not np.isfinite(value) else float(value)

    return [
        {
            "users": r.users,
            "above": r.above,
            "after_reset_per_s": known(r.reset_per_s),
            "from_above_per_s": known(r.above_per_s),
            "ratio": known(r.ratio.value) if r.ratio else None,
            "interval": [known(r.ratio.low), known(r.ratio.high)] if r.ratio else [None, None],
            "late_ratio": known(r.late.value) if r.late else None,
            "late_interval": [known(r.late.low), known(r.late.high)] if r.late else [None, None],
            "run_s": known(r.run_s),
            "margin": r.margin,
            "outcome": r.outcome,
            "basis": r.basis,
        }
        for r in found
    ]
