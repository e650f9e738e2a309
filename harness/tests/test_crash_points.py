"""Ends the harness at every durable step, as kill -9 would, and lets the same command go on: promises I1-I9 hold."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import traceback
from pathlib import Path

import pytest
from ntier_harness import durable, sweep
from ntier_harness.errors import Interrupted

from . import promises
from .dry import store_of

pytestmark = pytest.mark.whole

CRASHED = 137
PARTS = 4  # of the crash points, which can be tried beside each other
FOLDERS = ("state", "results", "world")
Files = dict[str, tuple[int, bytes | None]]  # mode and content by path; folders have no content


def in_child(work) -> int:
    """Exit code of `work` in a process of its own, so that a crash is a crash."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            durable._count = 0
            code = work()
        except Interrupted:
            code = 130
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_sweep(lab, spec, crash_at=0, invalid=()) -> int:
    def work() -> int:
        os.environ["NTIER_CRASH_AT"] = str(crash_at)
        return sweep.run(lab(invalid=invalid), spec)

    return in_child(work)


def leftovers(machine):
    for name, node in machine.runner.world.state["nodes"].items():
        yield from [f"limit on {name}"] if node["allowance"] else []
        yield from [f"collectors on {name}"] if node.get("collecting") else []
    yield from (f"process {entry['argv']}" for entry in machine.runner.world.state["spawned"])
    for folder in (machine.paths.results, machine.paths.state):
        yield from (
            str(p) for p in folder.rglob(".*") if p.suffix in (".tmp", ".new") or p.name.startswith(".progress")
        )


def check_resumed(verdict, lab, spec, trials, before, *, thorough=True) -> None:
    """The same command goes on after the crash; then everything promised is checked (I6 and I9 only if `thorough`)."""
    code = run_sweep(lab, spec)
    machine = lab()
    raw = machine.paths.raw
    promises.check_survival(verdict, raw, before)
    promises.check_done(verdict, raw, spec.sweep, trials, code)
    promises.check_records(verdict, raw)
    promises.check_leftovers(verdict, leftovers(machine))
    store = machine.paths.results / "store" / "ingest.json"
    verdict.expect("I2", store.read_text() == json.dumps(store_of(raw), sort_keys=True), "store is not what raw says")
    if not thorough:
        return
    after = promises.digests(machine.paths.results)
    promises.check_exit(verdict, run_sweep(lab, spec), [0])
    promises.check_unchanged(verdict, after, promises.digests(machine.paths.results))
    shutil.rmtree(store.parent)
    run_sweep(lab, spec)
    verdict.expect("I9", promises.digests(machine.paths.results) == after, "rebuilding the store gives another one")


def steps_of(lab, spec) -> list[str]:
    """Durable steps of a whole run."""
    read, write = os.pipe()

    def work() -> int:
        steps: list[str] = []
        durable.step = steps.append
        code = sweep.run(lab(), spec)
        os.write(write, json.dumps(steps).encode())
        return code

    assert in_child(work) == 0
    return json.loads(os.read(read, 65536))


def clean(root) -> None:
    for name in FOLDERS:
        shutil.rmtree(root / name, ignore_errors=True)


def files_of(root: Path) -> Files:
    found: Files = {}
    for name in FOLDERS:
        for folder, folders, files in os.walk(root / name):
            found[folder] = (os.stat(folder).st_mode, None)
            assert not any(os.path.islink(f"{folder}/{each}") for each in folders + files)
            found |= {f"{folder}/{f}": (os.stat(f"{folder}/{f}").st_mode, Path(folder, f).read_bytes()) for f in files}
    return found


def put_back(root: Path, files: Files) -> None:
    """As if the harness had just crashed."""
    clean(root)
    for path, (mode, content) in files.items():
        if content is None:
            os.mkdir(path)
        else:
            Path(path).write_bytes(content)
            os.chmod(path, mode)
    for path, (mode, content) in files.items():
        if content is None:
            os.chmod(path, mode)


def crashes(lab, spec, root) -> list[Files]:
    """What a crash at each durable step of a whole run leaves. One run tells it: a crash writes nothing more."""
    clean(root)

    def work() -> int:
        states: list[Files] = []
        durable.step = lambda _what: states.append(files_of(root))
        code = sweep.run(lab(), spec)
        (root / "states").write_bytes(pickle.dumps(states))
        return code

    assert in_child(work) == 0
    return pickle.loads((root / "states").read_bytes())


@pytest.mark.parametrize("part", range(PARTS))
def test_every_crash_point(lab, spec, root, part):
    s = spec(users="1000,3000", phases="2/5/1")
    states = crashes(lab, s, root)
    assert len(states) > 80
    # From the same files the same command does the same: what changed no file, as fsync, is no crash point of its own.
    points = [n for n, files in enumerate(states, 1) if n == 1 or files != states[n - 2]]
    verdict = promises.Verdict()
    for n in points[part::PARTS]:
        put_back(root, states[n - 1])
        before = promises.sealed_valid(lab().paths.raw)
        known = len(verdict.violations)
        check_resumed(verdict, lab, s, ["u01000.r01", "u03000.r01"], before, thorough=n % 5 == 0)
        verdict.violations[known:] = [f"crash at {n}: {v}" for v in verdict.violations[known:]]
    assert not verdict.violations, "\n".join(verdict.violations[:20])


@pytest.mark.long
def test_crash_points_of_a_search(lab, spec, root):
    """Every seventh step, and so each kind of step: what a search decided survives, and no load is run twice."""
    s = spec(users="1000:3000:1000", phases="2/5/1", search="capacity")
    states, verdict = crashes(lab, s, root), promises.Verdict()
    for n in range(1, len(states) + 1, 7):
        put_back(root, states[n - 1])
        before = promises.sealed_valid(lab().paths.raw)
        known = len(verdict.violations)
        check_resumed(verdict, lab, s, ["u01000.r01", "u02000.r01", "u03000.r01"], before, thorough=n % 5 == 0)
        record = json.loads((lab().paths.raw / s.sweep / "search.json").read_text())
        decided = [d["users"] for d in record["decisions"]]
        verdict.expect("I5", decided == [1000, 2000, 3000, None], f"decisions after the resume: {decided}")
        verdict.violations[known:] = [f"crash at {n}: {v}" for v in verdict.violations[known:]]
    assert not verdict.violations, "\n".join(verdict.violations[:20])


def test_a_crash_while_recovering(lab, spec, root):
    """A second crash meets the recovery of the first. Both are real ones, and leave what `crashes` says."""
    s = spec(users="1000", phases="2/5/1")
    states = crashes(lab, s, root)
    verdict = promises.Verdict()
    for first in range(len(states) // 3, len(states), 19):
        clean(root)
        assert run_sweep(lab, s, crash_at=first) == CRASHED
        crashed = files_of(root)
        modes = [{path: mode for path, (mode, _) in files.items()} for files in (crashed, states[first - 1])]
        assert modes[0] == modes[1], "times, passwords and process ids differ"
        for second in range(1, 12, 2):
            put_back(root, crashed)
            run_sweep(lab, s, crash_at=second)
            before = promises.sealed_valid(lab().paths.raw)
            check_resumed(verdict, lab, s, ["u01000.r01"], before, thorough=second == 1)
    assert not verdict.violations, "\n".join(verdict.violations[:20])


@pytest.mark.parametrize("damage", ["fault", "unsealed", "changed"])
def test_the_checker_finds_violations(lab, spec, damage):
    """The program that judges must be able to say no."""
    s = spec(users="1000", phases="2/5/1")
    assert run_sweep(lab, s) == 0
    machine, verdict = lab(), promises.Verdict()
    directory = machine.paths.raw / s.sweep / "u01000.r01"
    before = promises.sealed_valid(machine.paths.raw)
    file = directory / "clients/client1/progress.csv"
    if damage == "changed":
        file.chmod(0o644)
        file.write_text("other")
        promises.check_survival(verdict, machine.paths.raw, before)
        promises.check_records(verdict, machine.paths.raw)
    elif damage == "unsealed":
        (directory / "manifest.json").unlink()
        promises.check_records(verdict, machine.paths.raw)
        promises.check_done(verdict, machine.paths.raw, s.sweep, ["u01000.r01"], 0)
    else:
        run = promises.Manifest.read(directory).phase("run")
        promises.check_faults(verdict, machine.paths.raw, [run.start_s + 1])
    assert verdict.violations
