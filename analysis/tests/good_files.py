# ruff: noqa: E501 (tables: a line per case)
"""One good file for each door of `ntier-analysis`, and the command that reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import doors
from ntier_analysis import cli

RUN = ("--topology", "1/1/1/1M", "--ramp-up", 1, "--ramp-down", 1, "--users", 30)


def load_generators() -> dict[str, str]:
    """Files of load generators and of Prometheus: 30 users for 30 s, each beside the others."""
    t0, seconds = 1_790_000_000, range(31)
    k6 = ["metric_name,timestamp,metric_value,error_code,expected_response,name,status"]
    k6 += [f"vus,{t0 + s},30,,,," for s in seconds]
    k6 += [f"http_req_duration,{t0 + i // 10},{40 + i % 7},,true,Home,200" for i in range(300)]
    points = [{"metric": "vus", "value": 30, "time": f"2026-09-21T14:13:{20 + s}Z"} for s in range(30)]
    points += [
        {"metric": "http_req_duration", "value": 40, "time": f"2026-09-21T14:13:{20 + i // 10}.{i % 10}Z"}
        for i in range(300)
    ]
    lines = [
        {
            "type": "Point",
            "metric": p["metric"],
            "data": {"time": p["time"], "value": p["value"], "tags": {"name": "Home", "status": "200"}},
        }
        for p in points
    ]
    locust = ["Timestamp,User Count,Type,Name,Total Request Count,Total Failure Count,Total Average Response Time"]
    locust += [f"{t0 + s},30,,Aggregated,{10 * s},0,40.5" for s in seconds]
    gatling = [f"RUN\tSteps\tsteps\t{t0}000\t \t3.10.5", *[f"USER\tReader\tSTART\t{t0}000"] * 30]
    gatling += [f"REQUEST\t\tHome\t{1000 * t0 + 100 * i}\t{1000 * t0 + 100 * i + 40}\tOK\t " for i in range(300)]
    gatling += [f"USER\tReader\tEND\t{t0 + 30}000"] * 30
    series = {mode: [(t0 + s, 100 + share * s) for s in seconds] for mode, share in (("user", 0.4), ("idle", 0.6))}
    dump = [
        f'node_cpu_seconds_total{{cpu="0",instance="db1:9100",mode="{m}"}} {v} {t}'
        for m, points in series.items()
        for t, v in points
    ]
    labels = {"__name__": "node_cpu_seconds_total", "cpu": "0", "instance": "db1:9100"}
    result = [
        {"metric": labels | {"mode": m}, "values": [[t, str(v)] for t, v in points]} for m, points in series.items()
    ]
    return {
        "k6.csv": "\n".join([*k6, ""]),
        "k6.json": "\n".join([*map(json.dumps, lines), ""]),
        "history.csv": "\n".join([*locust, ""]),
        "requests.csv": "\n".join(
            ["timestamp,name,response_time", *(f"{t0 + i // 10},Home,40" for i in range(300)), ""]
        ),
        "simulation.log": "\n".join([*gatling, ""]),
        "dump.txt": "\n".join([*dump, "# EOF", ""]),
        "answers.json": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}),
        "map.yaml": "match: {instance: db1.*}\nnodes:\n  - {node: db1, match: db1, tier: db}\n",
        "loads.csv": "start,end,users,trial\n1,25,30,one\n",
    }


@dataclass(frozen=True)
class Door:
    """A file that a command reads; `{at}` in its arguments is the folder. `others`: exit codes beside 0 and 2."""

    file: str
    arguments: tuple
    others: tuple[int, ...] = ()

    def call(self, at: Path) -> doors.Done:
        return doors.call(cli.main, *(str(a).format(at=at) for a in self.arguments))


FOLDER = ("import", "{at}/in", "--store", "{at}/new")
FILES = ("import", "--jtl", "{at}/run.jtl", "--sa", "db1={at}/db1.json", *RUN, "--store", "{at}/new")
DUMP = ("--prometheus", "{at}/dump.txt", "--topology", "1/1/1/1M", "--store", "{at}/new")
DOORS = {
    "trials": Door("in/trials.csv", FOLDER),
    "samples": Door("in/samples.csv", FOLDER),
    "interactions": Door("in/interactions.csv", FOLDER),
    "jtl": Door("run.jtl", FILES),
    "sysstat": Door("db1.json", FILES),
    "runs": Door("runs.csv", ("import", "--runs", "{at}/runs.csv", *RUN, "--store", "{at}/new")),
    "k6": Door("k6.csv", ("import", "--k6", "{at}/k6.csv", *DUMP)),
    "k6 json": Door("k6.json", ("import", "--k6", "{at}/k6.json", *DUMP)),
    "locust": Door("history.csv", ("import", "--locust", "{at}/history.csv", *DUMP)),
    "requests": Door("requests.csv", ("import", "--locust", "{at}/requests.csv", "--users", 30, *DUMP)),
    "gatling": Door("simulation.log", ("import", "--gatling", "{at}/simulation.log", *DUMP)),
    "dump": Door("dump.txt", ("import", "--k6", "{at}/k6.csv", *DUMP)),
    "answers": Door("answers.json", ("import", "--k6", "{at}/k6.csv", "--prometheus", "{at}/answers.json", *DUMP[2:])),
    "mapping": Door("map.yaml", ("import", "--k6", "{at}/k6.csv", "--mapping", "{at}/map.yaml", *DUMP)),
    "loads": Door("loads.csv", ("import", "--k6", "{at}/k6.csv", "--loads", "{at}/loads.csv", *DUMP)),
    "prices": Door("prices.json", ("cheapest", "--throughput", 50, "--prices", "{at}/prices.json", "--store", "{at}/store"), (3,)),
    "expected": Door("expected.yaml", ("check", "{at}/store", "{at}/expected.yaml"), (3,)),
}  # fmt: skip


@contextmanager
def copied(good: Path, door: Door, content: bytes | None = None) -> Iterator[Path]:
    """A copy without the door's file, or with this content."""
    with TemporaryDirectory(dir=good.parent) as name:
        at = Path(name)
        for entry in good.iterdir():  # what is not spoilt is not copied
            if entry.name == Path(door.file).parts[0] and entry.is_dir():
                shutil.copytree(entry, at / entry.name)
            else:
                (at / entry.name).symlink_to(entry)
        (at / door.file).unlink()
        if content is not None:
            (at / door.file).write_bytes(content)
        yield at
