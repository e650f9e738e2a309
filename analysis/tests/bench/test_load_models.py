"""Open load and a fixed amount of work, simulated: what the verdict says against what relief shows."""

from dataclasses import replace

import pytest
from load_models import judged, outcome, runs_of, tables_of
from ntier_analysis.described import LoadAxis
from ntier_analysis.figures.load_axis import over
from ntier_analysis.figures.style import OTHER, tier_look, tier_order
from ntier_analysis.report.page import write_report
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import write_table
from ntier_analysis.verdict.tables import judge
from pictures import no_picture_files
from queueing.cases import Case, View
from queueing.model import Part, Step, System, Think
from queueing.relief import label
from queueing.variants import built

pytestmark = pytest.mark.whole

STATIONS = (Part("front", 0, "cpu", servers=3), Part("back", 0, "cpu"), Part("back", 0, "disk"))
LONG_S = 60.0


def network(front_s=0.12, back_s=0.03, disk_s=0.02, lock_s=0.0, sleep_s=0.0, workers=0) -> System:
    """Front with 3 cores, back with one and a disk; perhaps a lock that no collector sees, a pool, a pause."""
    pool = Part("front", 0, "pool:workers", kind="places", servers=workers)
    lock = Part("back", 0, "lock", kind="places", measured=False)
    take, give = (Step(o, "front", "pool:workers") for o in ("take", "give"))
    steps = (
        Step("enter", "front"), *[take] * bool(workers), Step("serve", "front", "cpu", mean=front_s),
        Step("enter", "back"), Step("serve", "back", "cpu", mean=back_s),
        *[Step("serial", "back", "lock", mean=lock_s)] * bool(lock_s), Step("serve", "back", "disk", mean=disk_s),
        Step("exit", "back"), *[give] * bool(workers), Step("exit", "front"),
        *[Step("delay", mean=sleep_s)] * bool(sleep_s),
    )  # fmt: skip
    parts = (*STATIONS, *[pool] * bool(workers), *[lock] * bool(lock_s))
    return System(("front", "back"), {"front": 1, "back": 1}, parts, steps, Think(0.0))


def case(model: str, system: System, levels: list[float]) -> Case:
    view = View(cpu_s=0.1, slow_s=1.0, noise_pct=0.0, gap_s=0.0, queues=True, cores=True, interactions=True)
    return Case("made", "made", built("none"), system, tuple(levels), 1.0, 40.0, 1.0, view, 7, model)


OPEN = {
    "front": (network(), [8.0, 15.0, 32.0, 40.0], "single"),
    "nothing": (network(), [5.0, 10.0, 16.0], "none"),
    "lock": (network(front_s=0.05, lock_s=0.06), [5.0, 9.0, 22.0, 28.0], "hidden"),
    "pool": (network(front_s=0.05, workers=1), [2.0, 5.0, 14.0, 18.0], "single"),
}
WORK = {
    "front": (network(), [1.0, 2.0, 8.0, 24.0, 48.0], "single"),
    "lock": (network(front_s=0.04, lock_s=0.06), [1.0, 2.0, 8.0, 16.0, 24.0], "hidden"),
}


@pytest.mark.parametrize("name", OPEN)
def test_an_open_system_is_judged_by_its_backlog(name):
    system, rates, truth = OPEN[name]
    made = case("open", system, rates)
    labelled, said = label(made, LONG_S), judged(made, runs_of(made))
    assert labelled.truth == truth
    assert outcome(labelled, said) == "right", said.evidence
    assert "backlog" in said.reasoning
    assert "N/(Z+R" not in "".join(said.evidence)
    if truth == "single" and name == "front":
        assert said.max_throughput.value == pytest.approx(25.0, rel=0.06)
        assert said.knee_bracketed


@pytest.mark.parametrize("name", WORK)
def test_a_fixed_amount_of_work_is_judged_by_its_workers(name):
    system, workers, truth = WORK[name]
    made = case("work", system, workers)
    labelled, said = label(made, LONG_S), judged(made, runs_of(made))
    assert labelled.truth == truth
    assert outcome(labelled, said) == "right", said.evidence
    assert "time to completion" in said.reasoning
    assert "Z " not in "".join(v.evidence[0] for _, v in said.trials)


def test_few_workers_are_never_blamed_on_a_busy_cpu():
    """One worker keeps its core busy, and more cores gain nothing."""
    made = case("work", network(front_s=0.01, back_s=0.2, disk_s=0.001), [1.0])
    assert label(made, LONG_S).truth == "none"
    assert judged(made, runs_of(made)).verdict == "unknown"


def test_without_a_count_of_what_was_begun_an_open_load_has_no_verdict(monkeypatch):
    made = case("open", network(), [8.0, 40.0])
    runs = [replace(run, begun=run.begun[:0]) for run in runs_of(made)]
    monkeypatch.setattr("load_models.BEAT_S", 1e6)  # the heartbeat is lost
    said = judged(made, runs)
    assert said.verdict == "unknown"
    assert not said.bottlenecks
    assert any("is not known" in text for text in said.evidence)


def test_each_value_of_a_factor_that_is_no_load_is_judged_by_itself():
    """A pause within each unit of work: with a long one the workers wait for it, without it for the front's CPU."""
    values = [0.0, 0.2, 4.0]
    made = [case("work", network(sleep_s=v), [24.0]) for v in values]
    runs = [runs_of(one)[0] for one in made]
    whole = replace(made[0], loads=(24.0, 25.0, 26.0))  # three trials
    said = judged(whole, [replace(run, users=24) for run in runs], ("sleep_s", "s"), values)
    assert [load.value for load, _ in said.trials] == values
    assert [load.named for load, _ in said.trials][1] == "sleep_s 0.2 s"
    assert said.factor == "sleep_s"
    by_value = {load.value: v for load, v in said.trials}
    assert [(b.tier, b.resource) for b in by_value[0.0].bottlenecks] == [("front", "cpu")]
    assert by_value[4.0].verdict in ("unknown", "none")
    assert said.max_throughput is None
    assert "judged by itself" in said.evidence[0]


def test_a_report_names_the_factor_and_draws_no_law(tmp_path):
    values = [0.0, 0.5]
    made = [case("work", network(sleep_s=v), [24.0]) for v in values]
    runs = [replace(runs_of(one)[0], users=24) for one in made]
    whole = replace(made[0], loads=(24.0, 25.0))
    tables = tables_of(whole, runs, ("sleep_s", "s"), values)
    stored = dict.fromkeys(TABLES) | dict(zip(("trials", "samples", "nodes", "interactions"), tables, strict=True))
    for name, frame in (stored | judge("made", *tables)).items():
        empty = TABLES[name].empty_table().to_pandas()
        write_table(tmp_path / "store", name, "made", empty if frame is None else frame)
    with no_picture_files():
        page = write_report(tmp_path / "store", "made", tmp_path / "out").read_text()
    assert "sleep_s [s]" in page
    assert "users (nominal)" not in page
    assert "N / (Z + R)" not in page
    assert "fixed amount of work" in page


def test_tiers_of_any_name_have_looks_of_their_own():
    with over(LoadAxis(order=("front", "cache", "back"))):
        assert len({tier_look(t).color for t in ("front", "cache", "back", "client", "host")}) == 5
        assert sorted(["host", "back", "front", "cache"], key=tier_order) == ["front", "cache", "back", "host"]
    assert tier_look("front") == OTHER


def test_more_load_at_smaller_values_is_said():
    rates = [8.0, 15.0, 32.0]
    made = case("open", network(), rates)
    said = judged(made, runs_of(made), ("pause_s", "s"), [1 / r for r in rates])
    assert "smaller values of pause_s mean more load" in said.reasoning
    assert [round(load.value, 3) for load, _ in said.trials] == [0.125, 0.067, 0.031]
    assert said.verdict == "single"
