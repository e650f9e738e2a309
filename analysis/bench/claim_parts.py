"""How often a claim of several parts differs though each part holds just so, by seeded simulation.

    python analysis/bench/claim_parts.py [--claims 1000]

Prints Markdown, the table of docs/analysis.md, in half a minute. The parts are independent (the worst case), of means
over trials that differ by 5 %; the true mean is the bound. In each cell the share of claims that differ: if each part
is judged at 95 % by itself, and as claims are judged. Beside it, of claims of which one part is truly off by so much
that alone it would nearly always differ, how many still do."""

from __future__ import annotations

import argparse

import numpy as np
from ntier_analysis.expectation.outcomes import Outcome, bounded
from ntier_analysis.expectation.quantity import mean_of_trials

CLAIMS = 1000
BETWEEN = 0.05
PARTS = (1, 2, 5, 10, 18, 30)
TRIALS = (3, 7)
OFF = 0.15
"""Of one part, below the bound."""


def differ(claims: int, parts: int, trials: int, off: float) -> tuple[float, float]:
    """Share of claims (mean >= 100 in each part) that differ: part by part, and together."""
    rng = np.random.default_rng((parts, trials))
    means = np.full(parts, 100.0)
    means[0] -= 100 * off
    alone = together = 0
    for _ in range(claims):
        values = means[:, None] * (1 + BETWEEN * rng.standard_normal((parts, trials)))
        found = [q for q in map(mean_of_trials, values) if bounded(q, ">=", 100.0) is Outcome.FAILS]
        alone += bool(found)
        together += any(bounded(q.one_of(parts), ">=", 100.0) is Outcome.FAILS for q in found)
    return alone / claims, together / claims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=CLAIMS)
    claims = parser.parse_args().claims
    head = [f"all hold, {t} trials each: {how}" for t in TRIALS for how in ("part by part", "together")]
    head += [f"one {OFF:.0%} off, {t} trials: together" for t in TRIALS]
    print(f"| parts | {' | '.join(head)} |\n|--:|{'--:|' * len(head)}")
    for parts in PARTS:
        shares = [share for t in TRIALS for share in differ(claims, parts, t, 0.0)]
        shares += [differ(claims, parts, t, OFF)[1] for t in TRIALS]
        print(f"| {parts} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")


if __name__ == "__main__":
    main()
