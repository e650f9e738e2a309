"""JMeter as a driver: any plan, and plans whose users walk a mix's table by the plug-in (workloads/README.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ntier_harness.catalog import Mix
from ntier_harness.drivers import BIN, REMOTE, Run, Share, leaving

HEAP_BYTES_PER_USER = 200_000  # 13,000 users fit in 3.2 GB with the JVM's own 600 MB
HEAP_BASE_BYTES = 256 * 2**20
CONTENT_PAGES = 1000  # pages whose content is checked in a run: five times what the check needs (E2, docs/validity.md)
CONTENT_SHARE_MIN = 0.1  # beyond the knee fewer interactions complete than N/Z; a tenth of them is still enough


@dataclass(frozen=True)
class Walks:
    """Users who walk the tables of a mix, which are in the folder `tables` on the client. `keep`: number of situations
    that the run leaves on the client, for users of later runs to start in; 0: this run's users start in those that are
    there."""

    mix: Mix
    tables: str
    keep: int = 0
    data: Mapping[str, str] = field(default_factory=dict)
    """Properties that follow from the data (`of_system.of_data`)."""
    trace_every: int = 0
    """One interaction of so many carries a trace context; 0: none."""

    @property
    def situations(self) -> str:
        return situations_file(self.mix)

    def properties(self, run: Run) -> dict[str, Any]:
        file, authors = self.mix.file, self.mix.author_file
        assert file
        return {
            "ntier.mix": f"{self.tables}/{file.name}",
            "ntier.author_mix": f"{self.tables}/{authors.relative_to(file.parent)}" if authors else "",
            "ntier.author_share": f"{self.mix.author_share:g}",
            "ntier.timeout_ms": 0,  # a slow system is waited for
            "ntier.content_share": f"{content_share(run):.3f}",
            "ntier.keep_situations": self.keep,
            "ntier.situations": "" if self.keep else f"{run.directory}/situations.csv",
            **({"ntier.trace_every": self.trace_every} if self.trace_every else {}),
            **self.data,
        }


@dataclass(frozen=True)
class JMeter:
    """`plan`: a .jmx on the client. `own_thread_group`: its own thread groups make the load."""

    plan: str
    own_thread_group: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    walks: Walks | None = None
    title: str = "JMeter"

    def command(self) -> list[str]:
        return [f"{BIN}/run-jmeter"]

    def prepare(self, run: Run) -> str:
        if self.walks is None or self.walks.keep:
            return ""
        kept, mine = self.walks.situations, f"{run.directory}/situations.csv"
        if self.walks.mix.authors_start_at_home:
            return f"grep -v ^1, {kept} >{mine}"  # lines of authors begin with 1
        return f"cp {kept} {mine}"

    def configuration(self, run: Run, share: Share) -> dict[str, Any]:
        leave = leaving(run, share)
        users = share.workers + (leave.workers if leave else 0)
        heap = math.ceil((HEAP_BASE_BYTES + users * HEAP_BYTES_PER_USER) / 2**20)
        properties = dict(self.properties) | (self.walks.properties(run) if self.walks else {})
        settings = {"plan": self.plan, "own_thread_group": self.own_thread_group, "heap": f"{heap}m"}
        return {"jmeter": settings | {"properties": properties}}


def situations_file(mix: Mix) -> str:
    """Where the warm-up leaves its users' situations on each client; users of trials start there."""
    return f"{REMOTE}/situations.{mix.name}.csv"


def content_share(run: Run) -> float:
    """Share of the pages whose content is checked, so that short runs check enough and long ones not too many."""
    assert run.think_time_s
    expected = run.workers / run.think_time_s * run.phases.run_s
    return min(1.0, max(CONTENT_SHARE_MIN, CONTENT_PAGES / expected))
