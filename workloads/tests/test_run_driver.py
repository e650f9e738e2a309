"""What run-driver notes of the driver that it started, with small programs instead of a load."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN_S = 12
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
    with (folder / "driver_cpu.csv").open() as file:
        return list(csv.DictReader(file)), float((folder / "driver.out").read_text())


@pytest.mark.parametrize("share", [0.9, 0.1])
def test_cpu_of_the_driver_and_of_its_busiest_thread(tmp_path, share):
    lines, used_s = noted(tmp_path, BUSY.replace("SHARE", str(share)).replace("RUN_S", str(RUN_S)))
    assert len(lines) >= 4
    times = [float(line["t_s"]) for line in lines]
    assert times == sorted(times)
    cores = sum(float(line["cores"]) for line in lines) / len(lines)
    assert cores == pytest.approx(used_s / RUN_S, rel=0.35)  # the first and the last part of a second are in no line
    known = [line for line in lines if line["busiest_pct"]]
    assert len(known) >= len(lines) - 1  # of the first second with a busy process only its threads are unknown
    assert {line["thread"] for line in known} == {Path(sys.executable).name[:15]}
    busiest = sum(float(line["busiest_pct"]) for line in known) / len(known)
    cores = sum(float(line["cores"]) for line in known) / len(known)
    if len(known) < len(lines):  # threads were read: the busiest one used less than all together
        assert 0.5 * 100 * cores < busiest < 100 * cores
    else:
        assert busiest == pytest.approx(100 * cores, abs=2)
