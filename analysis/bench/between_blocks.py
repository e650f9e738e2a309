"""How often the ratio of two identical cells of different blocks is not 1 by its interval: by what trials differ by
alone, and with what blocks differ by. Seeded simulation.

    python analysis/bench/between_blocks.py

Prints Markdown (docs/analysis.md, throughput without the machine's speed) in some seconds."""

from __future__ import annotations

import numpy as np
from ntier_analysis.expectation.quantity import mean_of_trials, quotient
from ntier_analysis.expectation.sides import Between, Blocks, Side

BLOCKS_SD, FREEDOM = 0.045, 13  # studies/ntier-scalability/claims.yaml
CASES = ((3, 3, 0.042, 0.042), (3, 7, 0.06, 0.06), (3, 8, 0.02, 0.06), (7, 8, 0.06, 0.06), (3, 3, 0.01, 0.01))
"""Trials on either side, and what they differ by (s.d.)."""
PAIRS = 4000


def main() -> None:
    rng = np.random.default_rng(1)
    between = Blocks(differ={"cores(web)": Between(BLOCKS_SD, FREEDOM)}).between(
        [Side("cores", "web", False, name) for name in ("a", "b")]
    )
    assert between is not None
    print("| trials | they differ by | not 1 by trials alone | with what blocks differ by |\n|---|---|--:|--:|")
    for *trials, one, other in CASES:
        missed = np.zeros(2)
        for _ in range(PAIRS):
            a, b = (
                mean_of_trials(np.exp(rng.normal(0, BLOCKS_SD) + rng.normal(0, sd, n)))
                for n, sd in zip(trials, (one, other), strict=True)
            )
            for i, upper in enumerate((a, quotient(a, between))):
                ratio = quotient(upper, b)
                missed[i] += ratio.low is not None and not ratio.low <= 1 <= ratio.high
        alone, together = (f"{100 * share:.1f} %" for share in missed / PAIRS)
        print(f"| {trials[0]} and {trials[1]} | {one:.1%} and {other:.1%} | {alone} | {together} |")


if __name__ == "__main__":
    main()
