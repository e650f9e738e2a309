"""Sweeps as tasks of a real Dask cluster: the same store and densities as without it, also if a worker is killed."""

import functools
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.jobs import on_cluster
from ntier_analysis.many import ingest
from ntier_analysis.places import Place
from program import called, started

DASK = Path(sys.executable).with_name("dask")
SWEEPS = [f"1-1-1-{n}M.browse_only.shardingsphere" for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def alone(raw, made_once):
    """Store and densities, made without a cluster, and what was printed."""

    def make(folder):
        said = [called("ingest", "--raw", raw, "--store", folder / "store"),
                called("densities", "--store", folder / "store", "--out", folder / "densities")]  # fmt: skip
        assert [s.returncode for s in said] == [0, 0], said
        (folder / "said.json").write_text(json.dumps([s.stdout for s in said]))

    folder = made_once("without_a_cluster", make)
    return folder, json.loads((folder / "said.json").read_text())


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers, which can import what lies in `tmp_path`; nobody starts a worker again."""
    file, environment = tmp_path / "scheduler.json", os.environ | {"PYTHONPATH": str(tmp_path)}
    common = {"env": environment, "cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = [DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    hand = [DASK, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started = [subprocess.Popen(head, **common)]
    try:
        while not file.exists() and started[0].poll() is None:
            time.sleep(0.1)
        started += [subprocess.Popen(hand, **common) for _ in range(2)]
        yield address_in(file), started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def address_in(file: Path) -> str:
    while True:
        try:
            return json.loads(file.read_text())["address"]
        except ValueError:  # half of it is written
            time.sleep(0.1)


def contents(folder: Path) -> dict:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.parquet")}


KILLED = """
import os, signal
from pathlib import Path
from ntier_analysis import many
from ntier_analysis.store import tables

def killed_once(sweep, marker, **given):
    if sweep.startswith("1-1-1-2M") and not Path(marker).exists():  # its first table is in its place, the others not
        Path(marker).write_text(str(os.getpid()))
        replace, Path.replace = Path.replace, lambda *p: (replace(*p), os.kill(os.getpid(), signal.SIGKILL))
    return many.ingest(sweep, **given)
"""


@pytest.mark.long
def test_a_worker_killed_in_the_middle_loses_nothing_and_counts_nothing_twice(
    raw, alone, cluster, tmp_path, monkeypatch
):
    address, workers = cluster
    (tmp_path / "killed.py").write_text(KILLED)
    monkeypatch.syspath_prepend(tmp_path)
    given = {"raw": Place.of(raw), "store": Place.of(tmp_path / "store"), "marker": str(tmp_path / "marker")}
    work = functools.partial(importlib.import_module("killed").killed_once, **given)
    done = list(on_cluster(work, SWEEPS, address))
    assert [(d.sweep, d.trials, d.problems) for d in done] == [(name, 1, []) for name in SWEEPS]
    killed = [w for w in workers if w.poll() is not None]
    assert [str(w.pid) for w in killed] == [(tmp_path / "marker").read_text()]
    assert contents(tmp_path / "store") == contents(alone[0] / "store") != {}


@pytest.mark.long
def test_a_local_cluster_gives_the_same_bytes_and_lines(raw, alone, tmp_path):
    folder, lines = alone
    store, densities = tmp_path / "store", tmp_path / "densities"
    said = [started("ingest", "--raw", raw, "--store", store, "--cluster", "local:2"),
            started("densities", store, "--out", densities, "--cluster", "local:2")]  # fmt: skip
    assert [s.returncode for s in said] == [0, 0], said
    assert [s.stdout for s in said] == lines
    assert contents(tmp_path) == contents(folder)


@pytest.mark.parametrize(
    ("cluster_", "said"),
    [("local:0", "expected tcp://"), ("local:two", "expected tcp://"), ("http://x", "expected tcp://"),
     ("tcp://127.0.0.1:1", "no scheduler answers")],
)  # fmt: skip
def test_a_cluster_that_is_none_is_an_error(raw, tmp_path, cluster_, said, monkeypatch):
    monkeypatch.setattr("ntier_analysis.jobs.CONNECT_S", 1)
    with pytest.raises(DataError, match=f"--cluster {cluster_}: .*{said}"):
        list(on_cluster(functools.partial(ingest, raw=Place.of(raw), store=Place.of(tmp_path)), SWEEPS, cluster_))
