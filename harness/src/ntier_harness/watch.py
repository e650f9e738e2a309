"""Watches a running trial: heartbeats, collectors, nodes. A trial that cannot become valid any more is cut short."""

from __future__ import annotations

from dataclasses import dataclass, field

from ntier_analysis.contracts.manifest import Manifest, Phase

from ntier_harness.errors import WorkError
from ntier_harness.lab import Lab
from ntier_harness.load import Generator
from ntier_harness.targets import Observation, Reading

POLL_S = 1.0
SILENT_S = 5.0  # collectors write every second: a dead one is noticed within this time
LOOK_EVERY_S = 2.0


def hottest(readings: dict[str, Reading]) -> tuple[str, float] | None:
    """Node with the largest share of its capacity in use lately, and that share (0..1)."""
    return max(((name, r.share) for name, r in readings.items()), key=lambda item: item[1], default=None)


@dataclass
class Watch:
    """`until` returns at the given time, or when a fixed amount of work is done; or raises WorkError with the reason
    why the trial is lost."""

    lab: Lab
    generator: Generator
    observation: Observation
    remote: str
    manifest: Manifest
    looked_s: float = 0.0
    missing: dict[str, float] = field(default_factory=dict)

    def until(self, end_s: float, phase: Phase) -> None:
        runner = self.lab.runner
        while (left := end_s - runner.now()) > 0:
            runner.sleep(min(left, POLL_S))
            if end_s - runner.now() < 0.05 and phase.name == "ramp_down":
                return  # the clients end now: silence is not a failure
            progress = self.generator.poll()
            if self.generator.finished_s is not None:
                return
            self.check_collectors()
            readings = self.observation.busy()
            self.lab.live.tick(phase, progress, readings, runner.now())
            self.lab.screen.tick(phase, progress, hottest(readings), runner.now())

    def check_collectors(self) -> None:
        """Raises WorkError if a node is gone or a collector has not written for SILENT_S."""
        now = self.lab.runner.now()
        if now - self.looked_s < LOOK_EVERY_S:
            return
        self.looked_s = now
        if problem := self.observation.problem():
            raise WorkError(problem)
        for node in self.lab.nodes.all:
            if not self.lab.target.present(node):
                raise WorkError(f"node_gone: {node.name} does not run any more")
            files = self.lab.target.newest(node, self.remote)
            if files is None:
                continue  # not readable from here: the check of gaps decides after collecting
            for name in self.manifest.collectors.get(node.name, []):
                written = max((t for f, t in files.items() if f.split(".")[0] == name), default=None)
                since = now - (written if written is not None else self.missing.setdefault(f"{node.name}/{name}", now))
                if since > SILENT_S:
                    raise WorkError(f"collector_dead: {name} on {node.name} has not written for {since:.0f} s")
