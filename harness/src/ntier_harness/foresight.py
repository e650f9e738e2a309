"""What minutes buy: how narrow the interval of the maximum will be after so many trials, as earlier ones tell."""

from __future__ import annotations

import json
import os
from typing import Any

from ntier_analysis.wording import counted

from ntier_harness import plan
from ntier_harness.errors import WorkError
from ntier_harness.lab import Lab
from ntier_harness.screen import duration
from ntier_harness.spec import SEARCH_LEAST, SEARCH_MOST, Spec
from ntier_harness.standby import ANALYSIS

BELOW = 1
"""Loads of a search below the knee: the lowest one."""
REPS = (1, 2, 3)
ENOUGH = 99
"""Repetitions after which a precision counts as out of reach."""


def foreseen(lab: Lab, spec: Spec) -> dict[str, Any] | None:
    """Source, `plateau_users` (the lowest and the highest load that count for the maximum), and `offers`: [{loads,
    reps, seconds, half_width: [expected, least, most]}], the last one for the precision asked for, if it needs more
    than the others. None if the store has no trials beyond the knee of this topology; {problem} if it cannot be
    read."""
    store, up = lab.paths.results / "store", os.path.exists(lab.paths.nodes)
    if not (store / "trials").is_dir():
        return None
    try:
        done = lab.runner.run(
            [ANALYSIS, "foresee", "--json", "--store", str(store), "--topology", str(spec.topology), "--scale",
             f"{spec.scale:g}", "--run-s", f"{spec.phases.run_s:g}", "--most", str(ENOUGH * SEARCH_MOST), spec.sweep],
            timeout=60,
        )  # fmt: skip
    except WorkError as error:  # a plan is of use without it
        return {"problem": str(error)}
    try:
        told = json.loads(done.out)
        if told["source"] is None:
            return None
        widths = {int(n): ends for n, ends in told["half_widths"].items()}
        kept = ("source", "trials_n", "throughput_per_s", "total", "within", "run_s", "plateau_users")
        return {k: told[k] for k in kept} | {"offers": list(offers(spec, told["plateau_users"], widths, up=up))}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WorkError(f"plan: {ANALYSIS} printed no half-widths: {done.out[:200]!r}") from None


def counting(spec: Spec, plateau_users: list[float]) -> int:
    """How many loads of the request lie between the lowest and the highest that count for the maximum."""
    return sum(plateau_users[0] <= u <= plateau_users[1] for u in spec.users)


def offers(
    spec: Spec, plateau_users: list[float], widths: dict[int, list[float]], *, up: bool = False
) -> list[dict[str, Any]]:
    """`widths`: of the mean of so many trials beyond the knee; `up`: the nodes are."""
    if spec.search == "grid":
        sizes = [(len(spec.users), counting(spec, plateau_users))]
    else:
        room = spec.users[-1] >= plateau_users[0]
        sizes = [(n, (n - BELOW) * room) for n in sorted({SEARCH_LEAST, spec.most_loads, SEARCH_MOST})]

    def offer(loads: int, above: int, reps: int) -> dict[str, Any] | None:
        seconds = plan.sweep_duration_s(spec, loads * reps, deployed=False, up=up)
        width = widths.get(above * reps)
        return width and {"loads": loads, "reps": reps, "seconds": seconds, "half_width": width}

    found = [offer(*size, reps) for size in sizes for reps in sorted({*REPS, spec.reps})]
    found = sorted(filter(None, found), key=lambda o: o["seconds"])
    if spec.asked_precision and not any(o["half_width"][0] <= spec.asked_precision for o in found):
        more = (offer(*sizes[-1], reps) for reps in range(1, ENOUGH + 1))
        found += [o for o in more if o and o["half_width"][0] <= spec.asked_precision][:1]
    return found


def lines(told: dict[str, Any] | None) -> list[str]:
    if told is None:
        return [
            "precision of the maximum: unknown until there are trials of this topology; then it is given by minutes"
        ]
    if "problem" in told:
        return [f"precision of the maximum: not known ({told['problem']})"]
    trials = counted(told["trials_n"], "trial")
    text = [
        f"precision of the maximum, foreseen from {trials} of {told['source']} (they differ by "
        f"{100 * told['total']:.1f} %; a run of {told['run_s']:g} s knows its own throughput to "
        f"{100 * told['within']:.1f} %, one standard deviation each):"
    ]
    if not told["offers"]:
        low, high = told["plateau_users"]
        text.append(
            f"  none: an interval needs two loads that count for the maximum, {low:g} to {high:g} users by those trials"
        )
    for o in told["offers"]:
        middle, low, high = (100 * w for w in o["half_width"])
        times = f", {o['reps']} times each" if o["reps"] > 1 else ""
        text.append(
            f"  {counted(o['loads'], 'load') + times:<24} {duration(o['seconds']):>12}   +-{middle:.1f} %  "
            f"(8 times in 10 between {low:.1f} and {high:.1f} %)"
        )
    return text
