"""A case with its verdict, and the tables that say how many were right; for any family of known truth.

A case is right only if class, (tier, resource) pairs and nodes are; `unknown` is a class of its own, whose right answer
is `unknown`."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ntier_analysis.contracts import Check
from ntier_analysis.statistics import share, stationarity
from ntier_analysis.statistics.share import wilson
from ntier_analysis.store.tables import read_table
from ntier_analysis.validity import loads
from ntier_analysis.validity import sweep as checks
from ntier_analysis.verdict import load, saturation, stops, tables
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.sweep import judge_sweep

OUTCOMES = ("none", "single", "simultaneous", "alternating", "hidden", "unknown")


@dataclass
class Judged:
    """A case with its verdict. `named`: the (tier, resource) pairs are right; `placed`: the nodes too."""

    line: dict
    verdict: SweepVerdict
    outcome: str
    named: bool
    placed: bool
    top: TrialData

    @property
    def right(self) -> bool:
        return self.outcome == self.line["truth"] and self.placed

    @property
    def admissible(self) -> bool:
        """Right, or right if what counts as a gain were the lower or the upper end of what is unsure."""
        pairs = frozenset(
            (b.tier, b.resource + f":{b.item}" * (b.resource == "pool")) for b in self.verdict.bottlenecks
        )
        outcome = "multi" if len(pairs) > 1 else self.outcome
        return self.right or (outcome, pairs) in [by_gains(self.line, limit) for limit in UNSURE]


UNSURE = (0.03, 0.08)
"""A gain of throughput in here that decides makes a case borderline; 0.05 is what counts (docs/detector.md)."""
UNSEEN = ("lock", "thread", "stop")


def by_gains(line: dict, limit: float) -> tuple[str, frozenset]:
    """Class (`multi` for several) and parts of a case if a gain of `limit` counted."""
    gains = line["gains"]
    if max(gains.get(k, 0.0) for k in ("all", "claimed", "others")) < limit:
        return "none", frozenset()
    alone = {
        tuple(k.split(" ", 1)): g
        for k, g in gains.items()
        if " " in k and "," not in k and k.split()[0] not in RELIEVED
    }
    parts = {k for k, g in alone.items() if g >= limit} or {(t, r) for t, r, _ in line["claims"]}
    if not parts:  # nothing alone, and no set was claimed: the two that gain most
        parts = set(sorted(alone, key=lambda k: -alone[k])[:2])
    unseen = {tuple(k) for k in line.get("unseen", ())}
    if not parts or parts & unseen or {r for _, r in parts} & set(UNSEEN):
        return "hidden", frozenset()
    return ("single" if len(parts) == 1 else "multi"), frozenset(parts)


RELIEVED = ("claimed", "without")
"""First words of reliefs of more than one part."""

MEASURED = (tables, saturation, share, load, stops, checks, loads, stationarity)
"""Modules that decide what is measured of a trial and of a sweep: while they stay the same, it is kept."""

Seen = tuple[list[TrialData], list[Check]]
"""What the verdict takes of a case: its trials, and the checks of the whole sweep."""


def seen_of(folder: Path, name: str) -> Seen:
    digest = hashlib.sha256(b"".join(Path(str(m.__file__)).read_bytes() for m in MEASURED)).hexdigest()[:12]
    path = folder / "cache" / digest / f"{name}.pickle"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [read_table(folder / "store", t, name) for t in ("trials", "samples", "nodes", "interactions")]
        if kept[3].empty:
            kept[3] = None
        trials = tables.trial_data(*kept)[0]
        unsettled = [t.load.trial for t in trials if not t.load.settled]
        path.write_bytes(pickle.dumps((trials, checks.sweep_checks(*kept, unsettled=unsettled))))
    return pickle.loads(path.read_bytes())


def judged(folder: Path, line: dict) -> Judged:
    return judged_of(line, *seen_of(folder, line["name"]))


def judged_of(line: dict, trials: list[TrialData], found: list[Check]) -> Judged:
    """By the rules of the sweep and, as for a user, of a system that is cold."""
    verdict = tables.unless_cold(judge_sweep(line["name"], "", trials, line["scale"]), found)
    return held_against(line, verdict, trials[-1])


def held_against(line: dict, verdict: SweepVerdict, top: TrialData) -> Judged:
    """A verdict beside what is true; `top`: the trial at the highest load."""
    outcome = verdict.kind if verdict.verdict == "multi" else verdict.verdict
    said = {(b.tier, b.resource + f":{b.item}" * (b.resource == "pool")): tuple(b.nodes) for b in verdict.bottlenecks}
    true = {(t, r): tuple(n) for t, r, n in line["claims"]}
    return Judged(line, verdict, outcome, set(said) == set(true), said == true, top)


def share_text(hits: int, n: int) -> str:
    low, high = wilson(hits / n, n, 1.96) if n else (0.0, 1.0)
    return f"{hits}/{n} = {hits / n if n else float('nan'):.3f} [{low:.3f}, {high:.3f}]"


def wrong(j: Judged) -> bool:
    """Confident and wrong: a verdict other than unknown that errs in class, (tier, resource) or nodes."""
    return j.outcome != "unknown" and not j.right


def fraction(cases: list[Judged], test: Callable[[Judged], bool]) -> str:
    return share_text(sum(test(j) for j in cases), len(cases))


def confusion(cases: list[Judged]) -> list[str]:
    """Rows: truth; columns: verdict. In brackets: how many of those on the diagonal name other parts or nodes."""
    count = Counter((j.line["truth"], j.outcome) for j in cases)
    misnamed = Counter(j.line["truth"] for j in cases if j.outcome == j.line["truth"] and not j.right)
    lines = ["| truth \\ verdict | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 1) + "|"]
    for t in OUTCOMES:
        cells = [str(count[t, o]) + (f" ({misnamed[t]} misnamed)" if o == t and misnamed[t] else "") for o in OUTCOMES]
        lines.append(f"| {t} | " + " | ".join(cells) + " |")
    return lines


def per_class(cases: list[Judged]) -> list[str]:
    lines = ["| class | recall | precision | class alone | unknown | confident and wrong |", "|---" * 6 + "|"]
    recalls, precisions = [], []
    for kind in OUTCOMES:
        true, said = [j for j in cases if j.line["truth"] == kind], [j for j in cases if j.outcome == kind]
        if not true:
            continue
        hits = sum(j.right for j in true)
        recalls.append(hits / len(true))
        precisions.append(hits / len(said) if said else 0.0)
        alone = sum(j.outcome == kind for j in true)
        abstained = sum(j.outcome == "unknown" for j in true)
        cells = [share_text(hits, len(true)), share_text(hits, len(said)), f"{alone}/{len(true)}", str(abstained)]
        lines.append(f"| {kind} | " + " | ".join(cells) + f" | {sum(map(wrong, true))} |")
    told = len(recalls) - any(j.line["truth"] == "unknown" for j in cases)  # `unknown` is the last of OUTCOMES
    for name, n in (("macro", len(recalls)), ("macro without unknown", told)):
        if n:
            macro = [macro_text(values[:n], len(cases)) for values in (recalls, precisions)]
            lines.append(f"| **{name}** | {macro[0]} | {macro[1]} | | | |")
    return lines


def macro_text(values: list[float], n: int) -> str:
    mean = float(np.mean(values))
    low, high = wilson(mean, n, 1.96)
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def totals(cases: list[Judged]) -> list[str]:
    knowable = [j for j in cases if j.line["truth"] != "unknown"]
    return [
        f"* right: {fraction(cases, lambda j: j.right)}",
        f"* confident and wrong: {fraction(cases, wrong)}",
        f"* right, or right at either end of what is unsure: {fraction(cases, lambda j: j.admissible)}",
        f"* abstained where something can be said: {fraction(knowable, lambda j: j.outcome == 'unknown')}",
    ]


def by_variant(cases: list[Judged]) -> list[str]:
    lines = ["| truth | variant | right | unknown | confident and wrong |", "|---|---|---|---|---|"]
    for key in sorted({(j.line["truth"], j.line["variant"]) for j in cases}):
        some = [j for j in cases if (j.line["truth"], j.line["variant"]) == key]
        right, abstained = sum(j.right for j in some), sum(j.outcome == "unknown" for j in some)
        lines.append(f"| {key[0]} | {key[1]} | {right}/{len(some)} | {abstained} | {sum(map(wrong, some))} |")
    return lines


def agreement(j: Judged) -> str:
    """How many of the trials beyond the knee say what the sweep's verdict says."""
    said = {(b.tier, b.resource) for b in j.verdict.bottlenecks}
    sweep = j.verdict
    some = [v for load, v in sweep.trials if load.users in sweep.plateau_users] or [v for _, v in sweep.trials]
    same = sum(v.verdict == sweep.verdict and {(b.tier, b.resource) for b in v.bottlenecks} == said for v in some)
    if same < len(some):
        return "some trials say something else"
    return "all trials agree, three or more" if same >= 3 else "all trials agree, one or two"


def by_agreement(cases: list[Judged]) -> list[str]:
    """How often a verdict that commits itself is right, by what a user sees of it."""
    lines = ["| of the verdicts that name something | right |", "|---|---|"]
    committed = [j for j in cases if j.outcome != "unknown"]
    for level in sorted({agreement(j) for j in committed}):
        some = [j for j in committed if agreement(j) == level]
        lines.append(f"| {level} | {share_text(sum(j.right for j in some), len(some))} |")
    return lines
