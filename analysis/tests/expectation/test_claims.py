"""Claims of a study and files of expectations: what is read, refused, left out and compared."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import doors
import pytest
from ntier_analysis import cli
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.expectation import check, claims
from ntier_analysis.expectation.expressions import evaluate
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.store.tables import read_table, write_table

DEFAULT = SWEEP.replace("1M", "1P")
POSTGRESQL = f"{DEFAULT}.xd86811"


CLAIMS = f"""
holds: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: max_throughput >= 100}}
differs: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: max_throughput >= 130}}
undecided: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: max_throughput >= 115}}
not measured: {{says: s, place: p, paper: "1", sweep: nosuch, expect: max_throughput >= 115}}
also not measured: {{says: s, place: p, paper: "1", sweep: {SWEEP},
  expect: "ratio(throughput(1000) of {SWEEP}, throughput(1000) of nosuch) >= 1"}}
"""


def test_claims_are_judged(store, tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text(CLAIMS)
    judged = claims.judge(claims.read(file), store)
    assert [c.judged for c in judged] == [c.name.removeprefix("also ") for c in judged]
    assert judged[0].seen == evaluate("max_throughput >= 100", read_facts(store, [SWEEP])[SWEEP], store).seen
    assert judged[-1].seen == "the store has no valid trial of nosuch"
    argv = [sys.executable, "-m", "ntier_analysis.cli", "claims", file, "--store", store]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said == claims.table(judged) + "\n"
    assert len(json.loads(subprocess.run([*argv, "--json"], capture_output=True, text=True, check=True).stdout)) == 5


SEVERAL = f"""
all hold: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: [max_throughput >= 100, verdict == single db cpu]}}
one differs: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: [max_throughput >= 100, max_throughput >= 130]}}
one is open: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: [max_throughput >= 100, max_throughput >= 115]}}
one is missing: {{says: s, place: p, paper: "1", expect: {{{SWEEP}: max_throughput >= 100, nosuch: verdict == none}}}}
one differs and one is missing:
  {{says: s, place: p, paper: "1", expect: {{{SWEEP}: max_throughput >= 130, "no{{such,where}}": verdict == none}}}}
another load: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: throughput(1234) >= 1}}
anchored: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: "ratio(max_throughput in anchors,
  max_throughput in anchors of {SWEEP}) > 0"}}
anchor missing: {{says: s, place: p, paper: "1", sweep: {DEFAULT}, expect: "ratio(max_throughput in anchors,
  max_throughput in anchors of {SWEEP}) > 0"}}
of two: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: "ratio({SWEEP}, nosuch, demand_ms db) >= 2"}}
not to be told: {{says: s, place: p, paper: "1", unjudged: because}}
anchors: {{{SWEEP}: {SWEEP}, nosuch: ["{DEFAULT}"]}}
"""


def test_a_claim_of_several_places_holds_if_all_hold(store, tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text(SEVERAL)
    judged = {c.name: c for c in claims.judge(claims.read(file), store)}
    assert {name: str(c.judged) for name, c in judged.items()} == {
        "all hold": "holds",
        "one differs": "differs",
        "one is open": "undecided",
        "one is missing": "not measured",
        "one differs and one is missing": "differs",
        "another load": "not measured",
        "anchored": "holds",
        "anchor missing": "not measured",
        "of two": "not measured",
        "not to be told": "not judged",
    }
    assert judged["one differs and one is missing"].seen.startswith(
        f"of 3: differs 1, not measured 2; {SWEEP}, max_throughput >= 130: 11"
    )
    assert "; max_throughput >= 130: 11" in judged["one differs"].seen
    assert judged["another load"].seen.endswith("needs a load that was measured: " + LOADS)
    assert judged["anchor missing"].seen == "the store has no valid trial of nosuch"
    assert judged["of two"].seen == "the store has no valid trial of nosuch"
    assert judged["not to be told"].seen == "because"


LOADS = ", ".join(str(n) for n in range(1000, 14000, 1000))


def test_braces_name_several_sweeps():
    assert claims.alternatives("1-{1,2}-1-{3,4}M") == ["1-1-1-3M", "1-1-1-4M", "1-2-1-3M", "1-2-1-4M"]
    assert claims.alternatives("a{,-b}") == ["a", "a-b"]
    assert claims.alternatives("1-{1,2}-1-{{3,4}P.s0_2,9P.s0_1}")[:3] == [
        "1-1-1-3P.s0_2",
        "1-1-1-4P.s0_2",
        "1-1-1-9P.s0_1",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "a: {says: x}",
        "a: [1]",
        "a: {says: 1, place: p, paper: q, sweep: s, expect: e}",
        "a: {says: x, place: p, paper: q}",
        "a: {says: x, place: p, paper: q, expect: e}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: [1]}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: []}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: {s: e}}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: e, unjudged: u}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: e, given: 1}",
        "a: {says: x, place: p, paper: q, sweep: s, expect: e, given: max_throughput > 1}",
        "a: {says: x, place: p, paper: q, given: verdict == none, unjudged: u}",
        "a: {says: x, place: p, paper: q, sweep: '1-{1,2-1M', expect: e}",
        "anchors: [1]",
        "anchors: {a: '1-1}-1M'}",
        "anchors: {a: 1}",
        "between blocks: [1]",
        "between blocks: {cores(web): 0.05}",
        "between blocks: {cores(web): {differ: 5 %, freedom: 13}}",
        "between blocks: {cores(web): {differ: 0.05, freedom: 0}}",
        "between blocks: {core(web): {differ: 0.05, freedom: 13}}",
    ],
    ids=str,
)
def test_a_wrong_file_of_claims_is_refused(tmp_path, text):
    file = tmp_path / "claims.yaml"
    file.write_text(text)
    with pytest.raises(DataError, match=r"claims.yaml: .*expected"):
        claims.read(file)


def test_a_file_for_one_sweep_and_for_all(store, tmp_path):
    path = tmp_path / "expected.yml"
    path.write_text(f"all:\n  - verdict == single db cpu\n{SWEEP}:\n  - max_throughput >= 100\n  - knee_users < 5000\n")
    results = check(store, [], path)
    assert len(results) == 3 + 2
    assert {r.outcome for r in results} == {"holds"}
    assert {r.sweep for r in results} == {SWEEP, DEFAULT, POSTGRESQL}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "expected {sweep: "),
        ("a: [unclosed", "line [12]: not YAML"),
        ("nosuch: [verdict == none]", "no sweep 'nosuch'"),
        (f"{SWEEP}: [5]", "expectation 5 is not a text"),
        (f"{SWEEP}: {{bottleneck: db}}", "bottleneck is 'db', expected keys of {tier, resource, nodes, item}"),
        (f"{SWEEP}: {{bottleneck: {{tear: db}}}}", "expected keys of {tier, resource, nodes, item}"),
        (f"{SWEEP}: {{max_throughput_per_s: [50]}}", r"expected \[low, high\]"),
        (f"{SWEEP}: {{speed: 5}}", "unknown key 'speed'; allowed are bottleneck, sweep"),
        ("!!python/object/apply:os.system ['true']", "line [12]: not YAML"),
    ],
)
def test_wrong_files_are_refused(store, tmp_path, text, message):
    path = tmp_path / "expected.yml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        check(store, [], path)


def test_rates_of_other_scales_are_not_compared(store, facts, tmp_path):
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    trials = read_table(copy, "trials", DEFAULT)
    write_table(copy, "trials", DEFAULT, trials.assign(scale=0.1))
    text = f"ratio(throughput(1000), throughput(1000) of {DEFAULT}) >= 0.5"
    assert evaluate(text, facts[SWEEP], store).outcome == "holds"
    evaluation = evaluate(text, facts[SWEEP], copy)
    assert evaluation.outcome == "undecided"
    assert "scale is 0.2 and 0.1" in evaluation.seen
    write_table(copy, "trials", DEFAULT, trials.assign(think_time_s=5.0))
    assert "think_time_s is 7 and 5" in evaluate(text, facts[SWEEP], copy).seen


def test_a_ratio_of_sweeps_that_cannot_be_compared_is_undecided_and_the_other_claims_are_judged(store, tmp_path):
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    write_table(copy, "trials", DEFAULT, read_table(copy, "trials", DEFAULT).assign(mix="read_write"))
    file = tmp_path / "claims.yaml"
    file.write_text(f"""
other: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: "ratio({SWEEP}, {DEFAULT}) >= 1"}}
same: {{says: s, place: p, paper: "1", sweep: {SWEEP}, expect: max_throughput >= 100}}
""")
    other, same = claims.judge(claims.read(file), copy)
    assert (other.judged, same.judged) == ("undecided", "holds")
    assert other.seen.startswith("the two cannot be compared: mix is read_write and ")


def test_what_a_file_has_of_sweeps_that_were_not_asked_for_is_left_out(store, tmp_path):
    path = tmp_path / "expected.yml"
    path.write_text(f"{SWEEP}: [max_throughput >= 100]\n{DEFAULT}: [max_throughput >= 1e9]\n")
    (result,) = check(store, [], path, [SWEEP])
    assert (result.sweep, result.outcome) == (SWEEP, "holds")
    path.write_text("nosuch: [max_throughput >= 100]\n")
    with pytest.raises(DataError, match=f"no sweep 'nosuch' in .*; there are: .*{DEFAULT}"):
        check(store, [], path, [SWEEP])


def test_a_mistyped_sweep_is_named_with_those_that_there_are(store):
    done = doors.call(cli.main, "chains", "nosuch", "--store", store)
    assert done.code == 2
    assert f"no sweep 'nosuch' in {store}; there are: {SWEEP}" in done.err


VERDICTS = {
    "full": "single db cpu", "as_full": "single db cpu", "both": "multi simultaneous db cpu and middleware cpu",
    "both_in_turns": "multi alternating middleware cpu and db cpu", "free": "none", "free_too": "none",
    "open": "unknown", "beside": "hidden", "beside_too": "hidden", "told_nothing": "", "cached": "single cache cpu",
}  # fmt: skip


@pytest.mark.parametrize(
    ("sweep", "text", "judged"),
    [
        ("full", "verdict == verdict of as_full", "holds"),
        ("full", "verdict != verdict of as_full", "differs"),
        ("full", "verdict == verdict of both", "differs"),
        ("both", "verdict == verdict of both_in_turns", "holds"),
        ("free", "verdict == verdict of free_too", "holds"),
        ("free", "verdict == verdict of full", "differs"),
        ("full", "verdict == verdict of open", "undecided"),
        ("beside", "verdict == verdict of beside_too", "undecided"),
        ("beside", "verdict != verdict of beside_too", "undecided"),
        ("beside", "verdict == verdict of full", "differs"),
        ("told_nothing", "verdict == single db cpu", "undecided"),
        ("cached", "verdict == single cache cpu", "holds"),
        ("open", "verdict == verdict of full", "undecided"),
        ("full", "verdict == verdict of nowhere", "not measured"),
        ("nowhere", "verdict == verdict of full", "not measured"),
        ("full", "verdict == single db cpu", "holds"),
        ("full", "verdict == single", "holds"),
        ("both", "verdict == multi simultaneous middleware cpu and db cpu", "holds"),
        ("both", "verdict == multi alternating", "differs"),
        ("both", "verdict == single db cpu", "differs"),
        ("open", "verdict != single db cpu", "undecided"),
        ("open", "verdict == unknown", "holds"),
    ],
)
def test_a_verdict_that_was_kept_is_judged_by_its_words(store, tmp_path, sweep, text, judged):
    """Also where the claim that it was kept for expected something else, and beside another verdict."""
    (tmp_path / "claims.yaml").write_text(f"a: {{says: s, place: p, paper: q, sweep: {sweep}, expect: '{text}'}}")
    (found,) = claims.judge(claims.read(tmp_path / "claims.yaml"), store, verdicts=VERDICTS)
    assert found.judged == judged


def test_a_store_that_has_a_sweep_is_believed_before_the_words_that_were_kept(store, tmp_path):
    (tmp_path / "claims.yaml").write_text(
        f"a: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: verdict == verdict of {SWEEP}}}"
    )
    (found,) = claims.judge(claims.read(tmp_path / "claims.yaml"), store, verdicts={SWEEP: "none"})
    assert (found.judged, "single db cpu" in found.seen) == ("holds", True)


@pytest.mark.parametrize(
    ("given", "expected", "judged"),
    [
        ("verdict == single db cpu", "knee_users > 1e9", "differs"),
        ("verdict == single db cpu", "knee_users > 1", "holds"),
        ("verdict == single app cpu", "knee_users > 1e9", "undecided"),
        ("verdict == single app cpu", "knee_users > 1", "undecided"),
    ],
)
def test_a_claim_says_nothing_of_a_place_where_its_premise_does_not_hold(store, tmp_path, given, expected, judged):
    """That something occurs only where the databases do not limit was told to differ by a sweep whose verdict was
    unknown."""
    text = f"a: {{says: s, place: p, paper: q, sweep: PLACE, given: {given}, expect: {expected}}}"
    (tmp_path / "claims.yaml").write_text(text.replace("PLACE", SWEEP))
    (found,) = claims.judge(claims.read(tmp_path / "claims.yaml"), store)
    assert found.judged == judged
    assert (f"; {given} does not hold there (single db cpu)" in found.seen) == (judged == "undecided")
    (tmp_path / "claims.yaml").write_text(text.replace("PLACE", "gone"))
    stated, part = claims.read(tmp_path / "claims.yaml"), ("a", "gone", expected)
    for said in (claims.Judged.HOLDS, claims.Judged.DIFFERS):
        kept = {part: claims.Said(said, "5 [4, 6]")}
        (found,) = claims.judge(stated, store, kept, verdicts={"gone": "unknown"})
        assert (found.judged, found.seen) == ("undecided", f"5 [4, 6]; {given} is not known there (unknown)")
        claims.write_parts([found], tmp_path / "parts.csv")
        assert claims.read_parts(tmp_path / "parts.csv")[part].judged == said, "another store may know the premise"
        (found,) = claims.judge(stated, store, kept, verdicts={"gone": given.removeprefix("verdict == ")})
        assert found.judged == said
