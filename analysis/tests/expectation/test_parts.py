"""A claim of several parts, each at 95 %: it differs by chance as seldom as a claim of one part."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.expectation import claims
from ntier_analysis.expectation.claims import Claim, Judged, Said, of_parts, part
from ntier_analysis.expectation.expressions import evaluate
from ntier_analysis.expectation.outcomes import bounded
from ntier_analysis.expectation.quantities import quantity, read_facts
from ntier_analysis.expectation.quantity import Quantity, mean_of_trials, quotient
from ntier_analysis.expectation.sides import SETTINGS, Operand, read_operands, write_operands
from ntier_analysis.statistics.share import wilson
from scipy import stats

PARTS, TRIALS, CLAIMS = 10, 3, 1000
ONE_SIDED = 0.025


def judged(quantities: list[Quantity]) -> Judged:
    """Of a claim that all are >= 100."""
    parts = tuple(("sweep", "mean_throughput >= 100") for _ in quantities)
    claim = Claim("a", "says", "place", "paper", parts)

    def outcome(quantity: Quantity, several: int):
        return bounded(quantity.one_of(several), ">=", 100.0)

    found = [part(outcome(q, 1), q.text, len(quantities), partial(outcome, q)) for q in quantities]
    return of_parts(claim, found).judged


def test_a_claim_whose_parts_all_hold_just_so_differs_as_seldom_as_one_part():
    """Each part differs by chance in 2.5 %: one of ten in 22 %."""
    rng = np.random.default_rng(1)
    values = 100 * (1 + 0.05 * rng.standard_normal((CLAIMS, PARTS, TRIALS)))
    found = [[mean_of_trials(trials) for trials in claim] for claim in values]
    alone = np.mean([any(q.high < 100 for q in claim) for claim in found])
    together = np.mean([judged(claim) is Judged.DIFFERS for claim in found])
    error = np.sqrt(ONE_SIDED / CLAIMS)
    assert alone == pytest.approx(1 - (1 - ONE_SIDED) ** PARTS, abs=0.04)
    assert together <= ONE_SIDED + 3 * error
    assert together >= ONE_SIDED - 3 * error, "or it would be more than careful"


def test_a_part_that_is_far_off_makes_a_claim_of_many_differ():
    rng = np.random.default_rng(2)
    found = [mean_of_trials(100 * (1 + 0.01 * rng.standard_normal(7))) for _ in range(PARTS - 1)]
    assert judged([*found, mean_of_trials(np.array([90.0, 90.5, 91.0, 91.2]))]) is Judged.DIFFERS
    assert judged([*found, mean_of_trials(np.array([98.0, 98.5, 99.0]))]) is Judged.UNDECIDED


def test_a_claim_holds_by_the_intervals_of_its_parts_alone():
    """It would err only if a part that is wrong held: that needs no correction."""
    just = Quantity(104.0, 100.1, 108.0, freedom=2)
    assert judged([just]) is judged([just] * PARTS) is Judged.HOLDS


def test_an_interval_that_holds_with_others_is_students_and_wilsons():
    of_mean = Quantity(100.0, 90.0, 110.0, freedom=2).one_of(5)
    assert of_mean.low == pytest.approx(100 - 10 * stats.t.ppf(0.995, 2) / stats.t.ppf(0.975, 2))
    z = stats.norm.ppf(0.975)
    for share, n in ((0.0, 40.0), (0.1, 40.0), (0.9, 25.0), (1.0, 40.0)):
        known = Quantity(share, *wilson(share, n, z), freedom=np.inf, most=1.0).one_of(5)
        low, high = wilson(share, n, stats.norm.ppf(0.995))
        assert known.low <= low + 1e-9, share
        assert known.high >= high - 1e-9, share
    rate = quotient(Quantity(2.0, 1.0, 4.0, freedom=2), Quantity(1.0, 1.0, 1.0)).one_of(3)
    assert rate.high >= 2 * 2 ** (stats.t.ppf(1 - 0.025 / 3, 2) / stats.t.ppf(0.975, 2))


def test_of_how_many_trials_an_interval_is_may_be_unknown():
    """Then it may be of two."""
    known, unknown = (Quantity(100.0, 90.0, 110.0, freedom=f).one_of(5).high for f in (6, None))
    assert unknown > known > 110
    assert Quantity(100.0, 90.0, float("inf"), freedom=6).one_of(5).high == float("inf")
    assert Quantity(100.0, None, None).one_of(5) == Quantity(100.0, None, None)
    assert Quantity(3.0, 3.0, 3.0).one_of(5) == Quantity(3.0, 3.0, 3.0), "a count is exact"


SEVERAL = f"""
one: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: EXPECTED}}
two: {{says: s, place: p, paper: q, sweep: {SWEEP}, expect: [invalid_trials == 0, EXPECTED]}}
"""


@pytest.mark.parametrize(
    ("name", "args", "op"),
    [("max_throughput", None, ">="), ("saturation", "4000 db cpu", "<="), ("throughput", "4000", ">=")],
)
def test_measured_parts_are_judged_together(demo, tmp_path, name, args, op):
    """By a bound between the end of the interval and that of the interval that holds for both."""
    facts = read_facts(demo, [SWEEP])[SWEEP]
    expected = f"{name}{f'({args})' if args else ''}"
    known = quantity(name, args, facts, expected)
    wide = known.one_of(2)
    bound = (known.low + wide.low) / 2 if op == "<=" else (known.high + wide.high) / 2
    file = tmp_path / "claims.yaml"
    file.write_text(SEVERAL.replace("EXPECTED", f"{expected} {op} {bound}"))
    one, two = claims.judge(claims.read(file), demo)
    assert (one.judged, two.judged) == (Judged.DIFFERS, Judged.UNDECIDED)
    assert "differs by itself, and as one of 2 parts it may by chance" in two.seen


def test_ratios_of_several_parts_are_judged_together(demo, tmp_path):
    """Of two numbers, and of two sweeps."""
    other = SWEEP.replace("1M", "1P")
    facts = read_facts(demo, [SWEEP])[SWEEP]
    for text in (f"ratio(max_throughput, max_throughput of {other})", f"ratio({SWEEP}, {other})"):
        seen = evaluate(f"{text} >= 0", facts, demo).seen
        bound = 1.001 * float(re.match(r"\S+ \[\S+, (\S+)\]", seen)[1])
        file = tmp_path / "claims.yaml"
        file.write_text(SEVERAL.replace("EXPECTED", f'"{text} >= {bound}"'))
        one, two = claims.judge(claims.read(file), demo)
        assert (one.judged, two.judged) == (Judged.DIFFERS, Judged.UNDECIDED), text


def test_what_differed_as_the_only_part_of_a_claim_does_not_as_one_of_many(demo, tmp_path):
    """`kept` of another store, which is gone."""
    (tmp_path / "claims.yaml").write_text(
        "a: {says: A, place: '1', paper: x, sweep: gone, expect: 'knee_users >= 3'}\n"
        f"b: {{says: B, place: '1', paper: x, expect: {{gone: 'knee_users >= 3', {SWEEP}: 'knee_users >= 3'}}}}\n"
    )
    kept = {("a", "gone", "knee_users >= 3"): Said(Judged.DIFFERS, "2 [1, 2.9]")}
    one, two = claims.judge(claims.read(tmp_path / "claims.yaml"), demo, kept)
    assert (one.judged, two.judged) == (Judged.DIFFERS, Judged.UNDECIDED)
    own = kept | {("b", "gone", "knee_users >= 3"): Said(Judged.DIFFERS, "1 [0.5, 1.1]", 2)}
    assert claims.judge(claims.read(tmp_path / "claims.yaml"), demo, own)[1].judged is Judged.DIFFERS


def test_a_claim_that_has_got_more_parts_judges_anew_what_was_kept_of_it(demo, tmp_path):
    """The file of outcomes says as one of how many parts each was judged."""
    file, outcomes = tmp_path / "claims.yaml", tmp_path / "outcomes.csv"
    claim = "a: {says: A, place: '1', paper: x, expect: {gone: 'knee_users >= 3'MORE}}\n"
    kept = {("a", "gone", "knee_users >= 3"): Said(Judged.DIFFERS, "2 [1, 2.9]")}

    def judged(more: str, kept: dict) -> Claim:
        file.write_text(claim.replace("MORE", more))
        (found,) = claims.judge(claims.read(file), demo, kept)
        claims.write_parts([found], outcomes)
        return found

    assert judged("", kept).judged is Judged.DIFFERS
    assert claims.read_parts(outcomes) == kept
    later = judged(f", {SWEEP}: 'knee_users >= 3'", claims.read_parts(outcomes))
    assert later.found[0] == (
        Judged.UNDECIDED,
        "2 [1, 2.9]; differs by itself, and as one of 2 parts it may by chance",
    )
    assert {said.parts for said in claims.read_parts(outcomes).values()} == {2}


@pytest.mark.parametrize(("line", "parts"), [("a,gone,x >= 3,differs,2", 1), ("a,gone,x >= 3,differs,2,7", 7)])
def test_outcomes_that_do_not_say_of_how_many_parts_were_judged_each_by_itself(tmp_path, line, parts):
    file = tmp_path / "outcomes.csv"
    names = claims.PART_COLUMNS[: line.count(",") + 1]
    file.write_text(f"{','.join(names)}\n{line}\n")
    assert claims.read_parts(file) == {("a", "gone", "x >= 3"): Said(Judged.DIFFERS, "2", parts)}
    file.write_text(f"{','.join(claims.PART_COLUMNS)}\n{line[: line.rindex(',')]}\n")
    with pytest.raises(DataError, match=r"outcomes.csv, line 2: "):
        claims.read_parts(file)


def test_of_how_many_trials_a_side_is_is_kept(tmp_path):
    settings = dict.fromkeys(SETTINGS, "1")
    known = {
        ("a", "cores(web)"): Operand(Quantity(0.5, 0.4, 0.6, freedom=2.0), settings, "2026-01-02"),
        ("a", "saturation(db cpu)"): Operand(Quantity(0.5, 0.4, 0.6, freedom=2.0, most=1.0), settings, "2026-01-02"),
    }
    write_operands(known, tmp_path / "operands.csv")
    assert read_operands(tmp_path / "operands.csv") == known
