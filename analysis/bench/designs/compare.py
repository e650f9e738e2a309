"""Compares designs of an experiment by simulation: minutes, bias, coverage, wrong bottlenecks.

    python analysis/bench/designs/compare.py FOLDER detector|queueing FIRST LAST [--spread 0.08] [--designs NAME ...]
    python analysis/bench/designs/compare.py FOLDER report

Writes a line per case and design to FOLDER/FAMILY.SPREAD.jsonl; a case that is there is not made again. `--spread`:
s.d. of the machine's speed, which forgets in a minute. All designs of a case meet the same system on the same machine.
`report` prints Markdown: each file and all together, with 95 % intervals in brackets. The maximum is that of a long
run; bias, error and coverage are of the cases that gave an interval and not only "at least"."""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from ntier_analysis.statistics.values import estimated
from ntier_analysis.verdict.sweep import judge_sweep
from scores import held_against, share_text, wrong

from designs.experiment import Experiment, pace
from designs.plans import DESIGNS, kept_down, returned
from designs.systems import FAMILIES, System


def judge(system: System, name: str, spread: float) -> dict:
    """Runs one design on one system; returns its line."""
    seed = zlib.crc32(f"{system.line['name']} {name}".encode()) % 2**31  # of its own, whatever else is compared
    experiment = Experiment(system, pace(system.seed, spread), seed)
    DESIGNS[name](experiment)
    ordered = sorted(experiment.trials, key=lambda t: t.load.users)
    verdict = judge_sweep(system.line["name"], "", ordered, 1.0, searched=name.startswith("search"))
    judged = held_against(system.line, verdict, ordered[-1])
    found, full = verdict.max_throughput, verdict.max_throughput is not None and not verdict.at_least
    line = {
        "case": system.line["name"], "variant": system.line["variant"], "truth": system.line["truth"], "design": name,
        "spread": spread, "maximum": system.maximum, "knee": system.knee, "minutes": experiment.seconds / 60,
        "trials": len(ordered), "full": full, "value": found.value if found else None,
        "low": found.low if found else None, "high": found.high if found else None, "outcome": judged.outcome,
        "right": judged.right, "wrong": wrong(judged), "users": [t.load.users for t in experiment.trials],
    }  # fmt: skip
    if name.startswith("staircase"):
        back = [r.value for r in returned(experiment.trials).values()]
        line |= {"returned": float(np.exp(np.mean(np.log(back)))), "kept_down": kept_down(experiment.trials)}
    return line


def make(path: Path, family: str, first: int, last: int, spread: float, names: list[str]) -> None:
    lines = [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
    done = {(x["number"], x["design"]) for x in lines}
    for number in range(first, last):
        wanted = [n for n in names if (number, n) not in done]
        if (number, "") in done or not wanted:
            continue
        began = time.monotonic()
        system = FAMILIES[family](number)
        made = [judge(system, n, spread) for n in wanted] if system else [{"design": ""}]  # left out
        with path.open("a") as out:
            out.write("".join(json.dumps({"number": number} | x) + "\n" for x in made))
        print(number, system.line["variant"] if system else "left out", f"{time.monotonic() - began:.1f} s", flush=True)


# ---- report --------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict]:
    return [x for x in map(json.loads, path.read_text().splitlines()) if x["design"]]


def report(title: str, lines: list[dict]) -> list[str]:
    head = ("design", "minutes", "loads", "interval given", "holds the maximum", "bias, %", "error (median), %",
            "half-width, %", "within 3 %", "right", "confident and wrong")  # fmt: skip
    text = [f"## {title}: {len({(x['case'], x['spread']) for x in lines})} cases", "", "| " + " | ".join(head) + " |",
            "|---" * len(head) + "|"]  # fmt: skip
    text += [row(n, [x for x in lines if x["design"] == n]) for n in DESIGNS if any(x["design"] == n for x in lines)]
    stairs = [x for x in lines if "returned" in x]
    if len(stairs) > 1:
        text += ["", _came_back(stairs)]
    return [*text, ""]


def _came_back(stairs: list[dict]) -> str:
    back = np.log([x["returned"] for x in stairs])
    named = share_text(sum(bool(x["kept_down"]) for x in stairs), len(stairs))
    return (
        "Throughput on the way down differs from that on the way up, at equal loads, by "
        f"{_mean(100 * np.expm1(back))} % (mean over the cases); from case to case by {100 * back.std(ddof=1):.1f} % "
        f"(s.d.). A load that the system serves no more was named in {named}."
    )


def row(name: str, some: list[dict]) -> str:
    full = [x for x in some if x["full"] and x["low"] is not None and np.isfinite(x["low"])]
    errors = 100 * np.array([x["value"] / x["maximum"] - 1 for x in full])
    widths = [50 * (x["high"] - x["low"]) / x["value"] for x in full]
    cells = [
        name, f"{np.mean([x['minutes'] for x in some]):.1f}", f"{np.mean([x['trials'] for x in some]):.1f}",
        f"{len(full)}/{len(some)}", share_text(sum(x["low"] <= x["maximum"] <= x["high"] for x in full), len(full)),
        _mean(errors), f"{np.median(abs(errors)):.1f}" if len(errors) else "-",
        f"{np.median(widths):.1f}" if widths else "-", share_text(sum(abs(errors) <= 3), len(errors)),
        share_text(sum(x["right"] for x in some), len(some)), share_text(sum(x["wrong"] for x in some), len(some)),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _mean(values: np.ndarray) -> str:
    """Mean and 95 % interval over the cases."""
    if len(values) < 2:
        return "-"
    n = len(values)
    found = estimated(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)), n - 1, n)
    return f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("family", choices=[*FAMILIES, "report"])
    options.add_argument("first", type=int, nargs="?", default=0)
    options.add_argument("last", type=int, nargs="?", default=0)
    options.add_argument("--spread", type=float, default=0.0)
    options.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS), metavar="NAME")
    chosen = options.parse_args()
    if chosen.family == "report":
        parts = {path.stem: read(path) for path in sorted(chosen.folder.glob("*.jsonl"))}
        for title, lines in {**parts, "all": [x for some in parts.values() for x in some]}.items():
            print("\n".join(report(title, lines)))
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    path = chosen.folder / f"{chosen.family}.{chosen.spread:g}.jsonl"
    make(path, chosen.family, chosen.first, chosen.last, chosen.spread, chosen.designs)


if __name__ == "__main__":
    main()
