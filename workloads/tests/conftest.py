"""What the tests of the load share: the assembled JMeter, its starter, and a small board on a real socket."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WORKLOADS = Path(__file__).parents[1]
JMETER_HOME = WORKLOADS.parent / "build" / "jmeter"
TEST_CLASSES = WORKLOADS / "jmeter-plugin" / "target" / "test-classes"
sys.path.insert(0, str(WORKLOADS / "bench"))


@pytest.fixture(scope="session")
def java() -> str:
    """JDK 25, which the client node has, if there is one: JAVA_HOME, or wherever the distribution puts it."""
    for home in (Path(os.environ.get("JAVA_HOME") or "/nonexistent"), *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        if release.exists() and 'JAVA_VERSION="25' in release.read_text():
            return str(home / "bin/java")
    return "java"


@pytest.fixture(scope="session")
def jmeter_home() -> Path:
    if not (JMETER_HOME / "bin/ApacheJMeter.jar").exists() or not TEST_CLASSES.exists():
        pytest.fail("build first: mvn -q -f workloads/pom.xml package")
    return JMETER_HOME


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
    """Runs JMeter through bin/run-jmeter with the given properties and waits for its end; returns the directory."""
    dictionary = tmp_path / "dictionary.txt"
    dictionary.write_text("\n".join(f"word{i}" for i in range(500)))

    def run(directory: Path | None = None, **properties: object) -> Path:
        out = directory or tmp_path / "trial"
        out.mkdir(exist_ok=True)
        settings = {
            "host": "127.0.0.1",
            "dictionary": dictionary,
            "jvm_heap": "512m",
        } | properties
        (out / "ntier.properties").write_text("".join(f"ntier.{k}={v}\n" for k, v in settings.items()))
        environment = os.environ | {"JMETER_HOME": str(jmeter_home), "NTIER_WORKLOADS": str(WORKLOADS), "JAVA": java}
        subprocess.run([WORKLOADS / "bin/run-jmeter", out], env=environment, check=True)
        deadline = time.time() + 180
        while not (out / "jmeter.rc").exists():
            assert time.time() < deadline, f"JMeter does not end, see {out}"
            time.sleep(0.2)
        return out

    return run
