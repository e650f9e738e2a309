"""Terraform as every target uses it: variables in, nodes out; its state is in the target's folder of the state."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node, read_nodes

from ntier_harness import durable
from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec

RUN_S = 1800.0
DESTROY_S = 300.0
"""Of what is rented: fourteen machines take 10 s against an API that answers at once. A provider may wait for hours for
what holds a network; what is left after this time is removed by the API."""


def common_variables(spec: Spec) -> dict[str, Any]:
    """What every target's root takes: how many of what, clients last."""
    tiers = [
        {"name": tier, "count": count, "node_type": spec.node_type(tier), "role": spec.role(tier),
         "image": spec.image(tier), "memory_floor_bytes": spec.tier(tier).memory_floor_bytes}
        for tier, count in spec.topology.counts.items()
    ]  # fmt: skip
    tiers.append({"name": CLIENT, "count": spec.clients, "node_type": CLIENT, "role": CLIENT, "image": CLIENT})
    return {"system": spec.system.name, "tiers": tiers, "scale": spec.scale}


def program(runner: Runner) -> str:
    """Terraform or OpenTofu: what `TERRAFORM` names, else the one that is installed. Both read the same files."""
    installed = (name for name in ("terraform", "tofu") if runner.has(name))
    return os.environ.get("TERRAFORM") or next(installed, "terraform")


class Failed(WorkError):
    """`said`: the errors in full, with the provider's codes."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


class Terraform:
    """One target's root. `private`: its files are for nobody else, and no log of the provider is written, whatever the
    environment says."""

    def __init__(self, runner: Runner, paths: Paths, *, private: bool = False) -> None:
        self.runner = runner
        self.private = private
        self._ready = False
        self.paths = paths
        self.root = paths.root / "terraform" / "targets" / paths.target
        self.program = program(runner)
        self.outputs: dict[str, Any] = {}
        """Of what was applied last by this object."""

    def apply(self, variables: dict[str, Any], log: Path, replace: Sequence[str] = ()) -> list[Node]:
        """Applies the root and writes `nodes.json`. `replace`: addresses of what is made anew. Raises Failed."""
        durable.write(self._variables, json.dumps(variables, indent=1))
        self._init(log)
        again = [f"-replace={address}" for address in replace]
        self._run("apply", "-input=false", "-auto-approve", f"-var-file={self._variables}", *again, log=log)
        argv = [self.program, f"-chdir={self.root}", "output", "-json"]
        self.outputs = {k: v["value"] for k, v in json.loads(self.runner.run(argv, env=self.env).out).items()}
        durable.write(self.paths.nodes, json.dumps(self.outputs["nodes"], indent=1))
        return read_nodes(self.paths.nodes)

    def ids(self) -> set[str] | None:
        """Ids of what the state has whole, without what the next apply would replace; None if the state cannot be read,
        as after a crash that interrupted writing it."""
        if not self._state.exists():
            return set()
        try:
            resources = json.loads(self._state.read_text() or "{}").get("resources", [])
            whole = (i for r in resources for i in r["instances"] if i.get("status") != "tainted")
            return {str(i["attributes"].get("id")) for i in whole}
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def forget(self) -> None:
        """Removes the state: nothing of it exists any more."""
        for file in (self._state, self._state.with_name(f"{self._state.name}.backup"), self._variables):
            durable.remove(file)

    def destroy(self, log: Path) -> None:
        """Does nothing if nothing was ever applied."""
        if self._state.exists():
            self._init(log)
            extra = [f"-var-file={self._variables}"] if self._variables.exists() else []
            self._run("destroy", "-input=false", "-auto-approve", *extra, log=log)

    @property
    def env(self) -> dict[str, str]:
        """What a person has set for other roots does not hold for this one: in another workspace the state would be
        another file, and `destroy` would find nothing."""
        arguments = dict.fromkeys(("TF_CLI_ARGS", *(f"TF_CLI_ARGS_{c}" for c in ("apply", "destroy", "output"))), "")
        return (
            arguments
            | {
                "TF_WORKSPACE": "",
                "TF_IN_AUTOMATION": "1",
                "TF_DATA_DIR": str(self.paths.place / "terraform"),
                "NTIER_STATE": str(self.paths.state),
            }
            | ({"TF_LOG": "", "TF_LOG_CORE": "", "TF_LOG_PROVIDER": ""} if self.private else {})
        )

    @property
    def _state(self) -> Path:
        return self.paths.place / "terraform.tfstate"

    @property
    def _variables(self) -> Path:
        return self.paths.place / "topology.auto.tfvars.json"

    def _init(self, log: Path) -> None:
        if self._ready:
            return
        built = Path(os.environ.get("NTIER_PROVIDERS") or self.paths.root / "build" / "providers")
        own = [f"-plugin-dir={built}"] if self.private and built.is_dir() else []
        self._run("init", "-input=false", "-reconfigure", f"-backend-config=path={self._state}", *own, log=log)
        self._ready = self.private  # the providers are hashed each time

    def _run(self, command: str, *arguments: str, log: Path) -> None:
        wait = [] if command == "init" else ["-lock-timeout=30s"]
        argv = [self.program, f"-chdir={self.root}", command, *wait, *arguments, "-no-color"]
        tail: list[str] = []
        before = os.umask(0o077) if self.private else None
        try:
            limit = DESTROY_S if self.private and command == "destroy" else RUN_S
            code = self.runner.lines(argv, tail.append, log=log, env=self.env, timeout=limit)
        finally:
            if before is not None:
                os.umask(before)
        if code:
            errors = [line.strip("│ ") for line in tail if "rror:" in line]
            said = "; ".join(dict.fromkeys(errors[:3])) or f"exit code {code}"
            raise Failed(f"terraform {command}: {said}; its output: {log}", "\n".join(tail))
