"""Shared fixtures: a small catalogue of workloads and a laboratory on the dry twin."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.request import make_spec
from ntier_harness.screen import Screen
from ntier_harness.spec import Spec

from .checkout import add_systems
from .dry import DryRunner, DryTarget

ROOT = Path(__file__).resolve().parents[2]
PHASES = (
    "phases:\n"
    + "".join(
        f"  {n}: {{ramp_up_s: {a}, run_s: {b}, ramp_down_s: {c}}}\n"
        for n, a, b, c in (
            ("smoke", 10, 20, 2),
            ("short", 20, 40, 5),
            ("standard", 60, 180, 10),
            ("paper", 480, 720, 30),
        )
    )
    + "default_phases: short\n"
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a place: a thousand simulated sweeps wait for the disk otherwise."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ntier-test-") as folder:
        yield Path(folder)


@pytest.fixture
def root(memory: Path) -> Path:
    """A checkout as far as the harness reads one."""
    (memory / "workloads" / "mixes").mkdir(parents=True)
    (memory / "workloads" / "phases.yaml").write_text(PHASES)
    for mix in ("browse_only", "read_write"):
        (memory / "workloads" / "mixes" / f"{mix}.csv").write_text(
            "from,to,probability\nStoriesOfTheDay,EndOfSession,1\n"
        )
    shutil.copy(ROOT / "workloads" / "rubbos.jmx", memory / "workloads")
    add_systems(memory)
    module = "terraform/modules/topology"
    (memory / module).mkdir(parents=True)
    shutil.copy(ROOT / module / "node_types.json", memory / module)
    (memory / "ansible" / "playbooks" / "deploy.yml").write_text("- hosts: all\n")
    return memory


@pytest.fixture
def spec(root: Path) -> Callable[..., Spec]:
    def make(**options: Any) -> Spec:
        defaults = {"topo": "1/1/1/1M", "users": "1000,3000", "phases": "smoke"}
        return make_spec(defaults | options, root, cores=2)

    return make


class QuietScreen(Screen):
    """Keeps what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.said.append(f"warning: {text}")

    def result(self, text: str, data: dict[str, Any]) -> None:
        self.said += text.splitlines()


@pytest.fixture
def lab(root: Path) -> Callable[..., Lab]:
    """A new harness process on the same simulated machine, every time it is called."""

    def make(**options: Any) -> Lab:
        runner = DryRunner(root / "world", **options)
        paths = Paths(root, root / "state", root / "results")
        return Lab(runner, paths, DryTarget(runner, paths), QuietScreen(), "ntier sweep")

    return make
