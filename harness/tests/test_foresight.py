"""What minutes buy: a search that fits into them, and a plan that says how narrow the interval will be."""

from __future__ import annotations

import json

import pytest
from ntier_harness import foresight, plan, plan_view, schedule, sweep
from ntier_harness.errors import RequestError

from .dry import DryRunner


def searched(spec, minutes, reps=None, **options):
    s = spec(users="1000:13000:1000", search="capacity", phases="short", reps=reps, **options)
    return plan.within(s, minutes, s.reps if reps else None)


@pytest.mark.parametrize("minutes", [9, 10, 12, 20, 45])
def test_a_search_fits_into_its_minutes_and_uses_them(spec, minutes):
    s = searched(spec, str(minutes))
    trials = s.most_loads * s.reps
    assert 4 <= s.most_loads == s.most_loads_if_few <= 6, "what was promised to end in these minutes"
    assert plan.sweep_duration_s(s, trials, deployed=False) <= 60 * minutes
    unused_s = 60 * minutes - plan.sweep_duration_s(s, trials, deployed=False)
    assert unused_s < (s.most_loads + 1) * plan.trial_duration_s(s), "one more repetition would have fitted"
    assert s.precision == 0.005, "it goes on as long as the minutes last"


def test_bare_machines_are_installed_before_the_minutes_begin(spec, lab):
    local, hosts = searched(spec, "40"), searched(spec, "40", target="hosts")
    more_s = plan.INSTALL_S - plan.UP_S - plan.DEPLOY_S
    assert plan.from_nothing_s(hosts) == plan.from_nothing_s(local) + more_s
    assert plan.from_nothing_s(hosts, up=True) == plan.from_nothing_s(local)
    assert plan.sweep_duration_s(hosts, hosts.most_loads * hosts.reps, deployed=False, up=True) <= 40 * 60
    assert hosts.most_loads * hosts.reps == local.most_loads * local.reps
    bare, up = (foresight.offers(hosts, [4000, 9000], WIDTHS, up=there)[0]["seconds"] for there in (False, True))
    assert bare == up + more_s
    data = plan_view.plan_data(lab(), local)
    assert "with all installed and nodes not yet up, without retries" in plan_view.plan_text(data)
    assert "with the installation of bare machines, without retries" in plan_view.plan_text(data | {"installs": True})


def test_repetitions_asked_for_are_kept_and_a_precision_ends_it_sooner(spec):
    s = searched(spec, "20", reps="2", precision="0.03")
    assert (s.reps, s.precision, s.reps_by_minutes) == (2, 0.03, False)
    assert searched(spec, "20", precision="0.03").reps_by_minutes
    assert searched(spec, None) == spec(users="1000:13000:1000", search="capacity", phases="short")


@pytest.mark.parametrize(
    ("minutes", "says"),
    [
        ("3", "minutes: 3 are too few: 4 loads take about 9"),
        ("soon", "minutes: 'soon' is not a number; allowed are 1..10000"),
        ("0", "minutes: 0 is out of range; allowed are 1..10000"),
        ("nan", "minutes: nan is out of range"),
    ],
)
def test_wrong_minutes_are_one_clear_error(spec, minutes, says):
    with pytest.raises(RequestError) as error:
        searched(spec, minutes)
    assert says in str(error.value)


def test_minutes_are_for_a_search(spec):
    with pytest.raises(RequestError, match="give them with --search capacity"):
        plan.within(spec(), "20")


WIDTHS = {n: [1 / n, 0.5 / n, 2 / n] for n in range(2, 595)}


def test_offers_of_a_search_count_the_trials_beyond_the_knee(spec):
    found = foresight.offers(searched(spec, None), [4000, 9000], WIDTHS)
    sizes = {(o["loads"], o["reps"]): o["half_width"][0] for o in found}
    assert sizes == {(n, r): 1 / ((n - 1) * r) for n in (4, 6) for r in (1, 2, 3)}
    assert [o["seconds"] for o in found] == sorted(o["seconds"] for o in found)


def test_offers_of_a_grid_take_the_loads_beyond_the_knee(spec):
    s = spec(users="1000:13000:1000")
    for last, n in ((20_000, 10), (13_000, 10), (6000, 3)):
        assert [(o["loads"], o["half_width"][0]) for o in foresight.offers(s, [4000, last], WIDTHS)] == [
            (13, 1 / n), (13, 1 / (2 * n)), (13, 1 / (3 * n)),
        ]  # fmt: skip
    assert foresight.offers(s, [13_000, 13_000], {3: WIDTHS[3]})[0]["reps"] == 3, "one trial has no interval"


def test_a_plan_without_loads_that_count_says_why_it_foresees_nothing(spec):
    told = {"source": "s", "trials_n": 3, "total": 0.1, "within": 0.1, "run_s": 40, "plateau_users": [5650, 8050]}
    for s in (spec(users="1000,2000"), spec(users="1000:5000:1000", search="capacity")):
        text = foresight.lines(told | {"offers": foresight.offers(s, told["plateau_users"], WIDTHS)})
        assert text[1:] == [
            "  none: an interval needs two loads that count for the maximum, 5650 to 8050 users by those trials"
        ]


def test_a_store_that_cannot_be_read_is_a_line_of_the_plan(lab, spec, monkeypatch):
    machine, s = lab(), spec(users="1000:13000:1000")
    (machine.paths.results / "store" / "trials").mkdir(parents=True)

    def torn(_self, _argv, _input):
        return 2, "error: store/trials/x.parquet: cannot be read"

    monkeypatch.setattr(DryRunner, "_ntier_analysis", torn)
    (line,) = foresight.lines(foresight.foreseen(machine, s))
    assert line.startswith("precision of the maximum: not known (")
    assert "x.parquet: cannot be read" in line


def test_the_precision_asked_for_has_its_price(spec):
    last = foresight.offers(searched(spec, None, precision="0.01"), [4000, 9000], WIDTHS)[-1]
    assert (last["loads"], last["reps"]) == (6, 20), "100 trials beyond the knee"


def test_the_plan_says_what_is_foreseen(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab()
    data = plan_view.plan_data(machine, s) | {"foreseen": foresight.foreseen(machine, s)}
    assert "unknown until there are trials of this topology" in plan_view.plan_text(data)
    sweep.run(machine, s)
    (machine.paths.results / "store" / "trials").mkdir()
    told = foresight.foreseen(machine, s)
    text = plan_view.plan_text(data | {"foreseen": told})
    assert "foreseen from 3 trials of simulated (they differ by 8.0 %" in text
    assert "6 loads, 3 times each" in text
    assert "+-6.7 %  (8 times in 10 between 3.3 and 13.3 %)" in text
    json.dumps(told)


def test_minutes_bound_the_loads_that_are_run(lab, spec):
    s, machine = searched(spec, "12"), lab()
    assert schedule.make(machine, s, 3).at_most() == s.most_loads * s.reps
    assert "as long as the minutes last" in plan_view.plan_text(plan_view.plan_data(machine, s))
