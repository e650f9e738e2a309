"""The experiment of the continuous integration, as a user starts it: from nodes to a verdict and a report."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from ntier_analysis.contracts import Manifest
from ntier_analysis.contracts.files import read_bytes
from ntier_harness import awake
from testnode import SCALE

from .. import promises
from .conftest import DEADLINE_S, NTIER, check_sound

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("deployments")]

ROOT = Path(__file__).resolve().parents[3]
SWEEP = "1-1-1-1M.browse_only.shardingsphere.smoke"


def last_attempt(results: Path, trial: str) -> Path:
    """The one that counts: an attempt that the machine disturbed (stolen CPU) is invalid and was made again."""
    return max((results / "raw").glob(trial))


def make_smoke(results: Path, attempts: int = 1) -> subprocess.CompletedProcess[str]:
    """As typed at a terminal: the `make` that runs these tests passes its own flags on, among them one that prints the
    folder first."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "smoke", f"RESULTS={results}", f"ATTEMPTS={attempts}"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.mark.nodes("1/1/1/1M")
def test_smoke(tmp_path: Path) -> None:
    results = tmp_path / "results"
    made = []

    def smoke(attempts: int) -> subprocess.CompletedProcess[str]:
        made.append(make_smoke(results, attempts))
        return made[-1]

    if not check_sound(smoke, results):
        pytest.skip("this machine is robbed or too slow: a load has no valid trial, so there is no verdict to look at")

    report = results / "reports" / SWEEP
    assert (report / "report.html").stat().st_size < 3_000_000
    sentence, *_, place = made[-1].stdout.splitlines()
    assert "1/1/1/1M" in sentence
    assert place == f"report: {report / 'report.html'}"
    assert (report / "figures/throughput.png").exists()

    analysis = Path(NTIER).with_name("ntier-analysis")
    asked = subprocess.run([analysis, "verdict", results / "store", "--json"], check=True, capture_output=True)
    (sweep,) = json.loads(asked.stdout)["sweeps"]
    assert sweep["topology"] == "1/1/1/1M"
    assert [t["users"] for t in sweep["trials"]] == [1000, 3000]
    # 3,000 users are below the knee, at it or beyond, by the machine's speed; CPUs of database and proxy are full first
    named = [(b["tier"], b["resource"]) for b in sweep["bottlenecks"]]
    # Between them the one may have room or not (they are used 97 and 93 %): then nothing is named, and it is unknown.
    assert set(named) <= {("db", "cpu"), ("middleware", "cpu")}, sweep["evidence"]
    fitting = [("none", "unknown"), ("single",), ("multi",)][len(named)]
    assert sweep["verdict"] in fitting, sweep["evidence"]
    low, high = sweep["max_throughput_interval"]
    assert low <= sweep["max_throughput_per_s"] <= high
    assert high > 0

    header, *rows = lines_of(last_attempt(results, f"{SWEEP}/u01000.*") / "nodes/host/host_stat.csv")
    assert header.endswith("awake_ns") is awake.wanted()
    if awake.wanted():
        used = [int(row.rpartition(",")[2]) for row in (rows[0], rows[-1])]
        assert used[1] - used[0] > 1e9, "its CPUs were idle for more than a second, and something kept them awake"

    before = promises.digests(results / "raw")
    again = make_smoke(results)
    assert again.returncode == 0, again.stderr[-3000:]
    assert promises.digests(results / "raw") == before, "a sweep that is done was touched"


def lines_of(path: Path) -> list[str]:
    """Of a raw file; long ones are compressed."""
    return read_bytes(path if path.exists() else path.with_name(f"{path.name}.zst")).decode().splitlines()


@pytest.mark.nodes("2/2/2/2P")
@pytest.mark.faults  # ten nodes and their warm-up: some minutes (make test-faults)
def test_two_of_each_tier_and_of_clients_with_users_who_write(tmp_path: Path) -> None:
    """Users take turns over the web nodes, connections over the middleware nodes; two clients share the users. Authors
    write through both middleware nodes, and both replicas hold the same afterwards."""
    request = ["--topo", "2/2/2/2P", "--clients", "2", "--mix", "read_write", "--users", "1500", "--phases", "20/20/2"]
    request += [*SCALE, "--set", "db_geqo=off", "--name", "all", "--results", str(tmp_path)]

    def run(attempts: int) -> subprocess.CompletedProcess[str]:
        command = [NTIER, "sweep", *request, "--attempts", str(attempts)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S)

    check_sound(run, tmp_path)
    trial = last_attempt(tmp_path, "2-2-2-2P.read_write.*/u01500.r01*")
    nodes = trial / "nodes"
    users = [[int(row.split(",")[0]) for row in lines_of(trial / f"clients/client{n}/users.csv")[1:]] for n in (1, 2)]
    assert sorted(users[0] + users[1]) == list(range(Manifest.read(trial).users_real))
    assert abs(len(users[0]) - len(users[1])) <= 1
    for web in ("web1", "web2"):
        lines = lines_of(nodes / web / "logs/access.log")
        routes = Counter(line.split()[4] for line in lines if "/servlet/" in line)
        assert min(routes["app1"], routes["app2"]) > 50, f"{web}: {routes}"
    for middleware in ("middleware1", "middleware2"):
        done_by = {}
        for row in csv.DictReader(lines_of(nodes / middleware / "middleware_status.csv")):
            done_by.setdefault(row["replica"], []).append(int(row["executed_total"]))
        assert len(done_by) == 2
        assert all(n[-1] - n[0] > 20 for n in done_by.values()), f"{middleware}: {done_by}"
    checks = {check["id"]: check for check in json.loads((trial / "manifest.json").read_text())["validity"]["checks"]}
    assert checks["R1"]["n"] > 0, "rows written"
    assert checks["R2"]["n"] == 2, "replicas compared"
    assert (trial / "config/read_write.authors.csv").exists()
