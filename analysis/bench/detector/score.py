"""Scores the detector on made cases: verdicts against truth, intervals against long runs.

    python analysis/bench/detector/score.py FOLDER tuning|scoring [--wrong]

Prints Markdown. `--wrong`: also each case that was judged wrongly, with its evidence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from scores import Judged, by_variant, confusion, judged, per_class, share_text

from detector.make import REFERENCE
from detector.network import THINK_S


def cases(folder: Path, seeds: str) -> tuple[list[dict], int]:
    """Lines of the cases whose label holds, and how many were left out since it does not."""
    lines = [json.loads(x) for p in sorted(folder.glob(f"{seeds}.*.jsonl")) for x in p.read_text().splitlines()]
    return [x for x in lines if x["holds"]], sum(not x["holds"] for x in lines)


def by_length(cases: list[Judged]) -> list[str]:
    lines = ["| run | cases right | trials right |", "|---|---|---|"]
    for seconds in sorted({j.line["run_s"] for j in cases}):
        some = [j for j in cases if j.line["run_s"] == seconds]
        at = [trial_right(j) for j in some]
        lines.append(
            f"| {seconds:.0f} s | {share_text(sum(j.right for j in some), len(some))} | "
            f"{share_text(sum(at), len(at))} |"
        )
    return lines


def trial_right(j: Judged) -> bool:
    """Whether the trial at the highest load alone was judged rightly (class and pairs)."""
    _, v = j.verdict.trials[-1]
    kind = v.kind if v.verdict == "multi" else v.verdict
    said = {(b.tier, b.resource + f":{b.item}" * (b.resource == "pool")) for b in v.bottlenecks}
    return kind == j.line["truth"] and said == {(t, r) for t, r, _ in j.line["claims"]}


# ---- calibration ---------------------------------------------------------------------------------------------------


def share_coverage(cases: list[Judged]) -> list[str]:
    """95 % intervals of the saturation of each resource at the highest load, against the mean of runs alike."""
    rows = []
    for j in cases:
        true = {(n, r, i): s for n, r, i, s in j.line["shares_alike"]}
        for seen in j.top.saturations:
            s = true[seen.key]
            inside = seen.share.low - 1e-9 <= s <= seen.share.high + 1e-9
            rows.append((s, inside, j.line["run_s"], seen.interval_s < 0.5))
    lines = ["| share | samples of | run | intervals that hold it |", "|---|---|---|---|"]
    for low, high in ((0.02, 0.2), (0.2, 0.8), (0.8, 0.98), (0.02, 0.98)):
        for fast in (True, False):
            for seconds in (60.0, 180.0):
                hits = [i for s, i, r, f in rows if low <= s <= high and f == fast and r == seconds]
                if hits:
                    at = "0.1 s" if fast else "1 s"
                    lines.append(f"| {low} to {high} | {at} | {seconds:.0f} s | {share_text(sum(hits), len(hits))} |")
    inner = [i for s, i, *_ in rows if 0.02 <= s <= 0.98]
    extreme = [i for s, i, *_ in rows if not 0.02 <= s <= 0.98]
    lines.append(f"| 0.02 to 0.98 | all | all | {share_text(sum(inner), len(inner))} |")
    lines.append(f"| below 0.02 or above 0.98 | all | all | {share_text(sum(extreme), len(extreme))} |")
    return lines


def maximum_coverage(cases: list[Judged]) -> list[str]:
    """Interval of the maximum throughput, and the knee, against what runs alike give on average at the sweep's highest
    load, and against the long run. Systems that stop have no plateau, and no maximum."""
    limited = [
        j
        for j in cases
        if j.line["truth"] != "none"
        and j.line["variant"] != "stops"
        and j.verdict.max_throughput is not None
        and np.isfinite(j.verdict.max_throughput.low)
    ]
    lines = ["| | runs alike | long run | mean error | half-width |", "|---|---|---|---|---|"]
    for name, some in [
        ("all", limited),
        ("with interactions", [j for j in limited if j.line["interactions"]]),
        ("without", [j for j in limited if not j.line["interactions"]]),
        *((f"{s:.0f} s", [j for j in limited if j.line["run_s"] == s]) for s in (60.0, 180.0)),
        *((k, [j for j in limited if j.line["variant"] == k]) for k in sorted({j.line["variant"] for j in limited})),
    ]:
        if some:
            error = np.mean([j.verdict.max_throughput.value / j.line["x_alike"] - 1 for j in some])
            width = np.median([j.verdict.max_throughput.half_width / j.verdict.max_throughput.value for j in some])
            held = " | ".join(share_text(_held(some, key), len(some)) for key in ("x_alike", "x_reference"))
            lines.append(f"| maximum throughput, {name} | {held} | {error:+.3f} | {width:.3f} |")
    knees = [(j.verdict, j.line["x_alike"] * (THINK_S + j.line["base_s"]) / j.line["scale"]) for j in limited]
    if not knees:
        return lines
    errors = np.array([v.knee_users / k - 1 for v, k in knees])
    low, high = np.percentile(errors, [2.5, 97.5])
    held = sum(v.knee_interval[0] <= k <= v.knee_interval[1] for v, k in knees)
    lines.append(
        f"| knee | {share_text(held, len(knees))} | | {errors.mean():+.3f} | 95 % of errors {low:+.3f} to {high:+.3f} |"
    )
    return lines


def _held(some: list[Judged], key: str) -> int:
    return sum(j.verdict.max_throughput.low <= j.line[key] <= j.verdict.max_throughput.high for j in some)


def main() -> None:
    folder, seeds = Path(sys.argv[1]), sys.argv[2]
    lines, left_out = cases(folder, seeds)
    judged_cases = [judged(folder, line) for line in lines]
    print(f"{len(judged_cases)} cases ({left_out} more were drawn whose label did not hold)\n")
    for part in (confusion, per_class, by_variant, by_length):
        print("\n".join(part(judged_cases)), end="\n\n")
    alike = [j for j in judged_cases if "shares_alike" in j.line]
    print(f"saturations of {len(alike)} cases with runs alike\n")
    print("\n".join(share_coverage(alike)), end="\n\n")
    fresh = [j for j in judged_cases if j.line.get("reference") == REFERENCE]
    print(f"maxima of {len(fresh)} cases with references of version {REFERENCE}\n")
    print("\n".join(maximum_coverage(fresh)))
    if "--wrong" in sys.argv:
        for j in judged_cases:
            if not j.right:
                print(
                    "\n##", j.line["name"], j.line["variant"], j.line["claims"], "->", j.outcome, j.verdict.bottlenecks
                )
                print("\n".join(j.verdict.evidence))
                for at, v in j.verdict.trials:
                    print("  -", at.users_real, f"{at.throughput_per_s:.1f}/s lost {v.lost:.3f}", v.verdict, v.kind)
                print("\n".join("    " + e for e in j.verdict.trials[-1][1].evidence))


if __name__ == "__main__":
    main()
