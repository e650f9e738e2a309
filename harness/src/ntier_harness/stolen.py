"""Waiting for a hypervisor that takes CPU time away. Most such spells last for minutes: an attempt begun within one
would be refused like the one before it."""

from __future__ import annotations

from ntier_analysis.contracts.manifest import Manifest

from ntier_harness import awake
from ntier_harness.lab import Lab

REASON = "host_robbed"
MOST_PCT = 1.0  # as check H2 (docs/validity.md)
LOOK_S = 10.0  # a second's share jumps between 0 and 5 %
LONGEST_S = 240.0  # some machines are robbed all day; a driver that is ready waits 300 s for its users


def await_cpu(lab: Lab, last: Manifest | None) -> None:
    """If the last attempt was refused for stolen CPU time: returns when less is stolen, or after LONGEST_S."""
    if not (last and last.validity and REASON in last.validity.reasons):
        return
    end = lab.runner.monotonic() + LONGEST_S
    said = False
    while (taken := share_pct(lab)) > MOST_PCT and lab.runner.monotonic() < end:
        if not said:
            lab.screen.say(
                f"a hypervisor takes {taken:.1f} % of the CPU time, {MOST_PCT:g} % are allowed: waiting until it "
                f"takes less, at most {LONGEST_S / 60:.0f} min"
            )
        said = True


def share_pct(lab: Lab) -> float:
    """Percent of its CPU time that the most robbed machine loses in the next LOOK_S."""
    with awake.as_in_a_trial(lab):
        before = lab.target.cpu_ticks(lab.nodes)
        lab.runner.sleep(LOOK_S)
        after = lab.target.cpu_ticks(lab.nodes)
    shares = [0.0]
    for name, ticks in after.items():
        spent = [now - then for now, then in zip(ticks, before.get(name, ticks), strict=True)]
        shares += [100 * spent[-1] / sum(spent)] if sum(spent) > 0 else []
    return max(shares)
