"""The simulated machine of the runner's dry twin."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

EPOCH_S = 1_800_000_000.0
COLLECTORS = {
    "web": ["apache_status"],
    "app": ["tomcat_status"],
    "middleware": ["middleware_status"],
    "db": ["mysql_status"],
}


class World:
    """State of the simulated machine, on disk after every change."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.state: dict[str, Any] = {"now": EPOCH_S, "nodes": {}, "spawned": [], "faults": [], "log": []}
        file = folder / "world.json"
        file.touch()
        self._file = file.open("r+b", buffering=0)
        text = self._file.read()
        self._length = len(text)
        if text:
            self.state = json.loads(text)

    def save(self) -> None:
        """In place: to empty and fill the file hundreds of times would be most of the time of a simulated sweep."""
        text = json.dumps(self.state).encode().ljust(self._length)
        self._length = len(text)
        os.pwrite(self._file.fileno(), text, 0)

    @property
    def now(self) -> float:
        return self.state["now"]

    def node(self, name: str) -> dict[str, Any]:
        return self.state["nodes"][name]

    def advance(self, seconds: float) -> None:
        """Time goes on; faults whose moment has come happen."""
        self.state["now"] += seconds
        for fault in [f for f in self.state["faults"] if f["t_s"] <= self.now]:
            self.state["faults"].remove(fault)
            self.happen(fault)
        self.save()

    def happen(self, fault: dict[str, Any]) -> None:
        kind, node = fault["kind"], self.state["nodes"].get(fault["node"], {})
        self.state["log"].append({**fault, "t_s": self.now})
        if kind == "node_stop":
            node.update(running=False, jmeter=None, collecting=None, allowance="")
        elif kind == "client_kill" and node.get("jmeter"):
            node["jmeter"]["killed_s"] = self.now
        elif kind == "collector_kill":
            node["dead"] = {fault["collector"]: self.now}
        elif kind in ("clock_set_back", "machine_asleep"):  # nodes have their machine's clock
            self.state["now"] += fault["seconds"]
            self.state["set_s"] = self.state.get("set_s", 0.0) + fault["seconds"]
        elif kind == "quota_lost":
            node["allowance"] = ""
        elif kind == "service_restart":
            node["main_pid"] = node.get("main_pid", 100) + 1
