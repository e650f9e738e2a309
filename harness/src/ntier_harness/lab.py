"""What every part of a run needs at hand: runner, target, nodes, screen, and the facts that go into each manifest."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.manifest import Host
from ntier_analysis.contracts.nodes import read_nodes

from ntier_harness.errors import WorkError, needs_root
from ntier_harness.live import Live
from ntier_harness.machine import cpu_model, memory_info
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.sampler import is_v2
from ntier_harness.screen import Screen
from ntier_harness.ssh import Nodes
from ntier_harness.targets import Target

HOST_STATUS_KEYS = ("MemTotal", "MemAvailable", "SwapTotal")


@dataclass
class Lab:
    """One machine's experiment, for one use of the command."""

    runner: Runner
    paths: Paths
    target: Target
    screen: Screen
    command: str = ""
    host: Host | None = None
    commit: str | None = None
    clean: bool | None = None
    versions: dict[str, str] = field(default_factory=dict)
    live: Live = field(default_factory=Live)
    told: dict[str, tuple[dict[str, Any], dict[str, str]]] = field(default_factory=dict)
    """Node -> its facts when its programs were asked for their versions, and what they said."""
    held: int | None = None
    """Descriptor of the folder of results while it is ours alone (`sweep.hold_results`)."""
    _nodes: Nodes | None = None

    @property
    def nodes(self) -> Nodes:
        """The nodes that are up. Raises WorkError if there are none, RequestError if only root may know."""
        if self._nodes is None:
            try:
                self._nodes = Nodes(self.runner, self.paths, read_nodes(self.paths.nodes))
            except FileNotFoundError:
                raise WorkError("no nodes are up; run: make up TOPO=...") from None
            except PermissionError:
                raise needs_root(self.paths.place) from None
            except ValueError as error:
                raise WorkError(f"nodes: {error}") from None
        return self._nodes

    def forget_nodes(self) -> None:
        self._nodes = None

    def describe(self) -> None:
        """Reads what is the same for all trials of this run: host, commit, versions of the tools."""
        self.host = host(self.runner)
        git = ["git", "-C", str(self.paths.root)]
        if head := self._said([*git, "rev-parse", "HEAD"]):
            self.commit = head
            self.clean = not self._said([*git, "status", "--porcelain"])
        terraform = self.runner.run([self.target.terraform, "version", "-json"], check=False)
        if terraform.code == 0:
            program = "tofu" if "tofu" in Path(self.target.terraform).name else "terraform"
            self.versions[program] = json.loads(terraform.out).get("terraform_version", "unknown")
        if incus := self._said(["incus", "--version"]):
            self.versions["incus"] = incus

    def _said(self, argv: list[str]) -> str:
        """What a program prints; nothing if it fails, or is not installed: not every target needs all of them."""
        if not self.runner.has(argv[0]):
            return ""
        done = self.runner.run(argv, check=False)
        return done.out.strip() if done.code == 0 else ""


def host(_runner: Runner) -> Host:
    memory = memory_info()
    facts: dict[str, Any] = {k: memory[k] for k in HOST_STATUS_KEYS if k in memory}
    facts |= {"cpu_model": model} if (model := cpu_model()) else {}
    facts["load_average"] = list(os.getloadavg())
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return Host(
        cores=os.cpu_count() or 1,
        memory_bytes=memory["MemTotal"],
        kernel=platform.release(),
        os=release.get("PRETTY_NAME", platform.system()),
        cgroup_version=2 if is_v2() else 1,
        facts=facts,
    )
