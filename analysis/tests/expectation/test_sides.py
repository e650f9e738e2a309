"""A side of a ratio is kept beside the claims: two sweeps are compared though no store had both."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.expectation import claims
from ntier_analysis.expectation.expressions import sides_of
from ntier_analysis.expectation.quantity import Quantity
from ntier_analysis.expectation.sides import (
    BEFORE,
    COLUMNS,
    SETTINGS,
    Between,
    Blocks,
    Operand,
    Side,
    ratio_of,
    read_operands,
    write_operands,
)

OTHER = SWEEP.replace("1M", "1P")
CLAIMS = f"""
at one load: {{says: s, place: p, paper: q, sweep: {SWEEP},
  expect: "ratio(throughput(1000), throughput(1000) of {OTHER}) > 0.1"}}
in anchors: {{says: s, place: p, paper: q, sweep: {OTHER},
  expect: "ratio(throughput(1000), max_throughput in anchors of {SWEEP}) > 0.1"}}
with one alone: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: verdict == single db cpu}}
anchors: {{{SWEEP}: {SWEEP}}}
"""


@pytest.fixture
def stated(tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text(CLAIMS)
    return claims.read(file)


@pytest.fixture(scope="module")
def without(demo, tmp_path_factory) -> dict[str, Path]:
    """Sweep -> the store without it."""
    found = {}
    for sweep in (SWEEP, OTHER):
        found[sweep] = tmp_path_factory.mktemp("without") / "store"
        shutil.copytree(demo, found[sweep], ignore=lambda _, names, sweep=sweep: [n for n in names if sweep == of(n)])
    return found


def of(name: str) -> str:
    """Sweep of a file or folder of the store."""
    return name.removeprefix("sweep=").removesuffix(".parquet").removesuffix(".json")


def numbers(seen: str) -> str:
    """Without the remarks."""
    return re.match(r"\S+ \[\S+ \S+\]", seen)[0]


def judged(stated, *stores):
    return {c.name: c for c in claims.judge(stated, *stores)}


@pytest.mark.parametrize(("name", "lacking"), [("at one load", OTHER), ("at one load", SWEEP), ("in anchors", SWEEP)])
def test_sweeps_that_no_store_has_together_are_compared_by_what_was_kept(
    demo, without, stated, tmp_path, name, lacking
):
    whole = judged(stated, demo)[name]
    assert judged(stated, without[lacking])[name].judged == "not measured"
    write_operands(claims.operands_of(stated, demo), tmp_path / "operands.csv")
    kept = judged(stated, without[lacking], None, read_operands(tmp_path / "operands.csv"))[name]
    assert (kept.judged, numbers(kept.seen)) == (whole.judged, numbers(whole.seen))
    assert re.search(rf"; {re.escape(lacking)}: kept from 20\d\d-\d\d-\d\d$", kept.seen)


def test_neither_sweep_need_be_in_the_store(demo, stated, tmp_path):
    (tmp_path / "store" / "trials").mkdir(parents=True)
    kept = judged(stated, tmp_path / "store", None, claims.operands_of(stated, demo))
    assert kept["at one load"].seen.count("kept from") == 2
    assert kept["with one alone"].judged == "not measured"


def test_a_store_that_has_a_sweep_is_believed_before_what_was_kept(demo, stated):
    wrong = {key: replace(o, measured=Quantity(9.0, 8.0, 10.0)) for key, o in claims.operands_of(stated, demo).items()}
    assert claims.judge(stated, demo, None, wrong) == claims.judge(stated, demo)


def test_sides_of_another_scale_are_not_compared(demo, without, stated):
    operands = claims.operands_of(stated, demo)
    other = {key: replace(o, settings={**o.settings, "scale": "0.15"}) for key, o in operands.items()}
    at_one = judged(stated, without[OTHER], None, other)["at one load"]
    assert at_one.judged == "undecided"
    assert "scale is" in at_one.seen
    anchored = judged(stated, without[SWEEP], None, other)["in anchors"]
    assert anchored.judged == "holds", "an anchor has its sweep's scale"


@pytest.mark.parametrize(
    ("column", "value"), [("mix", "read_write"), ("data_profile", "large"), ("think_time_s", "3.5")]
)
def test_sides_of_other_settings_are_compared_only_where_that_is_said(demo, without, stated, column, value):
    operands = claims.operands_of(stated, demo)
    other = {key: replace(o, settings={**o.settings, column: value}) for key, o in operands.items()}
    found = judged(stated, without[OTHER], None, other)["at one load"]
    assert found.judged == "undecided"
    assert f"; {column} is " in found.seen
    said = [replace(c, parts=tuple((s, f"{text} across {column}") for s, text in c.parts)) for c in stated[:1]]
    assert judged(said, without[OTHER], None, other)["at one load"].judged == "holds"
    unknown = {key: replace(o, settings={**o.settings, column: "unknown"}) for key, o in operands.items()}
    assert judged(stated, without[OTHER], None, unknown)["at one load"].judged == "holds"


@pytest.mark.parametrize(("target", "outcome"), [("imported", "holds"), ("local", "undecided")])
def test_think_times_of_imports_that_differ_as_measured_means_do_are_told(target, outcome):
    def side(think_time_s: str) -> Operand:
        settings = dict.fromkeys(SETTINGS, "1") | {"target": target, "think_time_s": think_time_s}
        return Operand(Quantity(2.0, 1.9, 2.1), settings)

    compared = [Side("throughput", "1000", False, name) for name in ("a", "b")]
    operands = {"a": side("7"), "b": side("7.2")}
    found, seen = ratio_of("a ratio", compared, ">=", "0.5", lambda of: operands[of.sweep])
    assert (found, "think_time_s is 7 and 7.2" in seen) == (outcome, True)


def test_sides_of_another_system_are_not_compared_and_another_target_is_told(demo, without, stated):
    operands = claims.operands_of(stated, demo)
    for column, value, outcome in (("system", "mediawiki", "undecided"), ("target", "elsewhere", "holds")):
        other = {key: replace(o, settings={**o.settings, column: value}) for key, o in operands.items()}
        found = judged(stated, without[OTHER], None, other)["at one load"]
        assert (found.judged, f"; {column} is " in found.seen) == (outcome, True)


def test_only_settings_that_may_differ_can_be_named(demo, stated):
    wrong = [replace(c, parts=tuple((s, f"{text} across scale") for s, text in c.parts)) for c in stated[:1]]
    with pytest.raises(DataError, match="across 'scale': allowed are data_profile, think_time_s, mix"):
        claims.judge(wrong, demo)


@pytest.mark.parametrize("columns", BEFORE, ids=len)
def test_operands_of_before_the_last_columns_were_kept_are_read(tmp_path, columns):
    settings = dict.fromkeys(SETTINGS, "1")
    known = {("a", "cores(web)"): Operand(Quantity(0.5, 0.4, 0.6, freedom=2.0), settings, "2026-01-02")}
    file = tmp_path / "operands.csv"
    write_operands(known, file)
    lacking = COLUMNS[len(columns) :]
    file.write_text("".join(f"{line.rsplit(',', len(lacking))[0]}\n" for line in file.read_text().splitlines()))
    (old,) = read_operands(file).values()
    assert old.settings == settings | {column: "unknown" for column in lacking if column in SETTINGS}
    assert old.measured == Quantity(0.5, 0.4, 0.6), "of how many trials is not known"


def side(value: float, half: float, **settings: str) -> Operand:
    return Operand(Quantity(value, value - half, value + half, freedom=6), dict.fromkeys(SETTINGS, "1") | settings)


GROWS = "ratio(throughput(1) of a / throughput(1) of b, throughput(1) of c / throughput(1) of d) > 1"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [((9, 10, 4, 10), "holds"), ((4.1, 10, 4, 10), "undecided"), ((4, 10, 9, 10), "does not hold")],
)
def test_a_ratio_that_grows_is_told_by_the_intervals_of_all_four_sides(values, outcome):
    known = dict(zip("abcd", (side(value, 0.5) for value in values), strict=True))
    compared = sides_of(GROWS, "x")
    assert [(s.sweep, s.divides) for s in compared] == [("a", False), ("b", True), ("c", False), ("d", True)]
    found, seen = ratio_of(GROWS, compared, ">", "1", lambda of: known[of.sweep])
    assert found == outcome
    first, second, third, fourth = values
    assert float(seen.split()[0]) == pytest.approx(first / second / (third / fourth), rel=1e-3)


def test_all_sides_of_a_ratio_that_grows_are_of_one_setting():
    known = {name: side(5, 0.1) for name in "abc"} | {"d": side(5, 0.1, mix="read_write")}
    found, seen = ratio_of(GROWS, sides_of(GROWS, "x"), ">", "0.1", lambda of: known[of.sweep])
    assert (found, "; mix is 1 and read_write" in seen) == ("undecided", True)


def test_the_sweeps_of_a_ratio_that_grows_are_those_of_its_four_sides(stated, demo):
    grown = f"throughput(1000) of {OTHER} / throughput(1000)"
    text = f"ratio(throughput(1000) / throughput(2000), {grown}) > 0.1"
    claim = replace(stated[0], parts=((SWEEP, text),))
    assert claim.sweeps == [SWEEP, OTHER]
    assert set(claim.sides) == {(SWEEP, "throughput(1000)"), (SWEEP, "throughput(2000)"), (OTHER, "throughput(1000)")}
    (found,) = claims.judge([claim], demo)
    assert found.judged == "holds"


OF_BLOCKS = Blocks({"a": "1", "b": "1", "c": "2", "d": "2"}, {"cores(web)": Between(0.045, 13)})
"""What two blocks differ by, 4.5 % each, reaches 14 % to both sides."""


@pytest.mark.parametrize(
    ("text", "half", "outcome"),
    [
        ("ratio(cores(web) of a, cores(web) of b) within 5 %", 0.1, "holds"),
        ("ratio(cores(web) of a, cores(web) of c) within 5 %", 0.1, "undecided"),
        ("ratio(cores(web) of a, cores(web) of nowhere) within 5 %", 0.1, "undecided"),
        ("ratio(cores(web) of a, cores(web) of c) < 1.1", 0.1, "undecided"),
        ("ratio(cores(web) of a, cores(web) of c) < 1.2", 0.1, "holds"),
        ("ratio(cores(web) of a, cores(web) of c) <= 0.8", 0.1, "does not hold"),
        ("ratio(cores(app) of a, cores(app) of c) within 5 %", 0.1, "holds"),
        ("ratio(cores(web) of a / cores(web) of b, cores(web) of c / cores(web) of d) within 8 %", 0.1, "holds"),
        ("ratio(cores(web) of a / cores(web) of c, cores(web) of b / cores(web) of d) within 8 %", 0.1, "holds"),
        ("ratio(cores(web) of a / cores(web) of c, cores(web) of d / cores(web) of b) within 25 %", 0.1, "undecided"),
    ],
)
def test_sweeps_of_two_blocks_differ_by_what_blocks_do(text, half, outcome):
    """Identical cells do: without this 9 % of the intervals of their ratios did not hold 1. What two sides have of one
    block goes from their ratio; what one side has twice counts twice."""
    known = {name: side(5, half) for name in ("a", "b", "c", "d", "nowhere")}
    op, bound = text.rsplit(") ", 1)[1].split(" ", 1)
    found, seen = ratio_of(text, sides_of(text, "x"), op, bound, lambda of: known[of.sweep], 1, OF_BLOCKS)
    assert found == outcome
    apart = OF_BLOCKS.between(sides_of(text, "x")) is not None
    assert ("; of other blocks, which alone give [0." in seen) == apart


def test_a_lower_bound_of_another_block_is_one():
    known = {"a": side(5, 0.1), "c": Operand(Quantity(5, 4.9, float("inf")), side(5, 0.1).settings)}
    text = "ratio(cores(web) of a, cores(web) of c) < 1.2"
    found, seen = ratio_of(text, sides_of(text, "x"), "<", "1.2", lambda of: known[of.sweep], 1, OF_BLOCKS)
    assert (found, seen.startswith("1 [0, 1.1")) == ("holds", True)


def test_several_parts_widen_what_blocks_differ_by():
    """0.82 is so far from 1 that one ratio shows it, and one of twenty does not."""
    known = {"a": side(8.2, 0.001), "c": side(10, 0.001)}
    text = "ratio(cores(web) of a, cores(web) of c) >= 1"
    found = [
        ratio_of(text, sides_of(text, "x"), ">=", "1", lambda of: known[of.sweep], several, OF_BLOCKS)[0]
        for several in (1, 20)
    ]
    assert found == ["does not hold", "undecided"]


def test_claims_are_judged_by_what_their_blocks_differ_by(demo, tmp_path):
    """Of one block, and of two."""
    text = f"""
a: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: "ratio(throughput(1000), throughput(1000) of {OTHER}) < 9"}}
between blocks: {{throughput(1000): {{differ: 9, freedom: 13}}}}
"""
    found = []
    for anchors in (f"anchors: {{{SWEEP}: [{SWEEP}, {OTHER}]}}", ""):
        (tmp_path / "claims.yaml").write_text(text + anchors)
        (claim,) = claims.judge(claims.read(tmp_path / "claims.yaml"), demo)
        found.append(claim.judged)
    assert found == ["holds", "undecided"]
    assert claims.between(tmp_path / "claims.yaml") == {"throughput(1000)": Between(9, 13)}


@pytest.mark.parametrize(
    ("number", "taken"),
    [("throughput( 1000 )", True), ("throughput (1000)", True), ("throughput(100)", False), ("throughput", False),
     ("throughput(1000) in anchors", False), ("throuhgput(1000)", False)],
)  # fmt: skip
def test_what_blocks_differ_by_is_of_a_number_that_is_compared(tmp_path, number, taken):
    """Written otherwise it was taken without a word, and left out."""
    (tmp_path / "claims.yaml").write_text(f"""
a: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: "ratio(throughput(1000), throughput(1000) of {OTHER}) < 9"}}
between blocks: {{"{number}": {{differ: 9, freedom: 13}}}}
""")
    if taken:
        (claim,) = claims.read(tmp_path / "claims.yaml")
        assert claim.between == {"throughput(1000)": Between(9, 13)}
    else:
        with pytest.raises(DataError, match="between blocks: "):
            claims.read(tmp_path / "claims.yaml")


@pytest.mark.parametrize("wrong", ["throughput(1) / nosuch(1)", "throughput(1) / throughput(1) / throughput(1)"])
def test_a_quotient_of_something_else_is_refused(wrong):
    with pytest.raises(DataError, match="or two of them with / between"):
        sides_of(f"ratio({wrong}, throughput(1)) > 1", "x")


def test_what_has_no_interval_is_not_kept(tmp_path):
    settings = dict.fromkeys(SETTINGS, "1")
    known = {
        ("b", "cores(web)"): Operand(Quantity(0.5, 0.4, float("inf"), 'a "lower" bound, here'), settings, "2026-01-02"),
        ("a", "cores(web)"): Operand(Quantity(0.5, None, None), settings, "2026-01-02"),
    }
    write_operands(known, tmp_path / "operands.csv")
    assert read_operands(tmp_path / "operands.csv") == {("b", "cores(web)"): known["b", "cores(web)"]}
    assert read_operands(tmp_path / "nosuch.csv") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sweep,value\n", r"operands.csv: expected the columns sweep, number"),
        (f"{','.join(COLUMNS)}\na,cores(web),x,1,2,,,,,,\n", r"operands.csv, line 2: .*'x'"),
        (f"{','.join(COLUMNS)}\na,cores(web)\n", r"operands.csv, line 2: "),
        (f"{','.join(COLUMNS)}\na\n", r"operands.csv, line 2: "),
        (f"{','.join(COLUMNS)}\na,cores(web),1,1,2,,,,,,,,,x\n", r"operands.csv, line 2: .*'x'"),
    ],
)
def test_a_wrong_file_of_operands_is_refused(tmp_path, text, message):
    file = tmp_path / "operands.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_operands(file)


def test_what_another_store_said_of_a_sweep_counts_in_every_claim_with_that_expectation(demo, tmp_path):
    """A claim that gets a part which another one had is not unmeasured again."""
    text = "a: {says: A, place: '1', paper: x, sweep: gone, expect: 'knee_users >= 3'}\n"
    (tmp_path / "claims.yaml").write_text(
        text + text.replace("a:", "b:", 1).replace(">= 3", ">= 4") + text.replace("a:", "c:", 1)
    )
    kept = {("a", "gone", "knee_users >= 3"): claims.Said(claims.Judged.HOLDS, "5 [4, 6]")}
    found = claims.judge(claims.read(tmp_path / "claims.yaml"), demo, kept)
    assert [c.judged for c in found] == [claims.Judged.HOLDS, claims.Judged.NOT_MEASURED, claims.Judged.HOLDS]
