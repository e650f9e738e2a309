"""What tests of several parts share: nodes, and the order in which deployments are needed."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).resolve().parent / "setup"))

import testnode

ROOT = Path(__file__).resolve().parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
# Deployments in the order that replaces the fewest nodes. A test names its own: pytest.mark.nodes("1/1/1/1M").
TOPOLOGIES = ("", "1/1/1/1M", "1/1/1/2M", "2/2/2/2P", "1/1/1/2P", "1/1/1/1ML", "1/1/2/2C", "2")
TRIES = 3  # of what a machine that is short of CPU may spoil
SHORT_OF_CPU = 0.5  # share of the time in which some thread waited for a CPU
STOLEN = 0.05  # cores, mean
STOOD_STILL_S = 0.3  # a thread that looks each LOOK_S was late by so much: a paused machine waits for no CPU
LOOK_S = 0.02

Found = TypeVar("Found")


def without_shim() -> None:
    """Where `python3` is a script that looks for the Python to start, programs of the tests find that Python at once:
    pyenv's takes 0.07 s of CPU for it, hundreds of times."""
    found = shutil.which("python3")
    if found is None or Path(found).read_bytes()[:2] != b"#!":
        return
    asked = [found, "-c", "import sys; print(sys.executable)"]
    started = Path(subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip())
    places = os.environ["PATH"].split(os.pathsep)
    if started.is_file() and str(started.parent) not in places:
        places.insert(
            places.index(str(Path(found).parent)), str(started.parent)
        )  # what stands before the script stays so
        os.environ["PATH"] = os.pathsep.join(places)


without_shim()


def topology(item: pytest.Item) -> str:
    """Of the deployment that the test uses; empty if it uses none, or nodes of its own."""
    mark = item.get_closest_marker("nodes")
    return mark.args[0] if mark and mark.args else ""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Six thousand tests and what they import are no garbage. To look for some among them, again and again, takes a
    quarter of the time until the first test, in each process of the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one deployment follow each other, so that it is made once; those that break its nodes come last."""
    items.sort(key=lambda item: (TOPOLOGIES.index(topology(item)), item.path.name == "test_faults.py"))


@pytest.fixture(scope="session", autouse=True)
def without_leftovers(request: pytest.FixtureRequest) -> None:
    """Tests on nodes begin without those of a run that was killed."""
    if shutil.which("incus") and any(item.get_closest_marker("nodes") for item in request.session.items):
        testnode.remove_leftovers()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """made_once(name, make): a folder that make(folder) has filled, once for all processes of this run of the tests.
    Nobody writes into it: a test that changes what is there takes a copy."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "made_once"
    shared.mkdir(exist_ok=True)

    def made_once(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # another process failed in the middle
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made_once


@pytest.fixture(scope="session")
def deployments() -> Iterator[None]:
    """For tests that deploy: the nodes of the last deployment go at the end, unless there were some before."""
    before = (STATE / "local/nodes.json").exists()
    yield
    if not before and (STATE / "local/nodes.json").exists():
        subprocess.run([Path(sys.executable).with_name("ntier"), "down"], cwd=ROOT, check=True)


def waited_for_cpu_s() -> float | None:
    """Seconds since boot in which some thread waited for a CPU; None where the kernel does not tell."""
    file = Path("/proc/pressure/cpu")
    return int(file.read_text().split("total=")[1].split()[0]) / 1e6 if file.exists() else None


def stolen_s() -> float:
    """Seconds since boot that a hypervisor took from a CPU of this machine, all CPUs together."""
    file = Path("/proc/stat")
    return int(file.read_text().split()[8]) / os.sysconf("SC_CLK_TCK") if file.exists() else 0.0


class Disturbance:
    """Inside: whether the machine was short of CPU, was robbed of it, or stood still, when it was asked last."""

    def __enter__(self) -> Disturbance:
        self._begin_s, self._waited_s, self._stolen_s = time.monotonic(), waited_for_cpu_s(), stolen_s()
        self._stood_s, self._done = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._done.wait(LOOK_S):
            now = time.monotonic()
            self._stood_s, before = max(self._stood_s, now - before - LOOK_S), now

    def was(self) -> bool:
        took_s, waited_s = time.monotonic() - self._begin_s, waited_for_cpu_s()
        if waited_s is None or self._waited_s is None:
            short = os.getloadavg()[0] > (os.cpu_count() or 1)
        else:
            short = waited_s - self._waited_s > SHORT_OF_CPU * took_s
        return short or stolen_s() - self._stolen_s > STOLEN * took_s or self._stood_s > STOOD_STILL_S


@pytest.fixture(scope="session")
def measured() -> Callable[[Callable[[], Found], Callable[[Found], bool]], Found]:
    """measured(measure, is_good): what was found, for tests that depend on real time. It is measured again, at most
    twice, if it is not good and the machine was disturbed meanwhile: what is wrong is so each time. The caller asserts
    what it asserts in any case; such a test never skips itself."""

    def measured(measure: Callable[[], Found], is_good: Callable[[Found], bool]) -> Found:
        for _ in range(TRIES):
            with Disturbance() as disturbance:
                value = measure()
                disturbed = disturbance.was()
            if is_good(value) or not disturbed:
                break
        return value

    return measured


@pytest.fixture
def database_node(tmp_path: Path) -> Iterator[Callable[[str, int], testnode.DatabaseNode]]:
    """database_node(image, number): a database node of its own, gone after the test."""
    nodes: list[testnode.DatabaseNode] = []

    def create(image: str, number: int) -> testnode.DatabaseNode:
        nodes.append(testnode.create(image, number, tmp_path))
        return nodes[-1]

    yield create
    for node in nodes:
        node.delete()
