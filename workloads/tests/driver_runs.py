"""JMeter as a driver, started by hand: what it is told, its start, its end."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

WORKLOADS = Path(__file__).parents[1]


def told(directory: Path, properties: dict[str, object]) -> dict[str, object]:
    """`driver.json` with the given properties of the plan; `plan` and `jvm_heap` are run-jmeter's own, `leaving` is the
    contract's."""
    left = {f"ntier.{k}": str(v) for k, v in properties.items() if k not in ("plan", "jvm_heap", "leaving")}
    leaving = {"leaving": properties["leaving"]} if "leaving" in properties else {}
    return {
        "contract": 1,
        "load_model": "closed",
        "workers": properties.get("users", 1),
        "first_worker": properties.get("first_user", 0),
        "workers_total": properties.get("users", 1),
        "seed": properties.get("seed", 1),
        "think_time_s": 7.0,
        "phases": {"ramp_up_s": properties.get("ramp_up_s", 0), "run_s": 60, "ramp_down_s": 0},
        **leaving,
        "entry": {"addresses": ["127.0.0.1"], "port": 80, "path": "/rubbos"},
        "parameters": {},
        "jmeter": {
            "plan": str(properties.get("plan", WORKLOADS / "rubbos.jmx")),
            "heap": properties.get("jvm_heap", "512m"),
            "properties": left,
        },
    }


def start_driver(out: Path, java: str, jmeter_home: Path) -> None:
    """Starts JMeter as a driver in a folder with driver.json, and its users as soon as it is ready."""
    environment = os.environ | {"JMETER_HOME": str(jmeter_home), "JAVA": java}
    subprocess.run([WORKLOADS / "bin/run-driver", out, WORKLOADS / "bin/run-jmeter"], env=environment, check=True)
    deadline = time.time() + 120
    while not is_ready(out) and not (out / "driver.rc").exists():
        assert time.time() < deadline, f"JMeter does not get ready, see {out}"
        time.sleep(0.05)
    (out / "start.new").write_text(f"{1000 * (time.time() + 0.5):.0f}\n")
    (out / "start.new").rename(out / "start")


def is_ready(out: Path) -> bool:
    progress = out / "progress.csv"
    return progress.exists() and len(progress.read_text().splitlines()) > 1


def wait_for_end(out: Path) -> Path:
    deadline = time.time() + 180
    while not (out / "driver.rc").exists():
        assert time.time() < deadline, f"JMeter does not end, see {out}"
        time.sleep(0.2)
    return out
