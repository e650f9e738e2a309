"""Reading stored verdicts against judging again, on 20 synthetic sweeps of 8 loads (tests/mesh.py).

    analysis/bench/stored_verdicts.py [--rounds 3] [--keep FOLDER]

Prints a line of JSON: seconds for all sweeps of the store, in turns, the median of the rounds, and the ratio. `--keep`
leaves two stores, judged/ and bare/ (without documents), to time whole commands on."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import mesh
from ntier_analysis.verdict.store import judge_again, verdicts
from ntier_analysis.verdict.tables import as_json


def make(folder: Path) -> tuple[Path, Path]:
    """(judged, bare)."""
    bare, judged = folder / "bare", folder / "judged"
    mesh.write_mesh(bare, databases=(1, 2, 3, 4, 5), apps=(1, 2), kinds=("M", "P"), skip=())
    shutil.copytree(bare, judged)
    judge_again(judged, [])
    return judged, bare


def seconds(store: Path) -> tuple[float, list[dict]]:
    begin = time.perf_counter()
    judged = verdicts(store, [])
    return time.perf_counter() - begin, [as_json(v) for v in judged]


def main() -> None:
    parser = argparse.ArgumentParser(description="Reading stored verdicts against judging again.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        judged, bare = make(options.keep or Path(temporary))
        verdicts(judged, [])  # imports
        pairs = [(seconds(judged), seconds(bare)) for _ in range(options.rounds)]
        read, made = ([p[k][0] for p in pairs] for k in (0, 1))
        row = {
            "sweeps": len(pairs[0][0][1]),
            "equal": all(a[1] == b[1] for a, b in pairs),
            "read_s": round(statistics.median(read), 4),
            "judged_s": round(statistics.median(made), 3),
            "ratio": round(statistics.median(b / a for a, b in zip(read, made, strict=True)), 1),
        }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
