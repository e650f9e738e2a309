"""Several sweeps read at the same time: the same store as one after the other, also if a process is killed."""

import functools
import importlib
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.jobs import in_processes, shown
from synthetic import Truth, write_sweep

PROGRAM = Path(sys.executable).with_name("ntier-analysis")
SWEEPS = [f"1-1-1-{n}M.browse_only.shardingsphere" for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
    for sweep in SWEEPS:
        write_sweep(folder, truth, [300], phases=(2.0, 4.0, 1.0), sweep=sweep)
    return folder


def contents(store):
    return {p.relative_to(store): p.read_bytes() for p in store.rglob("*.parquet")}


def ingest(raw, store, *options):
    words = [PROGRAM, "ingest", "--raw", raw, "--store", store, *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


WORKER = """
import os, signal
from ntier_analysis import ingest

def killed_at_first(folder, store, sweep, parent):
    if folder.name == sweep and os.getpid() != parent:  # all is read, the store is locked, nothing is written
        ingest.write_tables = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    return ingest.ingest_sweep(folder, store)
"""
"""A module of its own, since the other process must be able to import it."""


def test_processes_give_the_same_bytes_and_the_same_lines(raw, tmp_path):
    one, several = ingest(raw, tmp_path / "one"), ingest(raw, tmp_path / "several", "--jobs", "2")
    assert (one.returncode, several.returncode) == (0, 0), several.stderr
    assert several.stdout == one.stdout
    assert len(several.stdout.splitlines()) == 3
    assert contents(tmp_path / "several") == contents(tmp_path / "one") != {}
    assert ingest(raw, tmp_path / "one", "--jobs", "0").returncode == 2


def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(raw, tmp_path, capsys, monkeypatch):
    (tmp_path / "killed_worker.py").write_text(WORKER)
    monkeypatch.syspath_prepend(tmp_path)
    store, module = tmp_path / "store", importlib.import_module("killed_worker")
    work = functools.partial(module.killed_at_first, store=store, sweep=SWEEPS[1], parent=os.getpid())
    done = list(in_processes(work, [raw / name for name in SWEEPS], 2))
    assert [d.sweep for d in done] == SWEEPS
    assert "a process died" in capsys.readouterr().err
    for name in SWEEPS:
        ingest_sweep(raw / name, tmp_path / "one")
    assert contents(store) == contents(tmp_path / "one")


def test_an_error_of_the_work_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        list(in_processes(functools.partial(divmod, 1), [1, 0], 2))


def test_a_bar_is_shown_on_a_terminal_and_only_for_what_takes_long(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        assert list(shown(iter([1, 2]), 2, "quick")) == [1, 2]
        monkeypatch.setattr("ntier_analysis.jobs.SHOWN_AFTER_S", 0.05)
        slow = (time.sleep(0.5) or number for number in (1, 2))
        assert list(shown(slow, 2, "long work")) == [1, 2]
        terminal.flush()
        said = os.read(ours, 100_000).decode()
    assert "long work" in said
    assert "quick" not in said
