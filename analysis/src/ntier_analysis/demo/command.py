"""`ntier-analysis demo`: unpacks the measured sweeps, writes reports, says what to look at."""

from __future__ import annotations

import sys
from pathlib import Path

from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.report import write_report
from ntier_analysis.report.words import verdict_sentence
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.store import judge_again, verdicts
from ntier_analysis.verdict.tables import as_json


def run(out: Path, *, everything: bool) -> None:
    """Prints the verdict of each sweep and the path of its report; progress goes to stderr."""
    store = unpack(out)
    judge_again(store, [])  # the package's tables are of the program that measured
    print(f"data: {store}; drawing the report (about half a minute) ...", file=sys.stderr, flush=True)
    for name in sweeps(store) if everything else [SWEEP]:
        scale = float(read_table(store, "trials", name)["scale"].iloc[0])
        print(verdict_sentence(as_json(verdicts(store, [name])[0]), scale), flush=True)
        print(write_report(store, name, out / "reports").resolve(), flush=True)
    other = next(name for name in reversed(sweeps(store)) if name != SWEEP)
    print(f"\nNext:\n  ntier-analysis compare {SWEEP} {other} --store {store}", file=sys.stderr)
    print(
        f"  ntier-analysis check --store {store} --sweep {SWEEP} --expect 'verdict == single db cpu'", file=sys.stderr
    )
