"""A verdict is made once, kept whole, read fast, and says by whose rules it was made."""

import ast
import math
import shutil
import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import mesh
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.contracts import Manifest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.statistics.throughput import Interval
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, read_values, sweeps, write_table
from ntier_analysis.verdict import store as module
from ntier_analysis.verdict import stored
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck, Load, Verdict
from ntier_analysis.verdict.store import judge_again, judged_by, verdicts
from ntier_analysis.verdict.stored import analysis_version, from_text, rule_files, to_text
from ntier_analysis.verdict.tables import as_json
from program import called
from synthetic import Truth, write_sweep

OTHER = "0.0.9+deadbeef"


@pytest.fixture
def store(demo, tmp_path) -> Path:
    return Path(shutil.copytree(demo, tmp_path / "store"))


def same(a, b) -> bool:
    """Equal in every field, arrays and NaN included, but for the completion times, which have a table of their own."""
    if is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name not in ("done_s", "spans")
        )
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.shape == b.shape and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return a == b


def by_other_rules(store: Path, sweep: str) -> None:
    """As if another version of the program had judged."""
    table = read_table(store, "verdicts", sweep)
    for column in ("document", "analysis_version"):
        table[column] = table[column].str.replace(analysis_version(), OTHER, regex=False)
    write_table(store, "verdicts", sweep, table, inputs=module.table_inputs(store, "trials", sweep))


number, share, words = st.floats(), st.floats(0, 1), st.lists(st.text(max_size=3), max_size=2)
bottleneck = st.builds(Bottleneck, st.just("db"), st.just("cpu"), st.just(("db1", "db2")), share, share, share)
bottlenecks = st.lists(bottleneck, max_size=2)
verdict = st.builds(Verdict, st.just("single"), st.just("stable"), bottlenecks, words, number)
arrays = st.lists(number, max_size=2).map(np.array) | st.just(np.empty((0, 2)))
load = st.builds(Load, st.just("u1"), st.integers(0, 9), *[number] * 6, st.booleans(), rates=st.none() | arrays)
interval = st.builds(Interval, number, number, number, number, st.integers(0, 20))


@given(
    st.builds(
        SweepVerdict,
        st.text(max_size=3),
        st.just("1/1/1/1M"),
        st.just("hidden"),
        bottlenecks=bottlenecks,
        max_throughput=st.none() | interval,
        knee_users=number,
        knee_interval=st.tuples(number, number),
        plateau_users=st.just((1, 2)),
        trials=st.lists(st.tuples(load, verdict), max_size=2),
        evidence=words,
    )
)
@settings(max_examples=40, deadline=None)
def test_the_text_holds_all_of_a_verdict(found):
    assert same(from_text(to_text(found)), found)


def test_what_is_read_is_what_was_judged(store, tmp_path):
    fresh = verdicts(unpack(tmp_path / "fresh"), [])  # the package's store holds no documents: computed
    read = verdicts(store, [])
    assert len(fresh) == 3
    assert all(map(same, read, fresh))
    assert [as_json(v) for v in read] == [as_json(v) for v in fresh]


def test_reading_needs_nothing_that_judging_needs(store):
    before = [as_json(v) for v in verdicts(store, [])]
    for table in ("samples", "interactions", "nodes"):
        shutil.rmtree(store / table)
    assert [as_json(v) for v in verdicts(store, [])] == before


def test_reading_is_much_faster_than_judging(store):
    def seconds(work) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    read = min(seconds(lambda: verdicts(store, [])) for _ in range(3))
    assert 20 * read < seconds(lambda: judge_again(store, []))


def test_a_store_without_documents_is_still_read(store):
    table = read_table(store, "verdicts", SWEEP).drop(columns=["document", "analysis_version"])
    before = as_json(verdicts(store, [SWEEP])[0])
    write_table(store, "verdicts", SWEEP, table)
    assert judged_by(store, SWEEP) == ""
    assert as_json(verdicts(store, [SWEEP])[0]) == before


@pytest.mark.parametrize("text", ["", "no JSON", '{"sweep": "x"}', '{"sweep": 1, "topology": [], "trials": 5}'])
def test_a_document_that_cannot_be_read_counts_as_absent(text):
    assert from_text(text) is None


def test_a_verdict_on_other_tables_does_not_count(store):
    """As a crash between two files leaves it: the trials are new, the verdict is of the old ones."""
    trials = read_table(store, "trials", SWEEP)
    write_table(store, "trials", SWEEP, trials[trials["users"] < 3000], inputs="new")
    assert verdicts(store, [SWEEP])[0].verdict == "none"


def test_a_verdict_by_other_rules_is_read_and_says_so(store):
    before = as_json(verdicts(store, [SWEEP])[0])
    by_other_rules(store, SWEEP)
    after = as_json(verdicts(store, [SWEEP])[0])
    assert before["analysis_version"] == analysis_version()
    assert after["analysis_version"] == OTHER
    said = after["evidence"][-1]
    assert OTHER in said
    assert f"ntier-analysis judge {store} {SWEEP}" in said
    different = {k for k in before if before[k] != after[k]}
    assert different == {"analysis_version", "evidence"}
    assert after["evidence"][:-1] == before["evidence"]


def test_the_command_judges_again(store):
    by_other_rules(store, SWEEP)
    assert OTHER in called("verdict", store).stdout
    done = called("judge", store, SWEEP)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert f"(before: {OTHER})" in done.stdout
    assert judged_by(store, SWEEP) == analysis_version()
    assert OTHER not in called("verdict", store).stdout
    wrong = called("judge", store, "nosuch")
    assert wrong.returncode == 2
    assert SWEEP in wrong.stderr


def test_judging_again_gives_the_tables_that_ingest_gives(tmp_path):
    """And ingest itself judges again what other rules judged, though the raw results are as they were."""
    raw, store = tmp_path / "raw", tmp_path / "store"
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
    write_sweep(raw, truth, [300, 1000], phases=(10.0, 20.0, 2.0))
    ingest_sweep(raw / SWEEP, store)
    before = {t: read_table(store, t, SWEEP) for t in TABLES}
    judge_again(store, [SWEEP])
    for table, frame in before.items():
        pd.testing.assert_frame_equal(read_table(store, table, SWEEP), frame)
    by_other_rules(store, SWEEP)
    first, second = ingest_sweep(raw / SWEEP, store), ingest_sweep(raw / SWEEP, store)
    assert (first.unchanged, first.judged_again) == (True, True)
    assert (second.unchanged, second.judged_again) == (True, False)
    assert judged_by(store, SWEEP) == analysis_version()


def test_other_sweeps_are_heard_when_one_is_read(tmp_path):
    """A sweep with one node more is a witness whether or not it is asked for, and whether or not it is stored."""
    store = tmp_path / "store"
    small, large = (mesh.write_sweep(store, t) for t in ("1/1/1/1M", "1/1/1/2M"))
    mesh.write_sweep(store, "1/1/1/2P")
    (computed,) = verdicts(store, [small])
    judge_again(store, [])
    (read,) = verdicts(store, [small])
    assert read.evidence == computed.evidence
    heard = [text for text in read.evidence if "with more db nodes (1/1/1/2M)" in text]
    assert len(heard) == 1
    assert heard[0].endswith("confirms the verdict")
    assert heard[0] not in verdicts(store, [large])[0].evidence
    assert sweeps(store) == [v.sweep for v in verdicts(store, [])]


def test_verdicts_one_by_one_read_the_settings_of_each_sweep_once(tmp_path, monkeypatch):
    """Reports of all sweeps of a store did so once for each report; what an ingest replaces is read anew."""
    store = tmp_path / "store"
    names = [mesh.write_sweep(store, t) for t in ("1/1/1/1M", "1/1/1/2M", "1/1/1/2P")]
    read = []

    def counting(store: Path, table: str, sweep: str, columns: list[str]):
        read.extend([sweep] * ("think_time_s" in columns))
        return read_values(store, table, sweep, columns)

    monkeypatch.setattr(module, "read_values", counting)
    alone = [verdicts(store, [name])[0] for name in names]
    assert sorted(read) == sorted(names)
    assert same(alone, verdicts(store, []))
    assert any("with more db nodes" in text for text in alone[0].evidence)
    change(store, names[1], "mix", "another")
    assert not any("with more db nodes" in text for text in verdicts(store, names[:1])[0].evidence)
    assert len(read) == len(names) + 1


def change(store: Path, sweep: str, column: str, value: object) -> None:
    """Under other conditions, with the verdict that is stored."""
    trials = read_table(store, "trials", sweep).assign(**{column: value})
    write_table(store, "trials", sweep, trials, inputs=module.table_inputs(store, "trials", sweep))


def two_judged(made_once, store: Path, **sweeps: str) -> tuple[str, str]:
    """A store with two sweeps, name -> topology, and their verdicts: to be changed."""

    def make(folder: Path) -> None:
        for name, topology in sweeps.items():
            mesh.write_sweep(folder, topology, name=name)
        judge_again(folder, [])

    shutil.copytree(made_once("judged-" + "-".join(sweeps), make), store)
    small, large = module.sweeps(store)
    return small, large


@pytest.mark.parametrize(
    "column", ["mix", "middleware", "scale", "think_time_s", "data_profile", "policy", "target", "settings"]
)
def test_sweeps_under_other_conditions_are_no_witnesses(tmp_path, made_once, column):
    store = tmp_path / "store"
    small, large = two_judged(made_once, store, small="1/1/1/1M", large="1/1/1/2M")
    assert [text for text in verdicts(store, [small])[0].evidence if "with more db nodes" in text]
    change(store, large, column, 0.7 if column in ("scale", "think_time_s") else '{"app_pool_size": 8}')
    assert not [text for text in verdicts(store, [small])[0].evidence if "with more db nodes" in text]


@pytest.mark.parametrize(
    ("mine", "others", "heard"),
    [
        ("{}", '{"app_pool_size": 8}', "with app_pool_size at 8 instead of its default ({}) the maximum is"),
        ('{"app_pool_size": 2, "app_pool_mode": "shared"}', '{"app_pool_size": 8, "app_pool_mode": "shared"}',
         "with app_pool_size at 8 instead of 2 ({}) the maximum is"),
        (None, '{"app_pool_size": 8}', "with app_pool_size at 8 instead of its default ({}) the maximum is"),
        ("{}", '{"app_pool_size": 8, "app_pool_mode": "shared"}', ""),
        ("{}", "{}", ""),
        ("{}", "of an import", "with settings at of an import instead of its default ({}) the maximum is"),
    ],
)  # fmt: skip
def test_sweeps_that_differ_in_one_setting_are_heard_and_in_several_not(tmp_path, made_once, mine, others, heard):
    store = tmp_path / "store"
    here, there = two_judged(made_once, store, a="1/1/1/1M", b="1/1/1/1M")
    change(store, here, "settings", mine)
    change(store, there, "settings", others)
    said = [text for text in verdicts(store, [here])[0].evidence if "the maximum is" in text and " instead of " in text]
    assert [text.startswith(heard.format(there)) for text in said] == [True] * bool(heard)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (None, None),
        ({}, "{}"),
        ({"b": 2, "a": "x"}, '{"a": "x", "b": 2}'),
        ({"middleware_policy": "random", "middleware_tie": "first", "a": 1}, '{"a": 1}'),  # these two have columns
    ],
)
def test_what_was_asked_for_comes_from_the_manifest(tmp_path, asked, kept):
    raw, store = tmp_path / "raw", tmp_path / "store"
    folder = write_sweep(raw, Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01}), [300],
                         phases=(10.0, 20.0, 2.0), validated=True)  # fmt: skip
    (trial,) = (path.parent for path in folder.glob("*/manifest.json"))
    Manifest.read(trial).model_copy(update={"settings": asked}).write(trial)
    ingest_sweep(folder, store)
    (found,) = read_table(store, "trials", SWEEP)["settings"].astype(object)
    assert found == kept if kept else pd.isna(found)


def test_a_setting_that_brings_much_is_said_to_and_the_verdict_stays(tmp_path):
    store = tmp_path / "store"
    here, there = mesh.write_sweep(store, "1/1/1/1M", name="a"), mesh.write_sweep(store, "1/1/1/2M", name="b")
    change(store, there, "topology", "1/1/1/1M")  # what one node more brings, as if a setting did
    change(store, there, "settings", '{"app_pool_size": 8}')
    slow, fast = verdicts(store, [here, there])
    assert slow.evidence[-1].endswith("times this one: it relieves what limits, or makes work cheaper")
    assert slow.verdict == "single"
    assert fast.evidence[-1].endswith("times this one")


# ---- whose rules ---------------------------------------------------------------------------------------------------


def test_the_version_changes_with_any_rule(tmp_path, monkeypatch):
    package = shutil.copytree(stored._PACKAGE, tmp_path / "package", ignore=shutil.ignore_patterns("*.zip", "vendor"))
    before = analysis_version()
    monkeypatch.setattr(stored, "_PACKAGE", Path(package))
    unchanged = analysis_version.__wrapped__()
    assert unchanged == before
    seen = {before}
    for path in rule_files():
        path.write_text(path.read_text() + "\nX = 1\n")
        seen.add(analysis_version.__wrapped__())
    assert len(seen) == 1 + len(rule_files())
    (package / "verdict" / "a_new_rule.py").write_text("")
    assert analysis_version.__wrapped__() not in seen


def test_no_module_that_judges_is_left_out():
    """All of `verdict`, `statistics` and `validity` that judging imports, directly or not, is in the digest."""
    found, todo = set(), {"ntier_analysis.verdict.tables"}
    while todo:
        name = todo.pop()
        path = stored._PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if name in found or not path.is_file():
            continue
        found.add(name)
        tree = ast.walk(ast.parse(path.read_text()))
        todo |= {n.module for n in tree if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("ntier_")}
    rules = {f"ntier_analysis.{p.parent.name}.{p.stem}" for p in rule_files()}
    packages = ("verdict", "statistics", "validity")
    judging = {n for n in found if n.split(".")[1] in packages} - {"ntier_analysis.verdict.stored"}
    assert judging <= rules
    assert len(judging) > 8


def test_replacing_keeps_the_version(demo):
    (found,) = verdicts(demo, [SWEEP])
    assert replace(found, evidence=[]).analysis_version == analysis_version()


def test_an_unknown_sweep_names_what_there_is(demo):
    for work in (verdicts, judge_again):
        with pytest.raises(DataError, match=f"no sweep 'nope'.*{SWEEP}"):
            work(demo, ["nope"])


def test_trials_of_which_nobody_knows_whether_they_are_valid_count_nowhere(store):
    """The report and the comparison left them out, while the verdict counted them."""
    trials = read_table(store, "trials", SWEEP)
    write_table(store, "trials", SWEEP, trials.assign(valid=pd.array([None] * len(trials), dtype="boolean")))
    (found,) = judge_again(store, [SWEEP])
    assert (found.verdict, found.max_throughput) == ("unknown", None)
    assert "there is no valid trial" in found.evidence
