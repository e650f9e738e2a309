"""Sweeps on rented machines, simulated: the budget holds, machines go when they should, and what they cost is on
record."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness import campaign, campaign_ledger, campaign_spec, ledger, node_commands, sweep
from ntier_harness.errors import BudgetReached, Interrupted, RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.plan_view import plan_data, plan_text
from ntier_harness.spec import Spec
from ntier_harness.targets.paying import DOWN_S, LOOK_S, Paying

from .conftest import QuietScreen
from .dry import DryRunner, DryTarget
from .test_crash_points import CRASHED, in_child, steps_of

OFFER = Path(__file__).resolve().parents[2] / "terraform/targets/hcloud/machines.json"
HOUR = 4 * 0.0829 + 0.1649  # 1/1/1/1M and its client
LONG = "600/600/10"  # three trials in an hour would be too many


class DryRented(Paying, DryTarget):
    """Simulated nodes that are paid for."""

    def __init__(self, runner: DryRunner, paths: Paths, budget: str | None) -> None:
        DryTarget.__init__(self, runner, paths)
        self.set_terms(OFFER, budget)

    def check(self, spec: Spec) -> None:
        super().check(spec)
        self.check_budget(spec)

    def up(self, spec: Spec, log: Path) -> list[Node]:
        self.ledger.rent({n: self.offer.of(t) for n, t in self.node_types(spec).items()}, self.work, self.runner.now())
        self.watch_budget()
        return super().up(spec, log)

    def down(self, log: Path) -> None:
        self.runner.world.state["nodes"].clear()
        self.runner.world.save()
        for file in (self.paths.in_force, self.paths.nodes, self.paths.written):
            file.unlink(missing_ok=True)
        self.ledger.give_back(self.runner.now())


@pytest.fixture
def rented(root: Path) -> Callable[..., Lab]:
    def make(budget: str | None = None, **options: Any) -> Lab:
        runner = DryRunner(root / "world", **options)
        paths = Paths(root, root / "state", root / "results")
        return Lab(runner, paths, DryRented(runner, paths, budget), QuietScreen(), "ntier sweep")

    return make


def cost(lab: Lab) -> float:
    return lab.target.ledger.spent(lab.runner.now() + 1e6)


def valid(lab: Lab, spec: Spec) -> list[str]:
    by_trial = ledger.attempts(lab.paths.raw / spec.sweep)
    return sorted(key for key, attempts in by_trial.items() if any(a.outcome == "valid" for a in attempts))


def test_a_sweep_gives_back_what_it_rented(rented, spec) -> None:
    lab, asked = rented(), spec()
    assert sweep.run(lab, asked) == 0
    assert not lab.target.ledger.open()
    assert not lab.target.instances()
    assert cost(lab) == pytest.approx(HOUR)
    assert "the provider says that nothing is left of them" in lab.screen.said
    assert lab.target.still_rented() == ""


def test_machines_of_ntier_up_stay_and_it_is_said_what_they_cost(rented, spec) -> None:
    node_commands.up(rented(), spec(), {})
    lab = rented()
    assert sweep.run(lab, spec()) == 0
    assert len(lab.target.ledger.open()) == 5
    assert "warning: 5 rented machines cost 0.50 EUR per hour until: ntier down --target local" in lab.screen.said
    node_commands.down(rented())
    assert not lab.target.ledger.open()


def test_a_budget_that_is_used_up_ends_machines_of_ntier_up_too(rented, spec) -> None:
    asked = spec(users="1000,2000,3000,4000", phases=LONG)
    node_commands.up(rented(), asked, {})
    lab = rented("0.5EUR")
    assert sweep.run(lab, asked) == 1
    assert not lab.target.ledger.open()
    assert cost(lab) <= 0.5


def test_the_budget_ends_the_sweep_cleanly_and_more_of_it_goes_on(rented, spec) -> None:
    asked = spec(users="1000,2000,3000,4000", phases=LONG)
    lab = rented("0.5EUR")
    assert sweep.run(lab, asked) == 1
    assert len(valid(lab, asked)) == 2
    assert not lab.target.ledger.open()
    assert cost(lab) <= 0.5
    said = next(s for s in lab.screen.said if "budget" in s)
    assert said == (
        "warning: budget: the next trial would bring the cost to 0.99 EUR, allowed are 0.50 EUR (0.50 EUR so far); "
        "the sweep ends here"
    )
    assert any("no valid attempt in 2 of 4 trials" in s for s in lab.screen.said)
    assert (lab.paths.results / "store").exists()  # what there is was reported

    with pytest.raises(RequestError, match=r"0.50 EUR do not cover one trial .* needs 0.99 EUR \(0.50 EUR of it"):
        sweep.run(rented("0.5EUR"), asked)
    lab = rented("1EUR")
    assert sweep.run(lab, asked) == 0
    assert len(valid(lab, asked)) == 4
    assert cost(lab) <= 1.0


def test_an_interruption_keeps_the_machines_and_says_what_they_cost(rented, spec) -> None:
    lab = rented(stop_at_s=1_800_000_000.0 + 100)
    with pytest.raises(Interrupted):
        sweep.run(lab, spec())
    assert len(lab.target.ledger.open()) == 5
    assert any("5 rented machines cost" in s for s in lab.screen.said)
    lab = rented()
    assert sweep.run(lab, spec()) == 0
    assert not lab.target.ledger.open()


def test_at_the_last_moment_whatever_it_does_the_machines_go(rented, spec) -> None:
    lab = rented("5EUR", stop_at_s=1_800_000_000.0 + 100)
    begin = lab.target.begin

    def begin_and_be_over(work: str) -> None:
        begin(work)
        lab.target._over = True  # as the timer does before it asks the run to stop

    lab.target.begin = begin_and_be_over
    with pytest.raises(BudgetReached, match="it is used up; the machines were given back"):
        sweep.run(lab, spec())
    assert not lab.target.ledger.open()
    assert not rented().target.instances()


@pytest.mark.parametrize("told", [True, False], ids=["a sweep fails", "a campaign goes on"])
def test_what_fails_at_the_last_moment_does_not_keep_the_machines(rented, spec, told) -> None:
    lab = rented("5EUR")
    down = lab.target.down

    def wait_and_give_back(log: Path) -> None:
        lab.runner.stop.check()  # as at each look at Terraform
        down(log)

    lab.target.down = wait_and_give_back
    with contextlib.suppress(WorkError), sweep.locked(lab), sweep.paid_for(lab, "x"):
        lab.target.up(spec(), lab.paths.logs / "terraform.log")
        lab.target._end()
        if told:
            raise WorkError("web1: no answer within 60 s")
    assert not lab.target.ledger.open()


def test_machines_go_before_the_report_which_may_fail(rented, spec, monkeypatch) -> None:
    lab = rented()

    def fails(_lab: Lab, _spec: Spec) -> str:
        assert not lab.target.ledger.open()
        raise WorkError("ntier-analysis report: no space left")

    monkeypatch.setattr(sweep, "finish", fails)
    with pytest.raises(WorkError, match="no space left"):
        sweep.run(lab, spec())
    assert not lab.target.instances()


def test_machines_of_an_interrupted_up_are_told(rented, spec) -> None:
    lab = rented()
    up = lab.target.up

    def interrupted(asked: Spec, log: Path) -> None:
        up(asked, log)
        raise Interrupted("interrupted")

    lab.target.up = interrupted
    with pytest.raises(Interrupted):
        node_commands.up(lab, spec(), {})
    assert any("5 rented machines cost 0.50 EUR per hour until: ntier down" in s for s in lab.screen.said)


def test_the_moment_is_before_the_hour_that_the_budget_does_not_pay(rented, spec) -> None:
    lab = rented("0.5EUR")
    lab.target.begin("x")
    assert lab.target._timer is None  # nothing is rented yet
    with sweep.locked(lab):
        lab.target.up(spec(), lab.paths.logs / "terraform.log")
    assert lab.target._timer.interval == LOOK_S
    since = lab.target.ledger.open()[0].from_s
    lab.runner.world.state["now"] = since + 3600 - DOWN_S - 5  # as after a sleep, in which timers stand still
    lab.target.watch_budget()
    assert lab.target._timer.interval == pytest.approx(5, abs=0.1)
    assert not lab.target.over()
    lab.runner.world.state["now"] += 6
    lab.target._look_in(0.2)
    time.sleep(0.5)
    assert lab.target.over()
    assert lab.runner.stop.requested
    lab.target.give_back()


def test_manifests_say_what_was_rented(rented, spec) -> None:
    lab, asked = rented(), spec()
    sweep.run(lab, asked)
    for file in (lab.paths.raw / asked.sweep).glob("*/manifest.json"):
        rent = json.loads(file.read_text())["rent"]
        assert rent["currency"] == "EUR"
        assert sum(rent["price_per_hour"].values()) == pytest.approx(HOUR)
        assert rent["types"]["client1"] == "ccx23"
        assert set(rent["since_s"]) == {"web1", "app1", "middleware1", "db1", "client1"}


def test_the_token_is_in_no_result(rented, spec, root, monkeypatch) -> None:
    """For the state and the logs of what was really rented: test_rented.py."""
    token = "secret" * 10 + "1234"
    monkeypatch.setenv("HCLOUD_TOKEN", token)
    lab, asked = rented("5EUR"), spec()
    assert sweep.run(lab, asked) == 0
    files = [f for f in lab.paths.results.rglob("*") if f.is_file()]
    files += [f for f in lab.paths.state.rglob("*") if f.is_file()]
    assert any(f.name == "manifest.json" for f in files)
    assert [f for f in files if token.encode() in f.read_bytes()] == []


@pytest.mark.whole
def test_a_crash_anywhere_keeps_the_budget_and_leaves_nothing(rented, spec, root, monkeypatch) -> None:
    """In the middle of renting, deploying, warming up or a trial: then `down`, or the same command once more."""
    asked, budget = spec(users="1000", phases="2/5/1"), "0.6EUR"

    def ended(crash_at: int) -> int:
        monkeypatch.setenv("NTIER_CRASH_AT", str(crash_at))
        return in_child(lambda: sweep.run(rented(budget), asked))

    n_steps = len(steps_of(lambda: rented(budget), asked))
    assert n_steps > 60
    for at in range(2, n_steps, 5):
        for folder in ("state", "results", "world"):
            shutil.rmtree(root / folder, ignore_errors=True)
        assert ended(at) == CRASHED
        if at % 2:
            monkeypatch.delenv("NTIER_CRASH_AT")
            node_commands.down(rented())
        else:
            assert ended(0) == 0
        lab = rented()
        assert not lab.target.ledger.open(), at
        assert not lab.target.instances(), at
        assert cost(lab) <= 0.6, at


CAMPAIGN = "topologies: [1/1/1/1M, 1/1/1/2M]\nusers: [1000, 2000]\nphases: 600/600/10\n"


def test_a_campaign_has_one_budget_and_gives_back_at_its_end(rented, root) -> None:
    parsed = campaign_spec.parse(CAMPAIGN, "c.yaml", root, 2)
    planned = campaign_ledger.data(rented("2EUR"), parsed)
    assert planned["price"]["per_hour"] == pytest.approx(HOUR + 0.0829)  # the dearer of the two
    assert planned["price"]["expected"] == round(3 * HOUR + 2 * 0.0829, 2)
    assert "price about 1.66 EUR, without retries and long warm-ups" in campaign_ledger.text(planned)
    assert "budget 2 EUR: before that the campaign ends" in campaign_ledger.text(planned)

    lab = rented("0.6EUR")
    assert campaign.run(lab, parsed, "c.yaml") == 1
    assert not lab.target.ledger.open()
    assert cost(lab) <= 0.6
    assert sum(len(valid(lab, s)) for s in parsed.sweeps) == 2
    assert "warning: the budget does not last: the campaign ends here; 0 sweeps not tried" in lab.screen.said

    lab = rented("2EUR")
    assert campaign.run(lab, parsed, "c.yaml") == 0
    assert not lab.target.ledger.open()
    assert cost(lab) <= 2
    assert {m.work for m in lab.target.ledger.machines()} == {"c"}


def test_a_used_up_budget_is_said_once_and_no_further_sweep_is_begun(rented, root) -> None:
    text = CAMPAIGN.replace("1/1/1/2M]", "1/1/1/2M, 1/2/1/1M, 1/2/1/2M]")
    parsed, lab = campaign_spec.parse(text, "c.yaml", root, 2), rented("0.7EUR")
    assert campaign.run(lab, parsed, "c.yaml") == 1
    assert "warning: the budget does not last: the campaign ends here; 2 sweeps not tried" in lab.screen.said
    assert sum("EUR" in s for s in lab.screen.said) == 1
    assert any("3 of 4 sweeps are not complete: " in s for s in lab.screen.said)

    lab = rented("0.7EUR")  # on another day, with what was spent on this one
    assert campaign.run(lab, parsed, "c.yaml") == 1
    assert "warning: the budget does not last: the campaign ends here; 2 sweeps not tried" in lab.screen.said
    assert not lab.target.instances()


def test_a_campaign_pays_each_machine_from_its_rental_until_it_goes(rented, root) -> None:
    """In turns: the second database is rented twice, for one hour that has hardly begun."""
    small, large = campaign_spec.parse(CAMPAIGN, "c.yaml", root, 2).sweeps
    target = rented().target
    legs = [(small, 1000), (large, 1000), (small, 1000), (large, 1000)]
    seconds = 900 + 1000 + 900 + 1000 + 1000 + 900 + 1000 + 300
    assert target.price_of_all(legs, "c")["expected"] == round(-(-seconds // 3600) * HOUR + 2 * 0.0829, 2)
    assert target.price_of_all(legs[:1], "c")["expected"] == round(HOUR, 2)
    assert target.price_of_all([(small, 1000), (large, 3000)], "c")["expected"] == round(2 * HOUR + 2 * 0.0829, 2)
    assert target.price_of_all([], "c") is None


def test_the_plan_says_the_price(rented, lab, spec) -> None:
    asked = spec(users="1000:13000:1000", phases=LONG)
    data = plan_data(rented("20EUR"), asked)
    hours = data["price"]["hours"]
    assert hours == -(-(data["duration_s"] + 1200) // 3600)
    assert data["price"]["expected"] == round(hours * HOUR, 2)
    text = plan_text(data)
    assert f"price     about {hours * HOUR:.2f} EUR: {hours} hours of 4 ccx13, 1 ccx23 (0.50 EUR per hour)" in text
    assert "budget    20 EUR: before that the sweep ends and gives the machines back" in text
    assert plan_data(lab(), asked)["price"] is None
