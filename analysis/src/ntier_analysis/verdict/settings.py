"""What throughput gained when one setting was changed and nothing else: a larger pool, an index that is there."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

from ntier_analysis.contracts.layout import Layout
from ntier_analysis.statistics.ratios import of_intervals
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.replicas import REFUTES
from ntier_analysis.wording import with_ends

DEFAULT = "its default"


def with_settings(found: list[SweepVerdict], setting: dict[str, tuple[Layout, tuple, str]]) -> list[SweepVerdict]:
    """Each sweep with what every other one says of it that differs in one setting. `setting`: their nodes, what else
    must be equal, and the settings that were asked for (JSON).

    The verdict stays: a setting may relieve what limits, or make the same work cheaper, and the maximum does not tell
    which."""
    said: dict[str, list[str]] = {v.sweep: [] for v in found}
    for here, there in permutations(found, 2):
        changed = only_setting(setting[here.sweep], setting[there.sweep])
        if changed and (text := _gain(here, there, *changed)):
            said[here.sweep].append(text)
    return [replace(v, evidence=[*v.evidence, *said[v.sweep]]) for v in found]


def only_setting(here: tuple[Layout, tuple, str], there: tuple[Layout, tuple, str]) -> tuple[str, str, str] | None:
    """Name of the only setting in which two sweeps differ that are else alike, and both values; None otherwise."""
    if here[:2] != there[:2] or here[2] == there[2]:
        return None
    mine, others = (_by_name(s[2]) for s in (here, there))
    names = [n for n in mine.keys() | others.keys() if mine.get(n) != others.get(n)]
    return (names[0], *(str(d.get(names[0], DEFAULT)) for d in (mine, others))) if len(names) == 1 else None


def _by_name(text: str) -> dict:
    """An imported table may have any text."""
    try:
        found = json.loads(text)
    except ValueError:
        found = text
    return found if isinstance(found, dict) else {"settings": found}


def _gain(here: SweepVerdict, there: SweepVerdict, name: str, mine: str, others: str) -> str:
    """The maximum of `there` may be "at least": the ratio is then too. One that is `here` says nothing."""
    before, after = here.max_throughput, there.max_throughput
    if before is None or after is None or here.at_least or min(before.value, after.value) <= 0:
        return ""
    ratio = of_intervals(before, after)
    text = (
        f"with {name} at {others} instead of {mine} ({there.sweep}) the maximum is "
        f"{'at least ' if there.at_least else ''}{with_ends(ratio.value, ratio.low, ratio.high)} times this one"
    )
    return f"{text}: it relieves what limits, or makes work cheaper" if ratio.low > 1 + REFUTES else text
