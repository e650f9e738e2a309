"""Several sweeps read at the same time: the same store as one after the other, also if a process is killed."""

import functools
import importlib
import os
import pty
import shutil
import sys
import time

import pytest
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.jobs import in_processes, shown
from ntier_analysis.store import tables
from ntier_analysis.verdict import store as judging
from program import called, started

SWEEPS = [f"1-1-1-{n}M.browse_only.shardingsphere" for n in (1, 2, 3)]


def contents(store):
    return {p.relative_to(store): p.read_bytes() for p in store.rglob("*.parquet")}


@pytest.fixture(scope="module")
def one(raw, made_once):
    """A store made in one process, and what was printed."""

    def make(folder):
        said = called("ingest", "--raw", raw, "--store", folder / "store")
        assert said.returncode == 0, said
        (folder / "said").write_text(said.stdout)

    folder = made_once("in_one_process", make)
    return folder / "store", (folder / "said").read_text()


WORKER = """
import os, signal
from ntier_analysis import ingest

def killed_at_first(folder, store, sweep, parent):
    if folder.name == sweep and os.getpid() != parent:  # all is read, nothing is written
        ingest.write_tables = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    return ingest.ingest_sweep(folder, store)
"""
"""A module of its own, since the other process must be able to import it."""


@pytest.mark.whole
def test_processes_give_the_same_bytes_and_the_same_lines(raw, one, tmp_path):
    several = started("ingest", "--raw", raw, "--store", tmp_path, "--jobs", "2")
    assert several.returncode == 0, several.stderr
    assert several.stdout == one[1]
    assert len(several.stdout.splitlines()) == 3
    assert contents(tmp_path) == contents(one[0]) != {}
    assert called("ingest", "--raw", raw, "--store", tmp_path, "--jobs", "0").returncode == 2


@pytest.mark.whole
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(raw, one, tmp_path, capsys, monkeypatch):
    (tmp_path / "killed_worker.py").write_text(WORKER)
    monkeypatch.syspath_prepend(tmp_path)
    store, module = tmp_path / "store", importlib.import_module("killed_worker")
    work = functools.partial(module.killed_at_first, store=store, sweep=SWEEPS[1], parent=os.getpid())
    done = list(in_processes(work, [raw / name for name in SWEEPS], 2))
    assert [d.sweep for d in done] == SWEEPS
    assert "a process died" in capsys.readouterr().err
    assert contents(store) == contents(one[0])


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


def test_others_may_write_while_a_sweep_is_judged_or_encoded(raw, tmp_path, monkeypatch):
    """Workers share a store; with large sweeps each of these takes longer than another one waits for the lock."""
    store, written = tmp_path / "store", []

    def beside(real):
        def done(*words, **named):
            with tables.locked(store):
                written.append(real.__name__)
            return real(*words, **named)

        return done

    monkeypatch.setattr(tables, "LOCK_S", 0.1)
    monkeypatch.setattr(tables, "write_parquet", beside(tables.write_parquet))
    monkeypatch.setattr(judging, "judge", beside(judging.judge))
    assert ingest_sweep(raw / SWEEPS[0], store).problems == []
    assert set(written) == {"write_parquet"}
    monkeypatch.undo()
    monkeypatch.setattr(tables, "LOCK_S", 0.1)
    monkeypatch.setattr(judging, "judge", beside(judging.judge))
    judging.judge_again(store, [SWEEPS[0]])
    assert written[-1] == "judge"


def test_a_sweep_that_was_ingested_meanwhile_is_judged_as_it_is_then(one, tmp_path, monkeypatch):
    store = tmp_path / "store"
    shutil.copytree(one[0], store)
    real, seen = judging.judge, []

    def judge(*words):
        seen.append(len(seen))
        if len(seen) == 1:
            trials = tables.read_table(store, "trials", SWEEPS[0])
            tables.write_table(store, "trials", SWEEPS[0], trials, inputs="others")
        return real(*words)

    monkeypatch.setattr(judging, "judge", judge)
    judging.judge_again(store, [SWEEPS[0]])
    assert seen == [0, 1]
    assert tables.table_inputs(store, "verdicts", SWEEPS[0]) == "others"
