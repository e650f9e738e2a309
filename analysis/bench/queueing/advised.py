"""The sentences of a verdict's advice, as what a user of the model does who follows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ntier_analysis.wording import node_of, resource

from queueing.cases import Case
from queueing.model import Key
from queueing.observe import node_name

POOL = "pool:"
REPEATS = 3
"""Trials of a load that is repeated."""


@dataclass
class Asked:
    """`loads`: nominal users to add; `trials`: names of those to repeat; `repeat`, `longer`: the loads beyond the knee;
    `warmer`: a longer ramp-up; `whole`: the sweep again; `view`: fields of the case's view that change; `blind`: the
    CPU without samples gets some; `end`: resources that something else fills, which is to end; `steps`: what there is
    to be more of; `left`: sentences that the model cannot follow."""

    loads: list[int] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    repeat: bool = False
    longer: bool = False
    warmer: bool = False
    whole: bool = False
    view: dict = field(default_factory=dict)
    blind: bool = False
    end: list[Key] = field(default_factory=list)
    steps: list[Key] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def anew(self) -> bool:
        """Whether it makes a new sweep."""
        return bool(self.longer or self.warmer or self.whole or self.view or self.blind or self.end)

    @property
    def anything(self) -> bool:
        return bool(self.anew or self.loads or self.trials or self.repeat or self.steps)


VIEWS = {
    "sample queue and waiting time of the disk": {"queues": True},
    "sample the CPUs ten times a second": {"cpu_s": 0.1},
    "record single interactions": {"interactions": True},
}


def asked(texts: list[str], case: Case) -> Asked:
    """What these sentences ask for."""
    found = Asked()
    for text in texts:
        seen = [fields for start, fields in VIEWS.items() if text.startswith(start)]
        if seen:
            found.view |= seen[0]
        elif loads := re.match(r"add (?:a load|loads) of (\d+(?:, \d+)*) ", text):
            found.loads += map(int, loads[1].split(", "))
        elif load := re.match(r"repeat the load of (\d+) ", text):
            found.loads += [int(load[1])] * (REPEATS - 1)
        elif trials := re.match(r"repeat (u\d+(?:, u\d+)*): invalid", text):
            found.trials += trials[1].split(", ")
        elif text.startswith("repeat the loads beyond the knee"):
            found.repeat = True
        elif text.startswith("run the loads beyond the knee longer"):
            found.longer = True
        elif text.startswith("give the system more time to warm up"):
            found.warmer = True
        elif text.startswith("repeat the sweep"):
            found.whole = True
        elif text.startswith("measure the CPU of"):
            found.blind = True
        elif text.startswith("find out what fills"):
            _filled(text, case, found)
        elif key := _raised(text, case):
            found.steps.append(key)
        else:
            found.left.append(text)
    return found


def _filled(text: str, case: Case, found: Asked) -> None:
    """Resources that read full at low load: what the user finds who looks what uses them."""
    named = [p for p in case.system.parts if f"{node_name(case, p.tier, p.node)} {p.resource}" in text]
    found.end += {p.key for p in named if p.batch is not None or p.switches}
    alone = {p.key for p in named if "repeat with a faster disk" in text} - set(found.end)
    found.steps += alone
    if not found.end and not alone:
        found.left.append(text)


def _raised(text: str, case: Case) -> Key | None:
    """What a sentence asks for more of: a pool, or the disk of a tier."""
    tests = {
        (tier, name): f"raise the {name.removeprefix(POOL)} of {tier} by a step"
        if name.startswith(POOL)
        else f"repeat with one more {node_of(tier)}: throughput grows if its {resource(name)} limits"
        for tier, name in case.system.keys()  # noqa: SIM118 (no mapping)
    }
    named = [key for key, start in tests.items() if text.startswith(start)]
    return named[0] if named else None
