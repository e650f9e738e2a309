"""Which of rented machines of one type are unequal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ntier_harness.targets import calibration
from ntier_harness.targets.calibration import unequal


def machines(**of: dict[str, object]) -> dict[str, dict[str, object]]:
    usual = {"cpu_one_per_s": 1000, "cpu_all_per_s": 2000, "memory_bytes_s": 1e10, "cpu_model": "EPYC"}
    return {name: usual | changed for name, changed in of.items()}


def test_the_probe_runs_and_says_every_measure(tmp_path: Path) -> None:
    """On this machine, a twentieth as long, and one connection to itself."""
    text = calibration.LOCAL.replace(str(calibration.SECONDS), "0.05")
    measured = json.loads(subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True).stdout)
    assert all(measured[measure] > 0 for measure in calibration.MEASURES if measure != "network_bits_s")
    receive = calibration.RECEIVE.replace(str(calibration.PORT), "0").replace(
        'print("ready"', 'print("ready", s.getsockname()[1]'
    )
    receiver = subprocess.Popen([sys.executable, "-c", receive], stdout=subprocess.PIPE, text=True)
    port = int(receiver.stdout.readline().split()[1])
    send = calibration.SEND.format(address="127.0.0.1", port=port, blocks=4)
    subprocess.run([sys.executable, "-"], input=send, text=True, check=True)
    assert float(receiver.communicate(timeout=30)[0]) > 0


def test_a_slow_twin_is_named_with_what_is_slow() -> None:
    measured = machines(db1={}, db2={"cpu_all_per_s": 1700}, db3={}, client1={"cpu_all_per_s": 4000})
    types = {"db1": "ccx13", "db2": "ccx13", "db3": "ccx13", "client1": "ccx23"}
    assert unequal(measured, types) == ["db2 is a ccx13 like 2 others, but its all cores does 85 % of their median"]
    assert unequal(machines(db1={}, db2={"cpu_all_per_s": 1900}, db3={}), types) == []


def test_of_two_that_differ_neither_is_the_right_one() -> None:
    measured = machines(app1={"memory_bytes_s": 5e9}, app2={"cpu_model": "Xeon"})
    assert unequal(measured, {"app1": "ccx13", "app2": "ccx13"}) == [
        "app1 and app2 are both ccx13 but unequal: memory of app1 does 50 % of the other's",
        "machines of type ccx13 have different CPUs: EPYC, Xeon",
    ]


def test_what_was_not_measured_is_compared_with_nothing() -> None:
    measured = machines(db1={"network_bits_s": None}, db2={"network_bits_s": 1e9})
    assert unequal(measured, {"db1": "ccx13", "db2": "ccx13"}) == []
    assert unequal({}, {}) == []
