"""Ratios of rates, and claims, from the runs in results.csv: values in, values out.

Machines differ, and one machine differs from day to day. So runs are compared within an *occasion*: one machine on one
day. The logarithm of a rate is the occasion's plus the cell's, fitted by least squares. An occasion without a run of
one of the two cells says nothing. Each further machine or day adds runs to the same comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from ntier_analysis.expectation.claims import BETWEEN, Claim, Judged, of_parts, part
from ntier_analysis.expectation.outcomes import Outcome, bounded, within
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity
from ntier_analysis.statistics.values import estimated
from ntier_analysis.wording import counted

Run = tuple[Hashable, float]
"""The occasion that it was made on, and its rate."""
FORM = re.compile(
    r"ratio\(throughput\((?P<upper>[\d.]+) alter\) of (?P<a>\S+), "
    r"throughput\((?P<lower>[\d.]+) alter\) of (?P<b>\S+)\) "
    r"(?P<op>\S+) (?P<bound>[\d.]+)(?P<percent> %)?"
)
"""The expectations of this study: of alters per second at two sleeps, or of two sweeps."""


def ratio(upper: Sequence[Run], lower: Sequence[Run]) -> Quantity:
    """upper / lower with its 95 % interval over the runs (Student's t); NaN if no occasion has runs of both. There is
    no interval without a degree of freedom, as of one run each."""
    occasions = list(dict.fromkeys(s for s, _ in upper if s in {s for s, _ in lower}))
    runs = [(s, rate, cell) for cell, of in ((1, upper), (0, lower)) for s, rate in of if s in occasions]
    if not runs:
        return Quantity(math.nan, *UNKNOWN, "no machine has run both on one day")
    x = np.array([[*(float(s == here) for here in occasions), cell] for s, _, cell in runs])
    y = np.log([rate for _, rate, _ in runs])
    fitted, *_ = np.linalg.lstsq(x, y, rcond=None)
    freedom = len(runs) - x.shape[1]
    error = math.nan
    if freedom:
        variance = float(((y - x @ fitted) ** 2).sum()) / freedom
        error = math.sqrt(variance * np.linalg.inv(x.T @ x)[-1, -1])
    found = estimated(float(fitted[-1]), error, freedom, len(runs))
    ends = (math.exp(found.low), math.exp(found.high)) if math.isfinite(found.low) else UNKNOWN
    numbers = (sum(c == cell for *_, c in runs) for cell in (1, 0))
    note = f"of {' and '.join(counted(n, 'run') for n in numbers)}"
    if len(occasions) > 1:
        note += f", each compared within one of {len(occasions)} machines and days"
    return Quantity(math.exp(found.value), *ends, note, freedom or None)


def judge(claims: Sequence[Claim], runs: Callable[[str, float], Sequence[Run]]) -> list[Claim]:
    """`runs`: sweep and sleep -> its valid runs with alters per second. Raises ValueError for an expectation of another
    form, and for what a claim says beside it that runs do not tell: nothing of a claim is ignored."""
    for claim in claims:
        if claim.given:
            raise ValueError(f"claim {claim.name}: given: runs tell no verdict; leave it out, or put it into `says`")
        if claim.between:
            raise ValueError(f"{BETWEEN}: runs are compared within one machine and day; leave it out")
    return [of_parts(claim, [_part(claim, text, runs) for _, text in claim.parts]) for claim in claims]


def _part(claim: Claim, text: str, runs: Callable[[str, float], Sequence[Run]]) -> tuple[Judged, str]:
    asked = FORM.fullmatch(text)
    if not asked:
        raise ValueError(f"claim {claim.name}: {text!r}: expected ratio(throughput(SLEEP alter) of SWEEP, ...)")
    sides = [(asked["a"], float(asked["upper"])), (asked["b"], float(asked["lower"]))]
    missing = [f"{sweep} at {sleep:g} s" for sweep, sleep in sides if not runs(sweep, sleep)]
    if missing:
        return Judged.NOT_MEASURED, f"no valid run of {' and of '.join(missing)}"
    found = ratio(*(runs(*side) for side in sides))
    if math.isnan(found.value):
        return Judged.NOT_MEASURED, found.note
    bound = float(asked["bound"]) / (100 if asked["percent"] else 1)

    def judged(several: int) -> Outcome:
        known = found.one_of(several)
        return within(known, bound) if asked["op"] == "within" else bounded(known, asked["op"], bound)

    means = (np.exp(np.mean(np.log([rate for _, rate in runs(*side)]))) for side in sides)
    rates = " by ".join(f"{mean:.3g} alters/s" for mean in means)
    return part(judged(1), f"{found.text}; {rates}", len(claim.parts), judged)
