"""`ntier-analysis check`: expectations hold, do not hold, or cannot be decided."""

import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import doors
import numpy as np
import pandas as pd
import pytest
from ntier_analysis import cli
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.expectation import check, files, loads, with_disk
from ntier_analysis.expectation.cores import cores
from ntier_analysis.expectation.expressions import Others, evaluate
from ntier_analysis.expectation.quantity import Quantity, quotient
from ntier_analysis.expectation.saturations import saturation
from ntier_analysis.statistics.chains import Link, Step
from ntier_analysis.store.tables import read_table, write_table
from ntier_analysis.verdict.moves import SOURCES, Chain, Looked
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json

DEFAULT = SWEEP.replace("1M", "1P")
POSTGRESQL = f"{DEFAULT}.xd86811"


def command(*arguments) -> doors.Done:
    return doors.call(cli.main, "check", *arguments)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [  # measured: 115.7 [112.5, 118.9], knee 4,055, db CPU
        ("max_throughput >= 100", "holds"),
        ("max_throughput >= 115", "undecided"),
        ("max_throughput >= 130", "does not hold"),
        ("max_throughput<=130", "holds"),
        ("max_throughput == 100", "does not hold"),
        ("knee_users > 3500", "holds"),
        ("knee_users > 4050", "undecided"),
        ("verdict == single", "holds"),
        ("verdict == single db cpu", "holds"),
        ("verdict == single app cpu", "does not hold"),
        ("verdict == multi db cpu and app cpu", "does not hold"),
        ("verdict != hidden", "holds"),
        ("saturation(db cpu) >= 0.9", "holds"),
        ("saturation(db cpu) >= 90 %", "holds"),
        ("saturation(db1 cpu) >= 90 %", "holds"),
        ("saturation(8000 db1 cpu) >= 70 %", "holds"),
        ("saturation(app cpu) >= 0.5", "does not hold"),
        ("throughput(5000) >= 100", "holds"),
        ("throughput(5000) >= 120", "undecided"),
        ("saturation(db cpu) >= 97 %", "undecided"),
        ("saturation(client cpu) <= 50 %", "holds"),
        ("goodput(1000) >= 20", "holds"),
        ("response_time(1000) <= 50", "holds"),
        ("p95(1000) <= 2000", "holds"),
        ("p95(8000) <= 2000", "does not hold"),
        ("p99(1000) <= 9999", "undecided"),  # 58 ms, but the run does not tell how long the longest get
        ("errors(4000) == 0", "holds"),
        ("invalid_trials == 0", "holds"),
        (f"ratio({SWEEP}, {SWEEP}) within 5%", "holds"),
        ("throughput(1000 ViewStory) <= 10", "holds"),
        ("throughput(1000 ViewStory) >= 10", "does not hold"),
        ("p95(8000 ViewStory) <= 2000", "does not hold"),
        (f"ratio(throughput(4000) of {SWEEP}, throughput(1000) of {SWEEP}) >= 3", "holds"),
        (f"ratio(throughput(1000) of {SWEEP}, throughput(4000) of {SWEEP}) >= 3", "does not hold"),
        (f"ratio(throughput(5000) of {SWEEP}, throughput(8000) of {SWEEP}) within 30 %", "holds"),
        (f"ratio(throughput(4000), throughput(1000) of {SWEEP}) >= 3", "holds"),
        ("ratio(throughput(4000), throughput(1000)) >= 3", "holds"),
        ("saturation(8000 db cpu) >= 70 %", "holds"),
        ("saturation(1000 db cpu) <= 50 %", "holds"),
        ("saturation(1000 db cpu) >= 50 %", "does not hold"),
        ("mean_throughput >= 30", "holds"),
        (f"ratio(throughput(4000) of {SWEEP}, throughput(1000) of {SWEEP}) within 30 %", "does not hold"),
        # PostgreSQL: 59 [56, 63] at least, 0.51 times as much
        (f"ratio({POSTGRESQL}, {SWEEP}) >= 0.4", "holds"),
        (f"ratio({POSTGRESQL}, {SWEEP}) >= 0.6", "undecided"),
        (f"ratio({POSTGRESQL}, {SWEEP}) <= 0.7", "undecided"),
        (f"ratio({POSTGRESQL}, {SWEEP}) within 5 %", "undecided"),
        (f"ratio({SWEEP}, {POSTGRESQL}) <= 2.5", "holds"),
        (f"ratio({SWEEP}, {POSTGRESQL}) >= 1.5", "undecided"),
        (f"ratio({SWEEP}, {POSTGRESQL}) >= 2.5", "does not hold"),
        (f"ratio({POSTGRESQL}, {SWEEP}, demand_ms db) >= 1.2", "holds"),
    ],
)
def test_the_interval_decides(store, facts, text, outcome):
    evaluation = evaluate(text, facts[SWEEP], store)
    assert evaluation.outcome == outcome, evaluation.text


def test_a_lower_bound_is_no_upper_bound(store, facts):
    """19 [13, 24] at least: two loads beyond the knee."""
    at_least, at_most = (evaluate(f"max_throughput {t}", facts[DEFAULT], store) for t in (">= 10", "<= 30"))
    assert (at_least.outcome, at_most.outcome) == ("holds", "undecided")
    assert "a lower bound" in at_most.seen


def test_too_few_samples_are_undecided(store, facts):
    evaluation = evaluate("p99(100) <= 99999", facts[DEFAULT], store)
    assert evaluation.outcome == "undecided"
    assert "too few interactions" in evaluation.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_throughput", "expected NAME OPERATOR VALUE"),
        ("speed >= 1", "unknown name 'speed'; allowed are verdict, max_throughput, knee_users"),
        ("max_throughput >= fast", "'fast' is not a number"),
        ("max_throughput(1000) >= 1", "takes no argument"),
        ("p95(1234) <= 1", "needs a load that was measured: 1000, 2000"),
        ("p95 <= 1", "needs a load that was measured"),
        ("saturation(db) >= 1", r"expected saturation\(TIER RESOURCE\)"),
        ("saturation(1234 db cpu) >= 1", "needs a load that was measured: 1000, 2000"),
        ("saturation(1000 db) >= 1", r"expected saturation\(TIER RESOURCE\)"),
        ("mean_throughput(1000) >= 1", "takes no argument"),
        ("cores >= 1", r"expected cores\(TIER\); tiers are web, app, middleware, db"),
        ("cores(proxy) >= 1", r"'proxy': expected cores\(TIER\); tiers are web, app, middleware, db"),
        ("with_disk(8000 queue sideways) >= 1", "'queue sideways': expected queue, statements, cpu with up or down"),
        ("with_disk(8000 disk up) >= 1", "'disk up': expected queue"),
        ("with_disk(queue up) >= 1", "needs a load that was measured"),
        (f"ratio(max_throughput in anchors, max_throughput of {SWEEP}) >= 1", "has no anchor"),
        (f"ratio(cores(web) in anchors, cores(web) of {SWEEP}) >= 1", "only max_throughput, .* can be in anchors"),
        (f"ratio(saturation(db cpu) in anchors, knee_users of {SWEEP}) >= 1", "'saturation.db cpu. in anchors': only"),
        ("verdict >= single", "a verdict can be == or !="),
        ("verdict == slow", "verdict 'slow'; allowed are none, single"),
        ("max_throughput within 0.05", "operator 'within' needs ratio"),
        ("max_throughput >= 100 %", "a percentage is not allowed here"),
        ("verdict == single db", "expected TIER RESOURCE"),
        ("verdict != single database cpu", "'database': allowed are web, app, middleware, db"),
        ("verdict != single db cpus", "'cpus': allowed are cpu, disk"),
        ("verdict == none db cpu", "none names no resource"),
        ("verdict(db) == single", "verdict takes no argument"),
        ("saturation(db cpu) <= 10", "'10' is not a share; allowed are 0 to 1, or 0 % to 100 %"),
        ("saturation(database cpu) <= 10 %", "'database': allowed are web, app, middleware, db, client, host"),
        ("saturation(db2 cpu) <= 10 %", "'db2': allowed are web, app, middleware, db, client, host; nodes .*db1"),
        ("saturation(db cpus) <= 10 %", "'cpus': allowed are cpu"),
        ("saturation(db1 cpus) <= 10 %", "'cpus': allowed are cpu"),
        (f"ratio({SWEEP}, {SWEEP}) within -5 %", "is not a share"),
        (f"ratio({SWEEP}, {SWEEP}) within 0 %", "is not a margin"),
        (f"ratio({SWEEP}) within 5 %", r"expected ratio\(B, A\)"),
        ("goodput(1000 ViewStory) >= 1", "goodput is not measured for a single interaction"),
        ("throughput(1000 Nothing) >= 1", "interaction 'Nothing'; there are: Browse, BrowseCategories"),
        (f"ratio(speed(1) of {SWEEP}, throughput(1000) of {SWEEP}) >= 1", r"expected NAME\(ARGUMENT\) of SWEEP"),
        (f"ratio(x, {SWEEP}) within 5 %", "no sweep 'x'"),
        (f"ratio({SWEEP}, {SWEEP}, colour) within 5 %", "unknown metric 'colour'; allowed are throughput_per_s"),
    ],
)
def test_what_cannot_be_read_is_named(store, facts, text, message):
    with pytest.raises(DataError, match=message):
        evaluate(text, facts[SWEEP], store)


def test_the_load_is_a_value_of_what_the_sweep_varies(facts):
    trials = facts[SWEEP].trials.copy()
    trials["factor_value"] = trials["users"] / 10_000
    wanted = loads.at_load("throughput", "1000", facts[SWEEP].trials, pd.DataFrame, "")
    assert loads.at_load("throughput", "0.1", trials, pd.DataFrame, "") == wanted
    with pytest.raises(DataError, match=r"needs a load that was measured: 0\.1, 0\.2"):
        loads.at_load("throughput", "1000", trials, pd.DataFrame, "")


def test_interactions_add_up_to_all_of_them(facts):
    trials, done = facts[SWEEP].trials, facts[SWEEP].table("interactions")
    names = set(done["interaction"])
    parts = [loads.at_load("throughput", f"4000 {name}", trials, lambda: done, "") for name in names]
    whole = loads.at_load("throughput", "4000", trials, lambda: done, "")
    assert sum(p.value for p in parts) == pytest.approx(whole.value, rel=1e-6)
    assert all(p.low <= p.value <= p.high for p in parts if p.low is not None)


def test_a_ratio_of_two_numbers_has_the_errors_of_both():
    same = quotient(Quantity(20.0, 16.0, 25.0), Quantity(10.0, 10.0, 10.0))
    assert (same.value, same.low, same.high) == pytest.approx((2.0, 1.6, 2.5))
    both = quotient(Quantity(20.0, 16.0, 25.0), Quantity(10.0, 8.0, 12.5))
    reach = math.exp(math.sqrt(2) * math.log(1.25))
    assert (both.low, both.high) == pytest.approx((2.0 / reach, 2.0 * reach))
    assert quotient(Quantity(20.0, 0.0, 25.0), Quantity(10.0, 8.0, 12.5)).low is None
    assert quotient(Quantity(20.0, 16.0, 25.0), Quantity(10.0, None, None)).low is None
    least, exact = Quantity(20.0, 16.0, math.inf), Quantity(10.0, 10.0, 10.0)
    assert (quotient(least, exact).low, quotient(least, exact).high) == pytest.approx((1.6, math.inf))
    assert (quotient(exact, least).low, quotient(exact, least).high) == pytest.approx((0.0, 0.625))


def test_a_ratio_may_be_in_units_of_anchors(store, facts):
    """Whatever the anchor made, a sweep is as fast as itself; and the anchor's error widens the interval."""
    both = "ratio(max_throughput in anchors, max_throughput in anchors of {0}) > 0"
    known = Others({SWEEP: facts[SWEEP]}, {SWEEP: SWEEP})
    result = evaluate(both.format(SWEEP), facts[SWEEP], store, known)
    assert (result.outcome, result.seen[:3]) == ("holds", "1 [")
    assert "by the anchor's" in result.seen
    plain = evaluate(both.replace(" in anchors", "").format(SWEEP), facts[SWEEP], store)

    def width(seen):
        low, high = seen.partition("[")[2].partition("]")[0].split(", ")
        return float(high) / float(low)

    assert width(result.seen) > width(plain.seen)


def test_cores_of_a_tier_are_those_of_all_its_nodes_together():
    """Three trials use 0.3, 0.4 and 0.5 cores on two nodes; of a fourth one node was not measured."""
    rows = [(f"r{n}", "app", f"app{k}", k * n / 30) for n in (3, 4, 5) for k in (1, 2)] + [("r6", "app", "app1", 9.0)]
    used = pd.DataFrame(
        [(*row[:3], row[3] + d) for row in rows for d in (-0.01, 0.01)], columns=["trial", "tier", "node", "value"]
    )
    found = cores("app", used, {"web": 1, "app": 2}, False, "3 trials", "")
    reach = 4.303 * 0.1 / math.sqrt(3)  # t(2)
    assert (found.value, found.low, found.high) == pytest.approx((0.4, 0.4 - reach, 0.4 + reach), rel=1e-3)
    one = cores("app", used[used["trial"] == "r4"], {"app": 2}, False, "1 trial", "")
    assert (one.value, one.low) == (pytest.approx(0.4), None)
    limiting = cores("app", used, {"app": 2}, True, "", "")
    assert math.isnan(limiting.value)
    assert "app CPU limits" in limiting.text
    assert "measured in no trial" in cores("web", used, {"web": 1}, False, "", "").text


def test_the_cores_of_a_tier_that_limits_decide_nothing(store, facts):
    assert evaluate("cores(web) >= 0.01", facts[SWEEP], store).outcome == "holds"
    assert evaluate("cores(web) >= 1", facts[SWEEP], store).outcome == "does not hold"
    assert evaluate(f"ratio(cores(web), cores(web) of {SWEEP}) within 30 %", facts[SWEEP], store).outcome == "holds"
    assert evaluate("cores(db) >= 0.01", facts[SWEEP], store).outcome == "undecided"


def seen(node: str, *steps: Step, worth: float = 1000.0, measured=frozenset(SOURCES)) -> Looked:
    """A database whose series correlate only along the steps."""
    linked = {frozenset((s.before, s.name)): s.r for s in steps}
    pairs = itertools.combinations(sorted(SOURCES), 2)
    every = [Link(a, b, linked.get(frozenset((a, b)), 0.0), 0.0, worth) for a, b in pairs]
    return Looked(Chain(node, list(steps), [], 2), measured, every, 40)


def test_trials_are_counted_in_which_all_moves_with_one_disk(store, facts, monkeypatch):
    """Queue and statements at db1, CPU only at db2: no node has all three."""
    trials = facts[SWEEP].trials
    here = set(trials.loc[(trials["users"] == 8000) & trials["valid"].astype(bool), "trial"])
    first = Step("disk", "queue", 0.6, 1), Step("queue", "statements", -0.5, -1)
    second = Step("disk", "queue", 0.6, 1), Step("queue", "cpu", -0.5, -1)
    n = len(here)
    assert n

    def outcome(text, **known):
        nodes = [seen("db1", *first, **known), seen("db2", *second, **known)]
        monkeypatch.setattr(with_disk, "with_disks", lambda *_: dict.fromkeys(here, nodes))
        return evaluate(text, facts[SWEEP], store).outcome

    assert outcome(f"with_disk(8000 queue up) == {n}") == "holds"
    assert outcome(f"with_disk(8000 queue up and statements down) == {n}") == "holds"
    assert outcome("with_disk(8000 statements down and cpu down) == 0") == "holds"
    assert outcome("with_disk(8000 queue down) >= 1") == "does not hold"
    short, dark = {"worth": 20.0}, {"measured": frozenset(SOURCES) - {"cpu"}}
    for unknown in (short, dark):  # that no link is significant does not show that there is none
        assert outcome("with_disk(8000 statements down and cpu down) == 0", **unknown) == "undecided"
        assert outcome("with_disk(8000 cpu up) >= 1", **unknown) == "undecided"
        assert outcome("with_disk(8000 queue up) >= 1", **unknown) == "holds"
    monkeypatch.setattr(with_disk, "with_disks", lambda *_: {})
    assert evaluate("with_disk(8000 queue up) == 0", facts[SWEEP], store).outcome == "undecided"


# ---- what is not known does not hold --------------------------------------------------------------------------------


OPERATORS = ("<=", "<", ">=", ">", "==", "!=")


def unknown(facts):
    """The same measurement, of which no verdict was reached."""
    nothing = {"verdict": "unknown", "kind": None, "bottlenecks": [], "migration": []}
    return replace(facts, verdict=facts.verdict | nothing)


def without_maximum(facts):
    """As of a sweep whose trials are all invalid."""
    nothing = {"max_throughput_per_s": None, "max_throughput_interval": [None, None], "knee_users": None}
    trials = facts.trials.assign(valid=False)
    return replace(facts, verdict=unknown(facts).verdict | nothing, trials=trials, beyond_knee=())


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    "name",
    ["max_throughput", "knee_users", "saturation(db cpu)"] + [f"{name}(5000)" for name in loads.AT_LOAD],
)
def test_nothing_holds_of_invalid_trials(store, facts, name, op):
    for bound in ("0", "1"):
        evaluation = evaluate(f"{name} {op} {bound}", without_maximum(facts[SWEEP]), store)
        assert evaluation.outcome == "undecided", evaluation.text


@pytest.mark.parametrize("tier", ["web", "app", "db"])
@pytest.mark.parametrize("bound", ["<= 10 %", ">= 90 %", "< 5 %", "> 95 %"])
def test_a_saturation_is_measured_whatever_the_verdict_says(store, facts, tier, bound):
    text = f"saturation({tier} cpu) {bound}"
    known, ignorant = (evaluate(text, f, store) for f in (facts[SWEEP], unknown(facts[SWEEP])))
    assert known == ignorant
    expected = "holds" if (tier == "db") == (bound[0] == ">") else "does not hold"
    assert known.outcome == expected or (known.outcome == "undecided" and bound == "> 95 %")


@pytest.mark.parametrize("op", OPERATORS)
def test_a_resource_that_was_not_measured_is_undecided(store, facts, op):
    evaluation = evaluate(f"saturation(web lock) {op} 50 %", facts[SWEEP], store)
    assert evaluation.outcome == "undecided"
    assert "not measured; measured are app cpu" in evaluation.seen


def test_a_node_that_was_not_measured_may_be_saturated(store, facts):
    """Of two web servers one was measured, and has room."""
    two = replace(facts[SWEEP], trials=facts[SWEEP].trials.assign(topology="1/2/1/2M"))
    idle, busy = (evaluate(text, two, store) for text in ("saturation(app cpu) <= 30 %", "saturation(db cpu) >= 90 %"))
    assert idle.outcome == "undecided"
    assert "1 of 2 app nodes not measured" in idle.seen
    assert busy.outcome == "holds"  # whatever the other one did


def test_a_single_node_is_asked_by_its_name():
    """The second database is full and the third was not measured: the first has room nevertheless."""
    row = {"trial": "a", "tier": "db", "resource": "cpu", "item": "", "threshold_pct": 95.0, "n": 100, "n_missing": 0}
    table = pd.DataFrame(
        [row | {"node": node, "saturation": at, "saturation_low": max(at - 0.1, 0), "saturation_high": min(at + 0.1, 1)}
         for node, at in (("db1", 0.0), ("db2", 1.0))]
    )  # fmt: skip
    nodes = {"db1": "db", "db2": "db", "db3": "db"}

    def of(what: str):
        return saturation(what, table, {"db": 3}, ["a"], "", "", nodes=nodes)

    assert (of("db1 cpu").low, of("db1 cpu").high) == (0.0, 0.1)
    assert of("db cpu").value == 1.0
    assert of("db3 cpu").low is None


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
def test_samples_that_are_missing_may_have_been_anything(missing):
    n = 1000
    row = {"trial": "a", "node": "db1", "tier": "db", "resource": "cpu", "item": "", "threshold_pct": 95.0}
    row |= {"saturation": 0.0, "saturation_low": 0.0, "saturation_high": 0.0}
    table = pd.DataFrame([row | {"n": round(n * (1 - missing)), "n_missing": round(n * missing)}])
    share = saturation("db cpu", table, {"db": 1}, ["a"], "", "")
    assert (share.low, share.high) == pytest.approx((0, missing))
    half = saturation("db cpu", table, {"db": 1}, ["a", "b"], "", "")  # nothing is known of the second trial
    assert half.high == pytest.approx((1 + missing) / 2)


@pytest.mark.parametrize("op", ["==", "!="])
@pytest.mark.parametrize("bound", ["none", "hidden", "single", "single db cpu", "multi alternating", "multi web cpu"])
def test_an_unknown_verdict_is_no_other(store, facts, op, bound):
    evaluation = evaluate(f"verdict {op} {bound}", unknown(facts[SWEEP]), store)
    assert evaluation.outcome == "undecided"
    assert set(evaluation.evidence) == set(facts[SWEEP].verdict["evidence"])
    assert evaluation.evidence[0] in evaluation.text
    outcome = {"==": "holds", "!=": "does not hold"}[op]
    assert evaluate(f"verdict {op} unknown", unknown(facts[SWEEP]), store).outcome == outcome


@pytest.mark.parametrize("name", ["max_throughput", "knee_users"])
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0])
def test_a_lower_bound_decides_nothing_above_it(store, facts, name, factor):
    whole = facts[DEFAULT]
    key = {"max_throughput": "max_throughput_interval", "knee_users": "knee_interval"}[name]
    low = whole.verdict[key][0]
    outcomes = {op: evaluate(f"{name} {op} {factor * low}", whole, store).outcome for op in OPERATORS}
    if factor < 1:
        assert outcomes["<="] == outcomes["<"] == outcomes["=="] == "does not hold"
        assert outcomes[">="] == outcomes[">"] == outcomes["!="] == "holds"
    else:
        assert set(outcomes.values()) == {"undecided"}


def test_whether_a_trial_is_valid_may_be_unknown(store, facts):
    def outcome(valid, text):
        trials = facts[SWEEP].trials.head(len(valid)).assign(valid=pd.Series(valid, dtype=object))
        return evaluate(f"invalid_trials {text}", replace(facts[SWEEP], trials=trials), store).outcome

    assert outcome([True, True], "== 0") == "holds"
    assert outcome([True, None], "== 0") == "undecided"
    assert outcome([False, None], "== 0") == "does not hold"
    assert outcome([True, None], "<= 1") == "holds"
    assert outcome([], "== 0") == "undecided"


def test_a_ratio_with_a_sweep_without_valid_trials_is_undecided(store, facts, tmp_path):
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    trials = read_table(copy, "trials", POSTGRESQL)
    write_table(copy, "trials", POSTGRESQL, trials.assign(valid=False))
    evaluation = evaluate(f"ratio({POSTGRESQL}, {SWEEP}) >= 0", facts[SWEEP], copy)
    assert evaluation.outcome == "undecided"
    assert f"{POSTGRESQL} has no valid trial" in evaluation.seen


def test_the_interval_of_a_percentile_covers_it():
    """Response times of known distribution: 95 % of the intervals of single trials should hold the true percentile."""
    rng, n, hits = np.random.default_rng(5), 60, 0
    trial = pd.Series({"trial": "a", "run_start_s": 0.0, "run_end_s": 40.0, "slo_ms": None})
    truth = -1000 * np.log(0.05)
    for _ in range(n):
        times = np.sort(rng.uniform(0, 40, 3000))
        done = pd.DataFrame({"t_s": times, "response_time_ms": rng.exponential(1000, 3000)})
        low, high = loads._within("p95", trial, done)
        hits += low <= truth <= high
    assert hits >= 52  # fewer happen once in 300 at 95 %


def test_a_file_decides_by_intervals_too(store, facts, tmp_path):
    """The point may lie in a range that the interval leaves."""
    low, high = facts[SWEEP].verdict["max_throughput_interval"]
    value = facts[SWEEP].verdict["max_throughput_per_s"]
    path = tmp_path / "expected.json"

    def outcome(sweep, **keys):
        path.write_text(json.dumps({sweep: keys}))
        return [r.outcome for r in check(store, [], path)]

    assert outcome(SWEEP, max_throughput_per_s=[low - 1, high + 1]) == ["holds"]
    assert outcome(SWEEP, max_throughput_per_s=[value - 0.1, value + 0.1]) == ["undecided"]
    assert outcome(SWEEP, max_throughput_per_s=[high + 1, high + 2]) == ["does not hold"]
    assert outcome(DEFAULT, max_throughput_per_s=[0, 1e6]) == ["undecided"]  # at least
    assert outcome(SWEEP, verdict="single", bottleneck={"tier": "db", "resource": "cpu"}) == ["holds"] * 2
    assert outcome(SWEEP, migration=[]) == ["holds"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [("verdict", "none"), ("bottlenecks", []), ("migration", []), ("kind", None), ("bottleneck", {"tier": "db"})],
)
def test_a_key_of_an_unknown_verdict_is_undecided(facts, key, expected):
    assert files._key(unknown(facts[SWEEP]), key, expected, None).outcome == "undecided"
    assert files._key(unknown(facts[SWEEP]), "verdict", "unknown", None).outcome == "holds"


def test_exit_codes(store):
    good, open_, bad = "max_throughput >= 100", "max_throughput >= 115", "max_throughput >= 130"
    one = ("--sweep", SWEEP)
    assert command(store, *one, "--expect", good).code == 0
    failed = command(store, *one, "--expect", good, "--expect", bad)
    assert failed.code == 3
    assert failed.err == "1 expectation not met\n"
    assert "does not hold: " in failed.out
    assert command(store, *one, "--expect", open_).code == 3
    assert command(store, *one, "--expect", open_, "--allow-undecided").code == 0
    assert command(store, *one, "--expect", "nonsense").code == 2
    nothing = command(store)
    assert nothing.code == 2
    assert "there is nothing to check" in nothing.err


def test_json(store):
    done = command(store, "--sweep", SWEEP, "--expect", "max_throughput >= 130", "--json")
    document = json.loads(done.out)
    assert document["met"] is False
    assert document["expectations"][0]["outcome"] == "does not hold"


def test_saturation_of_a_sweep_over_another_factor_needs_a_value(store, facts, tmp_path):
    """All its trials have the same users, so those beyond a knee cannot be told by them."""
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    trials = read_table(copy, "trials", SWEEP)
    trials = trials.assign(factor="sleep_s", factor_unit="s", factor_value=trials["users"] / 1000, users=100)
    one = replace(facts[SWEEP], trials=trials, beyond_knee=(100,), store=copy)
    for text in ("saturation(db cpu) <= 60 %", "ratio(cores(web), cores(web)) < 2"):
        evaluation = evaluate(text, one, copy)
        assert evaluation.outcome == "undecided"
        assert "the sweep is over sleep_s: name a value" in evaluation.seen
    assert evaluate("saturation(8 db cpu) >= 60 %", one, copy).outcome == "holds"


def test_a_knee_of_few_workers_lies_within_its_own_interval(store):
    verdict = as_json(replace(verdicts(store, [SWEEP])[0], knee_users=2.4, knee_interval=(2.2, 2.45), at_least=False))
    low, high = verdict["knee_interval"]
    assert low < verdict["knee_users"] < high
