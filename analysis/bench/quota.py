"""How a pegged node reads: busy loops in a control group with a quota, sampled at 10 Hz (docs/validity.md, saturation).

    sudo .venv/bin/python analysis/bench/quota.py [SECONDS]

Needs root; makes one control group and removes it. A saturation measure must read >= 0.99 here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

V1 = Path("/sys/fs/cgroup/cpu")
V2 = Path("/sys/fs/cgroup")
NAME = "ntier-quota-bench"
CASES = [(1, 2000, 10000), (3, 1000, 10000), (3, 3000, 20000)]  # threads, quota us, period us


class Group:
    """A control group with a CPU quota; `read` -> used s, periods, throttled periods."""

    def __init__(self, quota_us: int, period_us: int) -> None:
        self.v1 = V1.is_dir()
        self.paths = [V1 / NAME, V1.parent / "cpuacct" / NAME] if self.v1 else [V2 / NAME]
        for path in self.paths:
            path.mkdir(exist_ok=True)
        if self.v1:
            (self.paths[0] / "cpu.cfs_period_us").write_text(str(period_us))
            (self.paths[0] / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (V2 / "cgroup.subtree_control").write_text("+cpu")
            (self.paths[0] / "cpu.max").write_text(f"{quota_us} {period_us}")

    def add(self, pid: int) -> None:
        for path in self.paths:
            (path / "cgroup.procs").write_text(str(pid))

    def read(self) -> tuple[float, int, int]:
        stat = dict(line.split() for line in (self.paths[0] / "cpu.stat").read_text().splitlines())
        used = int((self.paths[1] / "cpuacct.usage").read_text()) / 1e9 if self.v1 else int(stat["usage_usec"]) / 1e6
        return used, int(stat["nr_periods"]), int(stat["nr_throttled"])

    def remove(self) -> None:
        for path in self.paths:
            path.rmdir()


def pressure_s() -> float:
    """Seconds in which some task of the host waited for a CPU."""
    return int(Path("/proc/pressure/cpu").read_text().split("total=")[1].split()[0]) / 1e6


def measure(threads: int, quota_us: int, period_us: int, seconds: float) -> str:
    group = Group(quota_us, period_us)
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(threads)]
    try:
        for loop in loops:
            group.add(loop.pid)
        time.sleep(0.5)
        rows, waited, start = [], pressure_s(), time.time()
        for tick in range(round(10 * seconds)):
            time.sleep(max(0.0, start + tick / 10 - time.time()))
            rows.append((time.time(), *group.read()))
        waited = (pressure_s() - waited) / (time.time() - start)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        time.sleep(0.2)
        group.remove()
    t, used, periods, throttled = np.diff(np.array(rows), axis=0).T
    busy = 100 * used / (t * quota_us / period_us)
    # As in ntier_analysis.parsers.host: an interval spans its periods, give or take one.
    share = 100 * throttled / np.maximum(np.maximum(t * 1e6 / period_us - 1, periods), 1)
    return (
        f"| {threads} busy, {quota_us / 1000:g} ms in {period_us / 1000:g} ms | {busy.min():.0f}..{busy.max():.0f} % | "
        f"{np.mean(busy >= 95):.2f} | {np.mean(share + 5 >= 95):.2f} | {100 * waited:.0f} % |"
    )


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("needs root: it makes a control group")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6.0
    print("| pegged node | utilization of samples | >= 95 % | throttled throughout | host's CPU pressure |")
    print("|---|---|---|---|---|")
    for case in CASES:
        print(measure(*case, seconds), flush=True)


if __name__ == "__main__":
    main()
