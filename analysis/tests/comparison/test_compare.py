"""Two sweeps side by side: on stores of known truth, and on the measured one that comes with the program."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import once
import pandas as pd
import pytest
from ntier_analysis import Store
from ntier_analysis.comparison import compare, values
from ntier_analysis.comparison.texts import as_json, comparison_text, conclusion, table
from ntier_analysis.comparison.values import read_side
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.expressions import evaluate
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.prediction.demands import known_tier_demands
from ntier_analysis.setting import MUST_EQUAL
from ntier_analysis.statistics.percentiles import T_95, percentile_interval
from ntier_analysis.statistics.values import estimated
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, write_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import judge

PROGRAM = Path(sys.executable).with_name("ntier-analysis")
POSTGRESQL = f"{SWEEP.replace('1M', '1P')}.xd86811"
RUN_S = 60.0
LOADS = (200, 400, 900, 1000, 1100)


def write_sweep(store, name, **asked) -> None:
    """Copies what `make_sweep` writes of it."""
    once.copied("compared", (name, sorted(asked.items())), lambda made: make_sweep(made, name, **asked), store)


def make_sweep(
    store,
    name,
    *,
    capacity=80.0,
    reps=1,
    order=0,
    noise=0.01,
    demand=1.0,
    wander=0.0,
    seed=0,
    all_take_ms=None,
    **other,
) -> None:
    """A store of users who think 7 s before a station of `capacity` interactions/s; each run is off by `noise`.
    `order`: place of the sweep within each block of repetitions (blocks are 10,000 s apart). `wander`: how the speed of
    the machine differs from run to run; then there is an app node too, which never saturates. `all_take_ms`: what each
    answer takes by the clients."""
    rng = np.random.default_rng(seed)
    trials, done, samples, nodes = [], [], [], []
    for rep in range(1, reps + 1):
        for number, users in enumerate(LOADS):
            start = 1e9 + 10_000 * rep + order + 100 * number
            speed = rng.lognormal(0, wander) if wander else 1.0
            rate = min(users / 7.01, capacity * speed * rng.lognormal(0, noise))
            trial = f"u{users:05d}.r{rep:02d}"
            times = np.sort(start + rng.uniform(0, RUN_S, round(rate * RUN_S)))
            response_ms = 1000 * (users / rate - 7)
            trials.append(
                {"trial": trial, "topology": "1/1/1/1M", "users": users, "users_real": users, "scale": 1.0, "rep": rep,
                 "valid": True, "run_start_s": start, "run_end_s": start + RUN_S, "throughput_per_s": rate,
                 "response_time_mean_ms": response_ms, "think_time_s": 7.0, "data_profile": "small",
                 "mix": "browse_only"} | other
            )  # fmt: skip
            spread = response_ms * rng.gamma(4, 0.25, len(times))
            spread = spread if all_take_ms is None else np.full(len(times), all_take_ms)
            done.append(pd.DataFrame({"trial": trial, "t_s": times, "response_time_ms": spread, "ok": True}))
            seconds = start + np.arange(60) + 0.5
            for tier, cores_each in ({"db": demand / capacity} | ({"app": 0.4 / 80} if wander else {})).items():
                cores = cores_each * rate / speed * rng.lognormal(0, 0.005, 60)
                common = {"trial": trial, "t_s": seconds, "node": f"{tier}1", "tier": tier, "resource": "cpu",
                          "source": "x", "item": "", "phase": "run"}  # fmt: skip
                used_pct = np.minimum(100, 100 * cores / demand)
                for metric, value in (("used_cores", cores), ("utilization_pct", used_pct)):
                    samples.append(pd.DataFrame(common | {"metric": metric, "value": value}))
                nodes.append({"trial": trial, "node": f"{tier}1", "tier": tier, "cpu_cores": demand})
    tables = {t: schema.empty_table().to_pandas() for t, schema in TABLES.items()}
    tables |= {
        "trials": pd.DataFrame(trials).assign(sweep=name),
        "interactions": pd.concat(done).assign(sweep=name),
        "samples": pd.concat(samples).assign(sweep=name),
        "nodes": pd.DataFrame(nodes).assign(sweep=name),
    }
    tables |= judge(name, tables["trials"], tables["samples"], tables["nodes"], tables["interactions"])
    for table_name, frame in tables.items():
        write_table(store, table_name, name, frame)


def row(comparison, scope, metric, tier="", users=None):
    return next(r for r in comparison.rows if (r.scope, r.metric, r.tier, r.users) == (scope, metric, tier, users))


def test_equal_systems_are_the_same_and_a_tenth_more_is_not(tmp_path):
    write_sweep(tmp_path, "a", reps=5, seed=1)
    write_sweep(tmp_path, "b", reps=5, seed=2, order=5000)
    write_sweep(tmp_path, "c", reps=5, seed=3, order=5000, capacity=90.0)
    same, more = compare("a", "b", tmp_path), compare("a", "c", tmp_path)
    assert same.outcome == "same"
    assert more.outcome == "different"
    assert row(more, "maximum", "throughput_per_s").ratio.value == pytest.approx(90 / 80, rel=0.02)
    assert row(more, "beyond the knees", "throughput_per_s").basis == "5 repetitions, interleaved"
    assert "same within 5 %" in conclusion(same)
    # the demand of c is 80/90 of that of a
    assert row(more, "all loads", "cpu_ms", "db").ratio.value == pytest.approx(80 / 90, rel=0.01)
    assert row(more, "all loads", "demand_ms", "db").ratio.value == pytest.approx(80 / 90, rel=0.05)
    assert row(more, "load", "response_time_mean_ms", users=1100).outcome == "different"


@pytest.mark.parametrize("reps", [1, 2, 3])
def test_percentiles_in_whole_milliseconds_are_no_better_known_than_these(tmp_path, reps):
    """12 ms in each repetition of one side, 13 ms in each of the other: both are rounded."""
    for name, order, p95 in (("a", 0, 12.0), ("b", 5000, 13.0), ("c", 9000, 12.0)):
        write_sweep(tmp_path, name, reps=3, seed=order, order=order, all_take_ms=p95, response_time_p95_ms=p95)
        change(tmp_path, name, valid=lambda t: t["rep"] <= reps)
    for other in ("b", "c"):
        comparison = compare("a", other, tmp_path)
        for at in (row(comparison, "load", "response_time_p95_ms", users=1000),
                   row(comparison, "all loads", "response_time_p95_ms")):  # fmt: skip
            assert at.outcome == "undecided", at
    assert row(compare("a", "a", tmp_path), "all loads", "response_time_p95_ms").outcome == "same"


def test_noise_is_undecided_not_same(tmp_path):
    write_sweep(tmp_path, "a", reps=2, seed=1, noise=0.1)
    write_sweep(tmp_path, "b", reps=2, seed=2, noise=0.1, order=5000)
    assert compare("a", "b", tmp_path).outcome == "undecided"


def test_a_machine_whose_speed_wanders_is_taken_out_by_the_tiers_that_do_not_limit(tmp_path):
    write_sweep(tmp_path, "a", reps=4, seed=1, wander=0.12)
    write_sweep(tmp_path, "b", reps=4, seed=2, wander=0.12, order=5000)
    write_sweep(tmp_path, "c", reps=4, seed=3, wander=0.12, order=5000, capacity=72.0)
    same, less = compare("a", "b", tmp_path), compare("a", "c", tmp_path)
    assert same.outcome == "undecided"
    assert row(same, "beyond the knees", "cpu_ms_per_s", "app").outcome == "same"
    assert "undecided; at equal speed of the machine (measured by the CPU of app) " in conclusion(same)
    assert conclusion(same).endswith("same within 5 %")
    app_demand = row(less, "beyond the knees", "cpu_ms_per_s", "app")
    assert app_demand.outcome == "different"
    assert app_demand.ratio.value == pytest.approx(0.9, rel=0.02)


def test_repetitions_that_were_not_interleaved_are_not_paired(tmp_path):
    write_sweep(tmp_path, "a", reps=3, seed=1)
    write_sweep(tmp_path, "b", reps=3, seed=2, order=500_000)
    comparison = compare("a", "b", tmp_path)
    assert row(comparison, "beyond the knees", "throughput_per_s").basis == "3 repetitions, not interleaved"
    assert any("were not interleaved" in text for text in comparison.warnings)


def test_without_repetitions_the_missing_variance_is_said(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    comparison = compare("a", "b", tmp_path)
    assert any("lack the variance between runs" in text for text in comparison.warnings)
    assert row(comparison, "load", "throughput_per_s", users=1000).basis == "batches of one trial each"


@pytest.mark.parametrize(
    ("column", "value"), [("scale", 0.5), ("data_profile", "large"), ("mix", "read_write"), ("think_time_s", 3.5)]
)
def test_incomparable_sweeps_are_refused_unless_told_otherwise(tmp_path, column, value):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "b", **{column: value})
    with pytest.raises(DataError, match=f"a and b cannot be compared: {column} is "):
        compare("a", "b", tmp_path)
    assert any(column in text for text in compare("a", "b", tmp_path, anyway=True).warnings)


@pytest.mark.parametrize(("think_s", "target", "refused"),
                         [(7.2, "imported", False), (7.2, "nodes", True), (8.0, "imported", True)])  # fmt: skip
def test_think_times_of_imports_may_differ_as_measured_means_do(tmp_path, think_s, target, refused):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "a", target=target)
    change(tmp_path, "b", target=target, think_time_s=think_s)
    if refused:
        with pytest.raises(DataError, match="think_time_s is 7 and "):
            compare("a", "b", tmp_path)
        return
    assert "think_time_s is 7 and 7.2: measured means differ by as much" in compare("a", "b", tmp_path).warnings


@pytest.mark.parametrize(("column", "value"), [("policy", "random"), ("target", "hosts"), ("middleware", "haproxy")])
def test_what_may_be_the_thing_compared_is_named(tmp_path, column, value):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "b", **{column: value})
    (text,) = [w for w in compare("a", "b", tmp_path).warnings if w.startswith(column)]
    assert text == f"{column} is unknown and {value}: {MUST_EQUAL[column]}"


def test_versions_that_differ_are_a_warning(demo, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(demo.parent, other)
    for path in other.glob(f"raw/{SWEEP}/*/manifest.json"):
        manifest = json.loads(path.read_text())
        name = sorted(manifest["versions"])[0]
        manifest["versions"][name] = "0.0"
        path.write_text(json.dumps(manifest))
    assert any(w.startswith(f"{name} is ") and w.endswith("and 0.0") for w in
               compare(SWEEP, f"{other}/store:{SWEEP}", demo).warnings)  # fmt: skip


def test_sweeps_that_differ_in_data_or_policy_are_no_witnesses_of_each_other(tmp_path):
    def said(column=None, value=None) -> bool:
        store = tmp_path / str(column)
        write_sweep(store, "a", seed=1)
        write_sweep(store, "b", seed=2, capacity=90.0)
        change(store, "b", topology="1/1/1/2M", **({} if column is None else {column: value}))
        return any("with more db nodes" in e for e in verdicts(store, ["a", "b"])[0].evidence)

    assert said()
    assert not any(said(*pair) for pair in (("data_profile", "large"), ("policy", "random"), ("target", "hosts")))


def test_phases_and_commits_that_differ_are_a_warning(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "a", git_commit="a" * 40)
    change(tmp_path, "b", git_commit="b" * 40, run_end_s=lambda t: t["run_start_s"] + 30)
    warnings = compare("a", "b", tmp_path).warnings
    assert "the run phase is 60 s and 30 s long" in warnings
    assert "git_commit is aaaaaaa and bbbbbbb" in warnings


def test_hosts_that_differ_are_a_warning(demo, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(demo.parent, other)
    for path in other.glob(f"raw/{SWEEP}/*/manifest.json"):
        manifest = json.loads(path.read_text())
        manifest["host"]["cores"] = 64
        manifest["host"]["facts"]["kept_awake"] = True
        path.write_text(json.dumps(manifest))
    comparison = compare(SWEEP, f"{other}/store:{SWEEP}", demo)
    assert "the host's cores is 2 and 64" in comparison.warnings
    assert "the host's way of idling is halting and staying awake" in comparison.warnings


def test_unknown_sweeps_and_margins(demo, tmp_path):
    with pytest.raises(DataError, match=r"no sweep 'x' in .*; there are: 1-1-1-1M"):
        compare(SWEEP, "x", demo)
    with pytest.raises(DataError, match="margin is 5, allowed"):
        compare(SWEEP, SWEEP, demo, margin=5)


def test_measured_mysql_and_postgresql(demo):
    """The study's finding: PostgreSQL reaches about half of MySQL."""
    comparison = compare(SWEEP, POSTGRESQL, demo)
    top = row(comparison, "maximum", "throughput_per_s")
    assert top.outcome == "undecided"  # it may be any higher
    assert 0.4 < top.ratio.low < top.ratio.value < 0.65
    assert row(comparison, "all loads", "demand_ms", "db").outcome == "different"
    text = comparison_text(comparison)
    assert "its maximum is a lower bound" in text
    assert "of A: undecided" in text.splitlines()[-1]


def test_a_maximum_that_may_be_any_higher_is_not_different(demo):
    """Of PostgreSQL's only a lower bound is known, at half of MySQL's."""
    found = compare(SWEEP, POSTGRESQL, demo)
    (ratio,) = [r.ratio for r in found.rows if r.scope == "maximum"]
    assert ratio.low < ratio.value < 0.6
    assert ratio.high == ratio.high_90 == float("inf")
    assert found.outcome == "undecided"
    assert as_json(found)["outcome"] == "undecided"
    back = compare(POSTGRESQL, SWEEP, demo)
    assert back.primary.ratio.low == 0
    assert back.outcome == "undecided"


@pytest.mark.parametrize("bound", ["a", "b"])
def test_a_lower_bound_is_not_decided_by_the_loads_that_both_have(tmp_path, monkeypatch, bound):
    """With three repetitions too, and `check` says the same."""
    write_sweep(tmp_path, "a", reps=3, seed=1)
    write_sweep(tmp_path, "b", reps=3, seed=2, order=5000, capacity=90.0)
    assert compare("a", "b", tmp_path).outcome == "different"

    def opened(store, names):
        return [replace(v, at_least=v.sweep == bound) for v in verdicts(store, names)]

    monkeypatch.setattr(values, "verdicts", opened)
    comparison = compare("a", "b", tmp_path)
    assert row(comparison, "beyond the knees", "throughput_per_s").outcome == "different"
    assert comparison.primary.scope == "maximum"
    asked = evaluate("ratio(b, a) within 5 %", read_facts(tmp_path, ["a"])["a"], tmp_path)
    if bound == "a":  # B reaches 1.1 times as much as A at least reaches
        assert (comparison.outcome, asked.outcome) == ("undecided", "undecided")
        assert conclusion(comparison).startswith("maximum throughput: B is ")
        assert "at equal speed" not in conclusion(comparison)
    else:
        assert comparison.primary.ratio.high == float("inf")
        assert asked.outcome == "does not hold"
    assert asked.seen.endswith(f"; only a lower bound is known of {bound}")


def test_percentiles_have_the_interval_that_they_have_everywhere(demo):
    side = read_side(SWEEP, demo)
    rows = side.values[(side.values["metric"] == "response_time_p95_ms") & side.values["error"].notna()]
    done = read_table(demo, "interactions", SWEEP)
    assert len(rows)
    for r in rows.itertuples():
        trial = side.trials[(side.trials["users"] == r.users) & (side.trials["rep"] == r.rep)].iloc[0]
        mine = done[(done["trial"] == trial["trial"]) & done["ok"]]
        found = percentile_interval(mine["response_time_ms"], mine["t_s"], 0.95, r.start_s, trial["run_end_s"])
        assert np.log(found.high / found.low) / 2 == pytest.approx(T_95 * r.error / found.value)


def test_json_is_json_and_has_every_row(demo):
    comparison = compare(SWEEP, POSTGRESQL, demo)
    document = json.loads(json.dumps(as_json(comparison)))
    assert document["outcome"] == "undecided"
    assert document["rows"][0]["high"] is None  # open above
    assert len(document["rows"]) == len(comparison.rows) == len(table(comparison))
    assert document["rows"][0]["ratio"] == pytest.approx(0.51, abs=0.05)


def test_command_writes_figure_and_tables(demo, tmp_path):
    done = subprocess.run(
        [PROGRAM, "compare", SWEEP, SWEEP, "--store", demo, "--brief", "--out", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "both are the same sweep" in done.stdout
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "comparison.png", "comparison.pdf", "comparison.csv", "ratios.csv",
    }  # fmt: skip
    refused = subprocess.run(
        [PROGRAM, "compare", SWEEP, "x", "--store", demo], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: no sweep 'x'")


def test_cpu_of_a_tier_of_which_a_node_was_not_measured_is_not_compared(tmp_path):
    """Of the other sweep's two databases only one was: the tier would seem to need half as much."""
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "b", topology="1/1/1/2M")
    assert {r.metric for r in compare("a", "a", tmp_path).rows} >= {"cpu_ms", "demand_ms"}
    assert not {r.metric for r in compare("a", "b", tmp_path).rows} & {"cpu_ms", "demand_ms", "cpu_ms_per_s"}


def test_a_sweep_without_a_valid_trial_has_no_demands():
    trials = pd.DataFrame({"trial": pd.Series(dtype=str), "valid": pd.Series(dtype=bool), "throughput_per_s": []})
    used = pd.DataFrame({"trial": pd.Series(dtype=str), "node": pd.Series(dtype=str), "value": pd.Series(dtype=float)})
    nodes = pd.DataFrame({"node": ["db1"], "tier": ["db"], "cpu_cores": [0.2]})
    assert known_tier_demands(trials, used, nodes) == {}


def change(store, name, **columns) -> pd.DataFrame:
    """Columns of the trials of a sweep that was written; values may be made from the trials."""
    trials = read_table(store, "trials", name)
    trials = trials.assign(**columns)
    write_table(store, "trials", name, trials)
    return trials


def sleeping(store, name, **other) -> pd.Series:
    """The sweep becomes one over sleep_s; returns the throughput at each of its values."""
    by_sleep = {"factor": "sleep_s", "factor_unit": "s", "factor_value": lambda t: t["users"] / 1000}
    trials = change(store, name, **(by_sleep | {"users": 100, "users_real": 100} | other))
    return trials.set_index("factor_value")["throughput_per_s"]


def of_loads(comparison, metric="throughput_per_s"):
    return [r for r in comparison.rows if r.scope == "load" and r.metric == metric]


def test_values_of_another_factor_are_compared_each_with_itself(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2, capacity=90.0)
    a, b = sleeping(tmp_path, "a"), sleeping(tmp_path, "b")
    comparison = compare("a", "b", tmp_path)
    rows = of_loads(comparison)
    assert [r.users for r in rows] == [users / 1000 for users in LOADS]
    for at in rows:
        assert at.ratio.value == pytest.approx(b[at.users] / a[at.users])
    assert not any(r.metric == "throughput_per_s" and r.scope != "load" for r in comparison.rows)
    text = comparison_text(comparison)
    assert "sleep_s 0.2 s  throughput [1/s]" in text
    assert " users " not in text.partition("B/A")[2]
    assert conclusion(comparison).startswith("undecided: each value of sleep_s has ratios of its own")
    document = json.loads(json.dumps(as_json(comparison)))
    assert document["factor"] == {"name": "sleep_s", "unit": "s"}
    assert {r["users"] for r in document["rows"] if r["scope"] == "load"} == {users / 1000 for users in LOADS}
    asked = evaluate("ratio(b, a, throughput_per_s) within 5 %", read_facts(tmp_path, ["a"])["a"], tmp_path)
    assert (asked.outcome, asked.seen.partition(";")[0]) == ("undecided", "no mean over values of sleep_s")


def test_capacities_of_open_loads_are_compared(tmp_path, monkeypatch):
    """They have no knee, and their rates are values of a factor; one sweep that serves all that is offered has none."""
    for n, name in enumerate("abc", 1):
        write_sweep(tmp_path, name, seed=n)
        sleeping(tmp_path, name, factor="rate", factor_unit="/s")

    def judged(store, names):
        more = {"verdict": "single", "load_model": "open", "knee_users": float("nan"), "at_least": False}
        capacity = {"a": estimated(80.0, 0.5, 9, 10), "b": estimated(100.0, 0.5, 9, 10), "c": None}
        known = {n: {"max_throughput": c or estimated(50.0, 0.5, 9, 10), "plateau_users": (100,) if c else ()}
                 for n, c in capacity.items()}  # fmt: skip
        return [replace(v, **more, **known[v.sweep]) for v in verdicts(store, names)]

    monkeypatch.setattr(values, "verdicts", judged)
    comparison = compare("a", "b", tmp_path)
    assert (comparison.primary.scope, comparison.outcome) == ("maximum", "different")
    assert comparison.primary.ratio.value == pytest.approx(1.25)
    asked = evaluate("ratio(b, a) >= 1.2", read_facts(tmp_path, ["a"])["a"], tmp_path)
    assert asked.outcome == "holds"
    none = compare("a", "c", tmp_path)
    assert none.primary is None
    assert "no capacity is known: it serves all that was offered" in conclusion(none)
    asked = evaluate("ratio(c, a) >= 0.1", read_facts(tmp_path, ["a"])["a"], tmp_path)
    assert (asked.outcome, "no capacity is known" in asked.seen) == ("undecided", True)


def test_the_figure_names_the_factor(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    sleeping(tmp_path, "a"), sleeping(tmp_path, "b")
    axes = Store(tmp_path).compare("a", "b").figure().figure.axes
    assert {a.get_xlabel() for a in axes} == {"sleep_s [s]"}


def test_a_value_that_one_side_has_alone_has_no_row(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    sleeping(tmp_path, "a")
    sleeping(tmp_path, "b", factor_value=lambda t: t["users"] / 1000 + (t["users"] == 400))
    assert [r.users for r in of_loads(compare("a", "b", tmp_path))] == [0.2, 0.9, 1.0, 1.1]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"factor": None, "factor_unit": None, "users": lambda t: t["factor_value"]}, "factor is sleep_s and users"),
        ({"factor_unit": "ms"}, "sleep_s is in s and ms: no two values are compared"),
    ],
)
def test_equal_numbers_of_different_things_are_no_equal_loads(tmp_path, other, said):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    whole = {"factor_value": lambda t: t["users"]}
    sleeping(tmp_path, "a", **whole)
    sleeping(tmp_path, "b", **(whole | other))
    comparison = compare("a", "b", tmp_path)
    assert of_loads(comparison) == []
    assert any(text.startswith(said) for text in comparison.warnings)
    assert comparison.outcome == "undecided"
    assert as_json(comparison)["factor"] is None


def test_users_that_differ_at_equal_values_of_a_factor_are_a_warning(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    sleeping(tmp_path, "a")
    sleeping(tmp_path, "b", users=200)
    assert "users is 100 and 200 at equal sleep_s" in compare("a", "b", tmp_path).warnings


def test_json_of_sweeps_over_users_has_the_users(tmp_path):
    write_sweep(tmp_path, "a", seed=1)
    write_sweep(tmp_path, "b", seed=2)
    change(tmp_path, "b", factor="users", factor_unit="users")
    document = json.loads(json.dumps(as_json(compare("a", "b", tmp_path))))
    assert document["factor"] == {"name": "users", "unit": ""}
    users = [r["users"] for r in document["rows"] if (r["scope"], r["metric"]) == ("load", "throughput_per_s")]
    assert users == list(LOADS)


@pytest.mark.parametrize(("other", "who"), [("work", "workers"), ("closed", "users")])
def test_who_asks_in_both_sweeps_is_called_so(tmp_path, other, who):
    write_sweep(tmp_path, "a", seed=1, load_model="work")
    write_sweep(tmp_path, "b", seed=2, load_model=other)
    comparison = compare("a", "b", tmp_path)
    assert re.search(rf"200 {who} +throughput \[1/s\]", comparison_text(comparison))
    axes = Store(tmp_path).compare("a", "b").figure().figure.axes
    assert {a.get_xlabel() for a in axes} == {f"{who} (nominal)"}


def beyond(trials, column, value=0.0):
    """The column, with this value at the highest loads."""
    return trials[column].where(trials["users"] < 1000, value)


@pytest.mark.parametrize("reps", [1, 2, 3])
def test_loads_at_which_one_side_answers_nothing_in_time_are_not_left_out(tmp_path, reps):
    write_sweep(tmp_path, "a", reps=reps, seed=1)
    write_sweep(tmp_path, "b", reps=reps, seed=2, order=5000)
    change(tmp_path, "b", goodput_per_s=lambda t: t["throughput_per_s"])
    change(tmp_path, "a", goodput_per_s=lambda t: beyond(t, "throughput_per_s"))
    with np.errstate(all="raise"):
        comparison = compare("a", "b", tmp_path)
    over_all = row(comparison, "all loads", "goodput_per_s")
    assert (over_all.outcome, over_all.ratio) == ("undecided", None)
    assert over_all.basis == f"no ratio: a 0 in {2 * reps} of {len(LOADS) * reps} pairs of trials"
    goodput = of_loads(comparison, "goodput_per_s")
    assert [r.users for r in goodput] == list(LOADS)
    assert [r.ratio is None for r in goodput] == [users >= 1000 for users in LOADS]
    assert (goodput[-1].a, goodput[-1].outcome) == (0, "undecided")
    assert goodput[-1].b > 0
    (line,) = [x for x in comparison_text(comparison).splitlines() if x.startswith("1,100 users") and "goodput" in x]
    assert "  –  unknown " in line
    document = json.loads(json.dumps(as_json(comparison)))
    (cell,) = [r for r in document["rows"] if (r["metric"], r["users"]) == ("goodput_per_s", 1100)]
    assert (cell["a"], cell["ratio"], cell["outcome"]) == (0, None, "undecided")
    expected = evaluate("ratio(b, a, goodput_per_s) within 50 %", read_facts(tmp_path, ["a"])["a"], tmp_path)
    assert (expected.outcome, expected.seen) == ("undecided", over_all.basis)


def test_a_side_that_answers_nothing_beyond_the_knees_decides_nothing(tmp_path):
    write_sweep(tmp_path, "a", reps=4, seed=1, wander=0.12)
    write_sweep(tmp_path, "b", reps=4, seed=2, wander=0.12, order=5000)
    change(tmp_path, "a", throughput_per_s=lambda t: beyond(t, "throughput_per_s"))
    with np.errstate(all="raise"):
        comparison = compare("a", "b", tmp_path)
    at = row(comparison, "beyond the knees", "throughput_per_s")
    assert (at.a < at.b, at.ratio, at.outcome, comparison.outcome) == (True, None, "undecided", "undecided")
    assert not any(r.metric == "cpu_ms_per_s" for r in comparison.rows)
    assert conclusion(comparison).startswith(
        "undecided: throughput at equal loads beyond both knees: no ratio: a 0 in "
    )
    assert (
        "a side answers nothing at 1,000 and 1,100 users: no response time and no CPU per interaction there"
        in comparison.warnings
    )
    drawing = Store(tmp_path).compare("a", "b").figure()
    assert "have no ratio and are not drawn" in drawing.caption
    assert {1000, 1100}.isdisjoint(drawing.data.loc[drawing.data["metric"] == "throughput_per_s", "users"])


@pytest.mark.parametrize("reps", [2, 3])
def test_trials_that_are_numbered_alike_are_repetitions_in_the_order_of_their_runs(tmp_path, reps):
    """An import that does not number them: columns A and B, and their ratio, are of the same trials."""
    for number, name in enumerate(("a", "b")):
        write_sweep(tmp_path, name, reps=3, seed=number, order=5000 * number, noise=0.1)
        change(tmp_path, name, valid=lambda t: t["rep"] <= reps)
    as_measured = table(compare("a", "b", tmp_path))
    for name in ("a", "b"):
        change(tmp_path, name, rep=1)
    assert table(compare("a", "b", tmp_path)).equals(as_measured)


def test_repetitions_of_a_load_are_one_value_of_the_sample(tmp_path):
    write_sweep(tmp_path, "a", reps=2, seed=1)
    write_sweep(tmp_path, "b", reps=2, seed=2, order=5000)
    over_all = row(compare("a", "b", tmp_path), "all loads", "throughput_per_s")
    assert over_all.basis == f"{len(LOADS)} pairs of equal load"
    assert over_all.ratio.n == len(LOADS)
    both = [read_table(tmp_path, "trials", s).groupby("users")["throughput_per_s"] for s in ("a", "b")]
    a, b = (g.apply(lambda x: np.log(x).mean()) for g in both)
    assert over_all.ratio.value == pytest.approx(np.exp((b - a).mean()))
