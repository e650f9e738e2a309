"""Virtual CPUs are kept awake during trials only, and the machine gets back what it had."""

from pathlib import Path

import pytest
from ntier_harness.targets.awake import AWAKE, Awake

HAD = {"guest_halt_poll_allow_shrink": "Y", "guest_halt_poll_grow_start": "50000", "guest_halt_poll_ns": "200000"}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for name, value in HAD.items():
        (tmp_path / name).write_text(f"{value}\n")
    (tmp_path / "driver").write_text("haltpoll\n")
    return tmp_path


def awake(machine: Path) -> Awake:
    return Awake(machine / "before.json", machine, machine / "driver")


def now(machine: Path) -> dict[str, str]:
    return {name: (machine / name).read_text().strip() for name in HAD}


def test_the_machine_gets_back_what_it_had(machine):
    awake(machine).stay()
    assert now(machine) == AWAKE
    awake(machine).stay()  # a second trial, after a kill of the first
    awake(machine).may_sleep()
    assert now(machine) == HAD
    assert not (machine / "before.json").exists()
    (machine / "guest_halt_poll_ns").write_text("7")
    awake(machine).may_sleep()
    assert (machine / "guest_halt_poll_ns").read_text() == "7", "nothing was changed, so nothing is put back"


def test_other_machines_are_left_alone(machine):
    (machine / "driver").write_text("intel_idle\n")
    awake(machine).stay()
    (machine / "driver").unlink()
    awake(machine).stay()
    assert now(machine) == HAD
