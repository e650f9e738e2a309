"""Runs of the driver in tests: one in a folder of its own, and what it left."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from clusters import CONNINFO, Cluster
from twophase.places import Place, places

COORDINATOR = Path(__file__).resolve().parents[1] / "load/coordinator.py"
SELECTS = 60


def nodes_of(made: list[Cluster]) -> list[Place]:
    """As the driver's modules know them."""
    return places([node.conninfo for node in made], "test")


class Trial:
    """One run of the driver in a folder of its own."""

    ended: tuple[int, str]
    """Exit code and what it printed, where its run is over."""

    def __init__(self, folder: Path, nodes: list[Cluster], mode: str, **parameters: Any) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        told = {
            "contract": 1, "load_model": "work", "workload": mode, "client": 0, "clients": 1, "workers": 4,
            "first_worker": 0, "workers_total": 4, "seed": 7, "think_time_s": None,
            "phases": {"ramp_up_s": 0, "run_s": 120, "ramp_down_s": 0}, "targets": {},
            "entry": {"addresses": [], "port": 5432, "path": ""},
            "parameters": self.parameters(folder.parent, nodes, mode, **parameters),
        }  # fmt: skip
        (folder / "driver.json").write_text(json.dumps(told))
        self.process = subprocess.Popen(
            [sys.executable, COORDINATOR, "drive", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    @staticmethod
    def parameters(place: Path, nodes: list[Cluster], mode: str, **other: Any) -> dict[str, Any]:
        usual = {
            "mode": mode, "amount": SELECTS, "alter_threads": 4, "sleep_s": 0.02, "select_sleep_s": 0.05,
            "transfers": 3, "note_bytes": 10, "select_rows": 50, "balance": "turns", "standbys": 0, "delay_ms": 0,
            "nodes": ",".join(node.end for node in nodes), "conninfo": CONNINFO, "state": str(place / "state"),
        }  # fmt: skip
        return usual | other

    def begin(self) -> None:
        while self.process.poll() is None and len(self.lines("progress.csv")) < 1:
            time.sleep(0.02)
        (self.folder / "start.new").write_text(f"{round(1000 * time.time() + 200)}\n")
        (self.folder / "start.new").rename(self.folder / "start")

    def end(self) -> tuple[int, str]:
        said = self.process.communicate(timeout=120)[0]
        return self.process.returncode, said

    def lines(self, name: str) -> list[dict[str, str]]:
        file = self.folder / name
        return list(csv.DictReader(file.open())) if file.exists() else []

    @property
    def work(self) -> dict[str, Any]:
        return json.loads((self.folder / "work.json").read_text())


def program(command: str, nodes: list[Cluster], *more: object) -> subprocess.CompletedProcess[str]:
    words = ["--nodes", ",".join(node.end for node in nodes), "--conninfo", CONNINFO, *map(str, more)]
    return subprocess.run([sys.executable, COORDINATOR, command, *words], capture_output=True, text=True)


def refused(trial: Trial) -> str:
    """The one line that it prints."""
    code, said = trial.end()
    assert (code, said.count("\n")) == (2, 1), said
    assert not trial.lines("progress.csv")
    return said.strip()


def on_each(nodes: list[Cluster], query: str) -> list[tuple[Any, ...] | None]:
    """The first row of each node; None of a statement that has none."""
    found = []
    for node in nodes:
        with psycopg.connect(node.conninfo, autocommit=True) as connection:
            done = connection.execute(query)  # type: ignore[arg-type]
            found.append(done.fetchone() if done.description else None)
    return found
