"""What the tests of the load share: the assembled JMeter, its starter, and a small board on a real socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).parent))

from driver_runs import WORKLOADS, start_driver, told, wait_for_end

JMETER_HOME = WORKLOADS.parent / "build" / "jmeter"
TEST_CLASSES = WORKLOADS / "jmeter-plugin" / "target" / "test-classes"


@pytest.fixture(scope="session")
def java_25() -> str | None:
    """JDK 25, which the client node has, if there is one: JAVA_HOME, or wherever the distribution puts it."""
    for home in (Path(os.environ.get("JAVA_HOME") or "/nonexistent"), *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        if release.exists() and 'JAVA_VERSION="25' in release.read_text():
            return str(home / "bin/java")
    return None


@pytest.fixture(scope="session")
def java(java_25: str | None, made_once: Callable[..., Path]) -> str:
    """That, or the machine's own, told not to optimise: of a run of some seconds that would be half of the work."""

    def make(folder: Path) -> None:
        (folder / "java").write_text(f'#!/bin/sh\nexec {java_25 or "java"} -XX:TieredStopAtLevel=1 "$@"\n')
        (folder / "java").chmod(0o755)

    return str(made_once("java", make) / "java")


@pytest.fixture(scope="session")
def bare_jmeter_home() -> Path:
    """JMeter as it was assembled."""
    if not (JMETER_HOME / "bin/ApacheJMeter.jar").exists() or not TEST_CLASSES.exists():
        pytest.fail("build first: mvn -q -f workloads/pom.xml package")
    return JMETER_HOME


@pytest.fixture(scope="session")
def jmeter_home(bare_jmeter_home: Path, java: str, java_25: str | None, made_once: Callable[..., Path]) -> Path:
    """JMeter as a client node has it, with the archive of its classes beside it: to read them out of the jars is a
    fifth of the work of a short run."""

    def make(folder: Path) -> None:
        (folder / "jmeter").symlink_to(bare_jmeter_home)
        if java_25:  # an older JVM keeps none
            environment = os.environ | {"JAVA": java, "JMETER_HOME": str(folder / "jmeter")}
            keep = [WORKLOADS / "bin/run-jmeter", "--keep-classes", WORKLOADS / "rubbos.jmx"]
            done = subprocess.run(keep, env=environment, capture_output=True, text=True, timeout=180, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert (folder / "jmeter.jsa").exists()

    return made_once("jmeter", make) / "jmeter"


@pytest.fixture
def board(java: str, jmeter_home: Path) -> Iterator[Callable[..., int]]:
    """Starts a board; arguments are what goes wrong (LocalBoard.main); returns its port."""
    started: list[subprocess.Popen[str]] = []

    def start(*faults: str) -> int:
        # Defaults of Java's server: 40 ms delayed acknowledgements, and no more than 200 idle connections.
        settings = [
            "-Dsun.net.httpserver.nodelay=true",
            "-Dsun.net.httpserver.maxIdleConnections=20000",
            "-Dsun.net.httpserver.idleInterval=600",
        ]
        command = [java, *settings, "-cp", TEST_CLASSES, "io.ntier.jmeter.LocalBoard", "0", *faults]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return int(started[-1].stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def run_jmeter(java: str, jmeter_home: Path, tmp_path: Path) -> Callable[..., Path]:
    """Runs JMeter as a driver with the given properties of the plan and waits for its end; returns the directory."""
    dictionary = tmp_path / "dictionary.txt"
    dictionary.write_text("\n".join(f"word{i}" for i in range(500)))

    def run(directory: Path | None = None, home: Path = jmeter_home, **properties: object) -> Path:
        out = directory or tmp_path / "trial"
        out.mkdir(exist_ok=True)
        given = {"host": "127.0.0.1", "dictionary": dictionary} | properties
        (out / "driver.json").write_text(json.dumps(told(out, given)))
        start_driver(out, java, home)
        return wait_for_end(out)

    return run
