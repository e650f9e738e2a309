"""What run-driver notes of the driver that it started, with small programs instead of a load."""

from __future__ import annotations

import csv
import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN_S = 7
HALF = 0.5  # of a core: of a process that uses more, threads are read
RUN_DRIVER = Path(__file__).parents[1] / "bin/run-driver"
BUSY = """
import threading, time

def work(share, until=time.time() + RUN_S):
    while time.time() < until:
        began = time.thread_time()
        while time.thread_time() - began < 0.05 * share:
            pass
        time.sleep(0.05 * (1 - share))

others = [threading.Thread(target=work, args=(0.05,)) for _ in range(3)]
for other in others:
    other.start()
work(SHARE)
print(time.process_time())
"""


def noted(folder: Path, program: str) -> tuple[list[dict[str, str]], float]:
    """-> lines of driver_cpu.csv, and the CPU seconds that the program itself says that it used."""
    (folder / "driver.json").write_text("{}")
    subprocess.run([RUN_DRIVER, folder, sys.executable, "-c", program], check=True)
    deadline = time.time() + 60
    while not (folder / "driver.rc").exists():
        assert time.time() < deadline
        time.sleep(0.05)
    assert (folder / "driver.rc").read_text() == "0\n", (folder / "driver.out").read_text()
    with (folder / "driver_cpu.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file)), float((folder / "driver.out").read_text())


@pytest.mark.parametrize("share", [0.9, 0.1])
def test_cpu_of_the_driver_and_of_its_busiest_thread(tmp_path, share):
    lines, used_s = noted(tmp_path, BUSY.replace("SHARE", str(share)).replace("RUN_S", str(RUN_S)))
    assert len(lines) >= 4
    times = [float(line["t_s"]) for line in lines]
    assert times == sorted(times)
    passed_s = [b - a for a, b in itertools.pairwise(times)]
    seen_s = sum(float(line["cores"]) * s for line, s in zip(lines[1:], passed_s, strict=True))
    assert 0.5 * used_s < seen_s < 1.05 * used_s  # what came before the first line and after the last one is not in it
    of_process = list(itertools.takewhile(lambda line: float(line["cores"]) <= HALF, lines))
    of_threads = lines[len(of_process) + 1 :]  # of the first second with a busy process its threads are unknown
    assert share > HALF or not of_threads
    known = [line for line in lines if line["busiest_pct"]]
    assert known == of_process + of_threads
    assert {line["thread"] for line in known} == {Path(sys.executable).name[:15]}
    for line in of_process:
        assert float(line["busiest_pct"]) == pytest.approx(100 * float(line["cores"]), abs=0.2)
    if of_threads:  # the busiest one used less than all together
        busiest, cores = (sum(float(line[name]) for line in of_threads) for name in ("busiest_pct", "cores"))
        assert 0.5 * 100 * cores < busiest < 0.99 * 100 * cores


NAMED = """
import ctypes, time

ctypes.CDLL(None).prctl(15, NAME)  # PR_SET_NAME
time.sleep(3)
print(time.process_time())
"""


@pytest.mark.parametrize(
    ("name", "noted_as"), [("Επισκέπτες 1-1".encode(), "Επισκέπ\ufffd"), (b'\xff, "x"', "\ufffd x ")]
)
def test_a_thread_may_have_any_name(tmp_path, monkeypatch, name, noted_as):
    """The kernel keeps 15 bytes, which may end in the middle of a character. A JVM's threads have names of the plan."""
    monkeypatch.setenv("LC_ALL", "C")
    lines, _ = noted(tmp_path, NAMED.replace("NAME", repr(name)))
    assert {line["thread"] for line in lines} == {noted_as}
