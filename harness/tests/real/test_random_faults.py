"""Short sweeps, each hit once by kill -9: what is hit, in which step and when is drawn from a seed, each step as likely
as another (moments drawn by the second would nearly all fall into the phases). Promises I1-I9 hold in all."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from ntier_analysis.contracts.manifest import State

from .. import promises
from .conftest import NTIER, PHASES, RealSweep, incus, on_node

pytestmark = [pytest.mark.nodes("1/1/1/1M"), pytest.mark.faults]

SEED = 20261121
CASES = 32
STEPS = ("reset", "start", "facts", "limits", "ramp_up", "run", "ramp_down", "stop", "collect", "validate")
SECONDS = dict(zip(("ramp_up", "run", "ramp_down"), (float(s) for s in PHASES.split("/")), strict=True))
KILL = {
    "db_node": lambda: incus("--project", "ntier", "stop", "db1", "--force"),
    "middleware": lambda: on_node("middleware1", "pkill -9 java"),
    "client": lambda: on_node("client1", "pkill -9 java"),
}


def drawn(case: int) -> tuple[str, str, float]:
    """(what is killed, in which step, seconds into it) of one case; every kind meets a quarter of the cases."""
    chance = random.Random(f"{SEED}/{case}")
    step = chance.choice(STEPS)
    return ("harness", *KILL)[case % 4], step, chance.uniform(0.0, SECONDS.get(step, 0.5))


def tables(results: Path) -> dict[str, pd.DataFrame]:
    store = results / "store"
    return {str(p.relative_to(store)): pd.read_parquet(p) for p in sorted(store.rglob("*.parquet"))}


def check_rebuilt(sweep: RealSweep) -> None:
    """I9, and I2 in the store: deleted and made again from raw, it has the same tables."""
    before = tables(sweep.results)
    shutil.rmtree(sweep.results / "store")
    argv = [Path(NTIER).with_name("ntier-analysis"), "ingest", "--raw", sweep.raw, "--store", sweep.results / "store"]
    subprocess.run(argv, check=True, capture_output=True)
    after = tables(sweep.results)
    assert before.keys() == after.keys(), "I9: other tables"
    for name, frame in before.items():
        pd.testing.assert_frame_equal(frame, after[name], obj=f"I9: {name}")
    trials = pd.concat(f for n, f in after.items() if n.startswith("trials"))
    assert not trials.duplicated(["sweep", "trial"]).any(), "I2: a trial counts twice"


@pytest.mark.parametrize("case", range(CASES))
def test_promises_hold(real_sweep, case):
    kind, step, seconds = drawn(case)
    sweep = real_sweep(f"random{case}")
    sweep.start()
    sweep.await_step(step, seconds)
    sweep.fault(KILL.get(kind, lambda: sweep.process.kill()))
    code = sweep.wait()
    sealed = promises.sealed_valid(sweep.raw)
    if kind == "harness":
        assert code == -9
    else:
        sweep.check(code, (0, 1))

    code = sweep.run()
    sweep.check(code, (0, 1))
    verdict = promises.Verdict()
    promises.check_survival(verdict, sweep.raw, sealed)
    attempts = sweep.attempts()
    assert any(a.manifest.state is State.COLLECTED for a in attempts), sweep.log.read_text()[-3000:]
    assert sum(a.outcome == "valid" for a in attempts) <= 1, "I2"
    before = promises.digests(sweep.raw)
    assert sweep.run() == code
    promises.check_unchanged(verdict, before, promises.digests(sweep.raw))
    assert not verdict.violations, "\n".join(verdict.violations)
    check_rebuilt(sweep)
    print(f"case {case}: {kind} killed {seconds:.1f} s into {step}: {[a.outcome for a in attempts]}, exit {code}")
