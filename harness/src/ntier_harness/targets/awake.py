"""Virtual CPUs that poll before they halt, while a trial is measured (docs/decisions/virtual-cpus-stay-awake.md)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ntier_harness import durable

HALT_POLL = Path("/sys/module/haltpoll/parameters")
DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")
POLL_NS = 10_000_000  # longer than any pause of a machine that is measured: collectors alone wake it every 10 ms
AWAKE = {
    "guest_halt_poll_allow_shrink": "N",
    "guest_halt_poll_grow_start": str(POLL_NS),
    "guest_halt_poll_ns": str(POLL_NS),
}


class Awake:
    """The guest's own polling of the Linux governor `haltpoll`; where there is none, nothing is done."""

    def __init__(self, before: Path, parameters: Path = HALT_POLL, driver: Path = DRIVER) -> None:
        """`before`: file that keeps what the machine had, until it is put back."""
        self.before, self.parameters, self.driver = before, parameters, driver

    def possible(self) -> bool:
        try:
            used = self.driver.read_text().strip() == "haltpoll"
        except OSError:
            return False
        return used and all(os.access(self.parameters / name, os.W_OK) for name in AWAKE)

    def stay(self) -> None:
        if not self.possible():
            return
        if not self.before.exists():
            had = {name: (self.parameters / name).read_text().strip() for name in AWAKE}
            durable.write(self.before, json.dumps(had))
        self._set(AWAKE)

    def may_sleep(self) -> None:
        """As the machine was before `stay`, also if that was in a run that was killed."""
        if self.before.exists():
            self._set(json.loads(self.before.read_text()))
            durable.remove(self.before)

    def _set(self, values: dict[str, str]) -> None:
        for name, value in values.items():
            (self.parameters / name).write_text(value)
