"""Whether nodes are alive and their collectors write, on machines that cannot be seen from outside: each node reports
it through one SSH connection that stays open. It costs the node four small processes every 2 s."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from ntier_analysis.contracts.nodes import Node

from ntier_harness.runner import Runner, Spawned
from ntier_harness.ssh import Nodes
from ntier_harness.targets import Reading

EVERY_S = 2
FRESH_S = 6.0  # three heartbeats; after that the node is asked


def command(remote: str) -> str:
    """A block per heartbeat: `cpu ...` (/proc/stat's first line), `<file> <time of its last write>`..., `at <time>`."""
    look = f"find {remote} -maxdepth 1 -type f -printf '%f %T@\\n' 2>/dev/null"
    return f"while head -n 1 /proc/stat && {{ {look}; echo at $(date +%s.%N); }}; do sleep {EVERY_S}; done"


@dataclass
class Beat:
    """The newest whole block of one node. `ages_s`: file -> seconds since its last write, by the node's own clock."""

    heard_s: float
    ages_s: dict[str, float] = field(default_factory=dict)
    ticks: tuple[int, int] = (0, 0)
    busy: float | None = None


class Heartbeats:
    """An `Observation` of whole machines. There is no host beneath them, so it has no collectors."""

    def __init__(self, runner: Runner, nodes: Nodes, remote: str, logs: Path) -> None:
        self.runner = runner
        self.collectors: list[str] = []
        self._tails: dict[str, Spawned] = {}
        self._open: dict[str, list[str]] = {}
        self._beats: dict[str, Beat] = {}
        self._files = {n.name: logs / f"heartbeat.{n.name}" for n in nodes.all}
        for node in nodes.all:
            self._files[node.name].unlink(missing_ok=True)
            self._tails[node.name] = nodes.spawn(node, command(remote), self._files[node.name])

    def problem(self) -> str | None:
        """A broken connection alone is not a problem: the nodes are then asked directly."""
        return None

    def _read(self, name: str) -> Beat | None:
        for line in self._tails[name].lines():
            self._open.setdefault(name, []).append(line)
            if line.startswith("at "):
                with contextlib.suppress(ValueError, IndexError):  # a line of the login shell is no heartbeat
                    self._beats[name] = parse(self._open[name], self.runner.now(), self._beats.get(name))
                self._open[name] = []
        return self._beats.get(name)

    def fresh(self, node: Node) -> bool:
        beat = self._read(node.name)
        return beat is not None and self.runner.now() - beat.heard_s < FRESH_S

    def newest(self, node: Node) -> dict[str, float] | None:
        beat = self._read(node.name)
        return {file: beat.heard_s - age for file, age in beat.ages_s.items()} if beat and self.fresh(node) else None

    def busy(self) -> dict[str, Reading]:
        beats = {name: self._read(name) for name in self._tails}
        return {name: Reading(b.heard_s, b.busy) for name, b in beats.items() if b and b.busy is not None}

    def stop(self) -> None:
        for name, tail in self._tails.items():
            tail.stop()
            self._files[name].unlink(missing_ok=True)

    def finish(self) -> None:
        """Leaves nothing in the trial's folder."""


def parse(lines: list[str], heard_s: float, before: Beat | None) -> Beat:
    """One block. Raises ValueError, IndexError if it is not one."""
    at = float(lines[-1].split()[1])
    cpu = next(line.split()[1:9] for line in lines if line.startswith("cpu "))
    user, nice, system, idle, iowait, irq, softirq, _ = (int(n) for n in cpu)
    ticks = (user + nice + system + irq + softirq, idle + iowait)
    files = [line.rsplit(" ", 1) for line in lines[:-1] if not line.startswith("cpu ")]
    beat = Beat(heard_s, {name: at - float(t) for name, t in files}, ticks)
    if before:
        busy, idle = (now - then for now, then in zip(ticks, before.ticks, strict=True))
        beat.busy = busy / (busy + idle) if busy >= 0 and idle >= 0 and busy + idle > 0 else None
    return beat
