"""What users, throughput and response times say of each other, and the files of each other."""

from __future__ import annotations

import numpy as np

from ntier_analysis.contracts import Outcome
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.validity.imported.trial import Imported, at_least, check
from ntier_analysis.validity.registry import SIGNIFICANT, Finding, exact, not_applicable, sampled, undecidable

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
COUNTS_PCT = 5.0
"""By how much two files may differ: from here on a verdict counts throughput as lost."""
ERRORS_PCT = 1.0
"""As E1."""
NOBODY = "nobody thinks under this load"
NO_THINK = 0.05
"""Users who think for less than this share of their response time do not think."""
WORKERS = "for users who never pause give --load-model work (in trials.csv: load_model = work)"


@check("I1", "Something was completed in the run", "no_throughput")
def completed(trial: Imported) -> Finding:
    x, r = trial.number("throughput_per_s"), trial.number("response_time_mean_ms")
    if np.isnan(r) and x > 0:
        return undecidable("response_time_mean_ms is empty")
    ok = x > 0
    return Finding(Outcome.PASS if ok else Outcome.FAIL, x, 0.0, "1/s", None, None, f"throughput is {x:g}/s")


@check("I2", "Users think between interactions", "no_think_time")
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


@check("I3", "Users by Little's law: X (Z + R) against N", "law")
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


@check("I4", "Response times are in milliseconds", "response_time_unit")
def response_unit(trial: Imported) -> Finding:
    r = trial.number("response_time_mean_ms")
    text = f"the mean response time is {r:.4g} ms"
    if r < MIN_RESPONSE_MS:
        text += ", less than any page takes: seconds? multiply by 1,000"
    return at_least(r, MIN_RESPONSE_MS, "ms", text) if np.isfinite(r) else undecidable("none", required=False)


@check("I5", "Interactions that failed", "errors")
def failed(trial: Imported) -> Finding:
    errors, good = trial.number("errors"), trial.number("interactions")
    good = trial.number("throughput_per_s") * trial.run_s if np.isnan(good) else good
    if np.isnan(errors) or not errors + good > 0:
        return undecidable("the data do not give errors", required=False)
    share, n = errors / (errors + good), errors + good
    text = f"{errors:.0f} of {n:.0f} interactions failed"
    finding = sampled(100 * share, ERRORS_PCT, 100 * np.sqrt(share * (1 - share) / n), "pct", text, round(n))
    return finding if finding.outcome is not Outcome.UNDECIDABLE else undecidable(text, n=round(n), required=False)


@check("I6", "interactions.csv against trials.csv: throughput", "files_differ")
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


@check("I7", "interactions.csv against trials.csv: mean response time", "files_differ")
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
