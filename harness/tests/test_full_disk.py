"""The disk of the results fills up at every durable step of a sweep: load, limits and collectors end, the command says
why, and after room was made the same command goes on. What was sealed before is as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ntier_harness import durable, sweep
from ntier_harness.errors import WorkError

from . import promises
from .test_crash_points import Files, check_resumed, files_of, in_child, leftovers, steps_of

pytestmark = pytest.mark.whole

SIZE = "512k"
PARTS = 4  # that can run beside each other
TOLD = 3  # exit code of a child whose sweep ended in one clear error


@pytest.fixture
def disk(root, request):
    """A small disk of its own, where the results or the state of the machine are."""
    folder = root / request.param
    folder.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]).returncode:
        pytest.skip("needs root to mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(disk: Path) -> None:
    with (disk / "others").open("ab", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def run_until_full(lab, spec, disk: Path, at: int, monkeypatch) -> int:
    """Runs a sweep; at its n-th durable step somebody else fills the disk."""

    def step(_what: str) -> None:
        durable._count += 1
        if durable._count == at:
            fill(disk)

    def work() -> int:
        monkeypatch.setattr(durable, "step", step)
        machine = lab()
        try:
            return sweep.run(machine, spec)
        except WorkError as error:
            return TOLD if "No space left on device; make room, then the same command goes on" in str(error) else 1
        finally:
            left = list(leftovers_of_the_trial(machine))
            assert not left, left

    return in_child(work)


def leftovers_of_the_trial(machine):
    """What runs or is in force although the harness has ended."""
    yield from (text for text in leftovers(machine) if not text.startswith("/"))
    yield from (f"load on {n}" for n, s in machine.runner.world.state["nodes"].items() if is_loading(machine, s))


def is_loading(machine, node) -> bool:
    jmeter = node.get("jmeter")
    return bool(jmeter) and machine.runner._exit(node) == ""


def clean(root: Path, disk: Path) -> None:
    for folder in (root / "state", root / "results", root / "world"):
        if folder != disk:
            shutil.rmtree(folder, ignore_errors=True)
    for path in disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def without_draws(files: Files) -> Files:
    """Without passwords and process ids, which are others each time."""
    return {path: file for path, file in files.items() if Path(path).name not in ("secrets.yml", "lock.json")}


@pytest.mark.parametrize(
    ("disk", "part"),
    [("results", 0), *(pytest.param("results", n, marks=pytest.mark.long) for n in range(1, PARTS)), ("state", 0)],
    indirect=["disk"],
)
def test_every_durable_step(lab, spec, root, disk, monkeypatch, part):
    monkeypatch.setattr("ntier_harness.preflight.disk_free", lambda _: 10**12)  # it asks for 100 MB
    s = spec(users="1000", phases="2/5/1")
    steps, verdict, codes, resumed = steps_of(lab, s), promises.Verdict(), [], []
    # Before `synced` is an fsync alone, which needs no room: a disk that is full from there on was full at `written`.
    points = [n for n, what in enumerate(steps, 1) if not what.startswith("synced ")]
    for n in points[part::PARTS]:
        clean(root, disk)
        codes.append(run_until_full(lab, s, disk, n, monkeypatch))
        verdict.expect("I8", codes[-1] in (0, TOLD), f"disk full at {n} of {len(steps)}: exit code {codes[-1]}")
        (disk / "others").unlink(missing_ok=True)
        if (left := without_draws(files_of(root))) in resumed:  # from the same files the same command does the same
            continue
        resumed.append(left)
        before = promises.sealed_valid(lab().paths.raw)
        known = len(verdict.violations)
        check_resumed(verdict, lab, s, ["u01000.r01"], before, thorough=False)
        verdict.violations[known:] = [f"disk full at {n}: {v}" for v in verdict.violations[known:]]
    assert not verdict.violations, "\n".join(verdict.violations[:20])
    assert codes.count(TOLD) > len(codes) / 4, codes
