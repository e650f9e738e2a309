"""Terraform as every target uses it: variables in, nodes out; its state is in the target's folder of the state."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node, read_nodes

from ntier_harness import durable
from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec


def common_variables(spec: Spec) -> dict[str, Any]:
    """What every target's root takes: how many of what, clients last."""
    definition = spec.system.definition
    tiers = [
        {"name": tier, "count": count, "node_type": spec.node_type(tier), "role": spec.role(tier),
         "image": spec.image(tier), "memory_floor_bytes": definition.tier(tier).memory_floor_bytes}
        for tier, count in spec.topology.counts.items()
    ]  # fmt: skip
    tiers.append({"name": CLIENT, "count": spec.clients, "node_type": CLIENT, "role": CLIENT, "image": CLIENT})
    return {"system": spec.system.name, "tiers": tiers, "scale": spec.scale}


def program(runner: Runner) -> str:
    """Terraform or OpenTofu: what `TERRAFORM` names, else the one that is installed. Both read the same files."""
    installed = (name for name in ("terraform", "tofu") if runner.has(name))
    return os.environ.get("TERRAFORM") or next(installed, "terraform")


class Terraform:
    """One target's root."""

    def __init__(self, runner: Runner, paths: Paths) -> None:
        self.runner = runner
        self.paths = paths
        self.root = paths.root / "terraform" / "targets" / paths.target
        self.program = program(runner)

    def apply(self, variables: dict[str, Any], log: Path) -> list[Node]:
        """Applies the root and writes `nodes.json`."""
        durable.write(self._variables, json.dumps(variables, indent=1))
        self._init(log)
        self._run("apply", "-input=false", "-auto-approve", f"-var-file={self._variables}", log=log)
        argv = [self.program, f"-chdir={self.root}", "output", "-json", "nodes"]
        durable.write(self.paths.nodes, self.runner.run(argv, env=self.env).out)
        return read_nodes(self.paths.nodes)

    def destroy(self, log: Path) -> None:
        """Does nothing if nothing was ever applied."""
        if self._state.exists():
            self._init(log)
            extra = [f"-var-file={self._variables}"] if self._variables.exists() else []
            self._run("destroy", "-input=false", "-auto-approve", *extra, log=log)

    @property
    def env(self) -> dict[str, str]:
        return {
            "TF_IN_AUTOMATION": "1",
            "TF_DATA_DIR": str(self.paths.place / "terraform"),
            "NTIER_STATE": str(self.paths.state),
        }

    @property
    def _state(self) -> Path:
        return self.paths.place / "terraform.tfstate"

    @property
    def _variables(self) -> Path:
        return self.paths.place / "topology.auto.tfvars.json"

    def _init(self, log: Path) -> None:
        self._run("init", "-input=false", "-reconfigure", f"-backend-config=path={self._state}", log=log)

    def _run(self, command: str, *arguments: str, log: Path) -> None:
        wait = [] if command == "init" else ["-lock-timeout=30s"]
        argv = [self.program, f"-chdir={self.root}", command, *wait, *arguments, "-no-color"]
        tail: list[str] = []
        code = self.runner.lines(argv, tail.append, log=log, env=self.env)
        if code:
            errors = [line.strip("│ ") for line in tail if "rror:" in line]
            raise WorkError(f"terraform {command}: {'; '.join(errors[:3]) or f'exit code {code}'}; its output: {log}")
