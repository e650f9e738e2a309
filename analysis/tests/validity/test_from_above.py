"""Trials that came from above: who must be gone, what the checks allow, and that nothing pools them with the others."""

from dataclasses import replace

import orjson
import pandas as pd
import pytest
from checked import Checks
from ntier_analysis import Store
from ntier_analysis.contracts import Manifest, Outcome
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.recovery import AWAY, BACK, LATE, ONCE, UNDECIDED, recoveries, sentences, warnings
from ntier_analysis.report import summary
from ntier_analysis.report.data import read_sweep
from ntier_analysis.store.tables import read_table
from ntier_analysis.trial import RawTrial
from synthetic import T0, Spec, Truth, write_trial

TRUTH = Truth({"web": 0.001, "app": 0.001, "middleware": 0.001, "db": 0.004})
PHASES = (20.0, 30.0, 2.0)
USERS, ABOVE = 500, 4000  # at scale 0.1: 50 and 400 real ones; the database serves 25/s, which 175 users ask for
TRIAL = Spec(USERS, TRUTH, PHASES, above=ABOVE)


def checks(folder):
    return Checks(folder)


def test_users_who_left_in_time_break_no_check(tmp_path):
    trial = RawTrial(write_trial(tmp_path, TRIAL))
    found = checks(trial.folder)
    assert trial.manifest.leavers == 350
    assert trial.taken_along > 50, "nobody took a request along: nothing is tested"
    said = "50 of 50 users, whole run; 350 of 350 left before it, and 400 were there when the first one left"
    assert (found["G4"].outcome, found["G4"].detail) == (Outcome.PASS, said)
    for name in ("G1", "G2", "G4", "C5"):
        assert found[name].outcome is Outcome.PASS, found[name]


def test_users_who_are_still_there_when_the_run_begins_make_it_invalid(tmp_path):
    found = checks(write_trial(tmp_path, replace(TRIAL, leave_s=21.0)))
    assert (found["G4"].outcome, found["G4"].reason) == (Outcome.FAIL, "users_stayed")
    assert "350 users who should have left stayed on" in found["G4"].detail


def without(folder, keep):
    """users.csv of the trial with the lines that are to be kept."""
    file = folder / "clients/client1/users.csv"
    head, *lines = file.read_text().splitlines()
    file.write_text("\n".join([head, *filter(keep, lines)]) + "\n")
    return folder


def test_users_who_never_came_make_it_invalid(tmp_path):
    """As with a driver that did not listen: the system never had as many as the manifest says."""
    found = checks(without(write_trial(tmp_path, TRIAL), lambda line: int(line.split(",")[0]) < 50))
    assert (found["G4"].outcome, found["G4"].reason) == (Outcome.FAIL, "users_missing")
    assert "0 of 350 left before it" in found["G4"].detail


def test_users_who_came_when_the_others_had_left_make_it_invalid(tmp_path):
    folder = write_trial(tmp_path, TRIAL)
    file = folder / "clients/client1/users.csv"
    late = f"399,{1000 * (T0 + 11):.0f},{1000 * (T0 + 12):.0f},,,0"
    lines = [late if line.startswith("399,") else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")
    found = checks(folder)
    assert (found["G4"].outcome, found["G4"].reason) == (Outcome.FAIL, "users_missing")
    assert "350 of 350 left before it, and 399 were there" in found["G4"].detail


def test_pages_that_nobody_waits_for_are_no_excuse_in_another_trial(tmp_path):
    """Sixty logos that no user asked for: in a trial from above they may be of those who left, else not."""
    for above, outcome in ((ABOVE, Outcome.PASS), (None, Outcome.FAIL)):
        folder = write_trial(tmp_path / str(above), replace(TRIAL, above=above))
        file = folder / "nodes/web1/logs/access.log.zst"
        import zstandard

        text = zstandard.ZstdDecompressor().decompress(file.read_bytes()).decode()
        text += "".join(f'{T0 + 25 + n / 10:.3f} 100 200 900 - "GET /rubbos/logo.gif HTTP/1.1"\n' for n in range(60))
        file.write_bytes(zstandard.ZstdCompressor().compress(text.encode()))
        assert (found := checks(folder)["C5"]).outcome is outcome, found


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two loads after a reset, and from above; the higher one's trial from above is not valid."""
    results = tmp_path_factory.mktemp("results")
    number = 0
    for users in (200, USERS):
        for above in (None, ABOVE):
            leave_s = 21.0 if above and users == USERS else None
            spec = replace(TRIAL, users=users, above=above, leave_s=leave_s, start_s=T0 + 100 * number)
            write_trial(results / "raw", spec)
            number += 1
    made = ingest_sweep(results / "raw" / TRIAL.sweep, results / "store")
    return made, results / "store"


def test_the_store_keeps_them_apart(stored):
    made, store = stored
    assert made.trials == 4
    usual = {"u00200.r01", "u00500.r01"}
    assert set(read_table(store, "trials", TRIAL.sweep)["trial"]) == usual
    for table in ("samples", "interactions", "saturation", "nodes", "thinks", "checks"):
        assert set(read_table(store, table, TRIAL.sweep)["trial"]) <= usual, table
    found = read_table(store, "from_above", TRIAL.sweep).set_index("trial")
    assert list(found.index) == ["u00200.above04000.r01", "u00500.above04000.r01"]
    assert found[["users", "above", "users_real", "above_real"]].to_numpy().tolist() == [
        [200, 4000, 20, 400],
        [500, 4000, 50, 400],
    ]
    assert "users_stayed" in found["invalid_reasons"].iloc[1]
    raw = RawTrial(store.parent / "raw" / TRIAL.sweep / found.index[0])
    done = raw.interactions.loc[raw.interactions["ok"], "t_s"].between(raw.run[0] + 15, raw.run[1], inclusive="left")
    assert found["late_throughput_per_s"].iloc[0] == pytest.approx(done.sum() / 15)
    assert ingest_sweep(store.parent / "raw" / TRIAL.sweep, store).unchanged


def test_the_report_says_both(stored):
    _, store = stored
    data = read_sweep(store, TRIAL.sweep)
    report = summary.summary(data)
    assert [(r["users"], r["above"]) for r in report["recovery"]] == [(200, 4000), (500, 4000)]
    assert report["recovery"][1]["ratio"] is None
    assert "users_stayed" in report["recovery"][1]["basis"]
    assert len(report["trials"]) == 2
    text = summary.text(report | {"report": "x"})
    assert "interactions/s after a reset" in text
    assert "from above" in text
    assert "INVALID and not compared: u00500.above04000.r01 (" in text
    rows = Store(store).sweep(TRIAL.sweep).recovery
    assert rows["users"].tolist() == [200, 500]


def test_a_manifest_of_before_has_nobody_who_left(tmp_path):
    folder = write_trial(tmp_path, replace(TRIAL, above=None))
    file = folder / "manifest.json"
    told = orjson.loads(file.read_bytes())
    assert told.pop("above") is told.pop("above_real") is None
    file.write_bytes(orjson.dumps(told))
    assert Manifest.read(folder).leavers == 0
    for wrong, said in (({"above": 400, "above_real": 40}, "more than users"), ({"above": 4000}, "both or neither")):
        file.write_bytes(orjson.dumps(told | wrong))
        with pytest.raises(DataError, match=said):
            Manifest.read(folder)


# ---- the comparison ------------------------------------------------------------------------------------------------


def rows(rates, users=2000, above=None, reach=0.05, first_s=0.0, valid=True):
    """One trial for each throughput, by repetition; each is known to +-`reach`."""
    table = [
        {"trial": f"u{users}.r{rep}", "users": users, "above": above, "rep": rep, "valid": valid, "throughput_per_s": x,
         "throughput_low_per_s": x * (1 - reach), "throughput_high_per_s": x * (1 + reach),
         "run_start_s": 1000.0 * rep + first_s, "run_end_s": 1000.0 * rep + first_s + 40,
         "invalid_reasons": "" if valid else "errors", "failure": ""}
        for rep, x in enumerate(rates, 1)
    ]  # fmt: skip
    return pd.DataFrame(table)


def judged(reset, above, **options):
    (found,) = recoveries(rows(reset), rows(above, above=8000, **({"first_s": 60.0} | options)))
    return found


@pytest.mark.parametrize(
    ("reset", "above", "outcome", "basis"),
    [
        ([100], [31], AWAY, "batches of one trial each"),
        ([100], [75], UNDECIDED, "batches of one trial each"),  # one pair: trials of a busy machine differ as much
        ([100], [95], UNDECIDED, "batches of one trial each"),
        ([100], [98], ONCE, "batches of one trial each"),
        ([100, 102, 99], [75, 77, 76], AWAY, "3 repetitions, in turns"),
        ([100, 102, 99], [75, 120, 40], UNDECIDED, "3 repetitions, in turns"),
        ([100, 102, 99], [98, 101, 99], BACK, "3 repetitions, in turns"),
        ([100, 102, 99], [88, 90, 87], UNDECIDED, "3 repetitions, in turns"),  # the interval excludes 1, not the margin
    ],
)
def test_outcomes(reset, above, outcome, basis):
    found = judged(reset, above)
    assert (found.outcome, found.basis) == (outcome, basis), found


@pytest.mark.parametrize(
    ("above", "late", "outcome"),
    [
        ([70, 72, 69], [100, 102, 98], LATE),  # the mean of the run has seconds of an old queue
        ([92, 70, 88], [100, 102, 98], LATE),
        ([31, 32, 30], [40, 41, 42], AWAY),
        ([70, 72, 69], [100, 60, 130], AWAY),  # what the second half is worth is not known
        ([98, 101, 99], [80, 81, 79], BACK),  # the whole run decides where it can
        ([60], [100], UNDECIDED),  # of one pair neither is said
    ],
)
def test_who_is_back_in_the_second_half_of_the_run_comes_back_late(above, late, outcome):
    reset, came = rows([100, 102, 99][: len(above)]), rows(above, above=8000, first_s=60.0)
    half = {"late_throughput_per_s": late, "late_throughput_high_per_s": [1.08 * x for x in late]}
    (found,) = recoveries(reset, came.assign(**half))
    assert found.outcome == outcome, found
    (said,) = sentences([found], "1/1/1/1M")
    assert said.startswith("1/1/1/1M comes back late at 2,000 users after 8,000: 0.") == (outcome == LATE)
    assert ("in the second half of the run " in found.basis) == (outcome == LATE or len(above) == 1)


def test_of_several_loads_each_outcome_has_its_own_clause():
    reset = pd.concat([rows([50, 51, 50], 1000), rows([100, 102, 99])])
    late = {"late_throughput_per_s": [50, 51, 50], "late_throughput_high_per_s": [53, 54, 53]}
    came = [rows([35, 36, 35], 1000, 8000, first_s=60.0).assign(**late), rows([31, 32, 31], 2000, 8000, first_s=60.0)]
    (said,) = sentences(recoveries(reset, pd.concat(came)), "1/1/1/1M")
    assert said.startswith("1/1/1/1M does not come back within a run of 40 s at 2,000 users after 8,000: 0.31 [0.")
    assert "; at 1,000 it comes back late: 0.70 [0." in said
    assert said.endswith("in its second half.")


def test_two_pairs_that_agree_by_chance_are_not_known_better_than_their_trials():
    found = judged([100, 100.01], [80, 80.01], reach=0.2)
    assert found.ratio.high > 0.9
    assert found.outcome == UNDECIDED


def test_repetitions_that_did_not_take_turns_are_not_paired():
    found = judged([100, 102, 99], [31, 33, 30], first_s=10_000.0)
    assert (found.basis, found.outcome) == ("3 repetitions, not in turns", AWAY)


def test_without_a_valid_pair_nothing_is_said_but_why():
    found = judged([100], [31], valid=False)
    assert (found.ratio, found.outcome, found.basis) == (None, UNDECIDED, "no valid trial from above (errors)")
    assert "may come back after 8,000 users or not: that is undecided" in sentences([found], "1/1/1/1M")[0]
    assert sentences([found], "1/1/1/1M")[0].endswith("at 2,000: unknown); no valid trial from above (errors).")
    assert warnings(rows([31], above=8000, valid=False)) == [
        "1 of 1 trial from above is INVALID and not compared: u2000.r1 (errors)."
    ]


def test_the_sentence_names_the_lowest_load_and_the_others():
    reset = pd.concat([rows([50, 51, 50], 1000), rows([100, 102, 99]), rows([110, 112, 109], 4000)])
    came = [rows([50, 51, 50], 1000, 8000, first_s=60.0), rows([31, 32, 31], 2000, 8000, first_s=60.0),
            rows([30, 31, 30], 4000, 8000, first_s=60.0)]  # fmt: skip
    (said,) = sentences(recoveries(reset, pd.concat(came)), "1/1/1/1M")
    assert said.startswith("1/1/1/1M does not come back within a run of 40 s at 2,000 users after 8,000: 0.31 [0.")
    assert "of its throughput, nor at 4,000: 0.27 [" in said
    assert "1,000" not in said


def test_of_one_pair_the_sentence_speaks_of_the_pair():
    (said,) = sentences([judged([100], [98])], "1/1/1/1M")
    assert said.startswith("1/1/1/1M came back at 2,000 users after 8,000, in one pair of trials: 0.98 [0.9")
    assert said.endswith(" of its throughput; repeat it (REPS=3) to know whether it comes back.")
    reset = pd.concat([rows([50, 51, 50], 1000), rows([100])])
    came = [rows([50, 51, 50], 1000, 8000, first_s=60.0), rows([99], 2000, 8000, first_s=60.0)]
    (said,) = sentences(recoveries(reset, pd.concat(came)), "1/1/1/1M")
    assert "came back at each of 2 loads after 8,000 users, in one pair of trials; least at" in said


def test_who_has_repeated_it_is_not_told_to_repeat_it_as_often():
    (once,) = sentences([judged([100], [80])], "1/1/1/1M")
    assert once.endswith("; repeat them (REPS=3).")
    (often,) = sentences([judged([100, 101, 99], [120, 75, 90])], "1/1/1/1M")
    assert "is undecided" in often
    assert often.endswith("; measure them longer (PHASES=standard) or more often (REPS=6).")


def test_the_sentence_parts_what_comes_back_from_what_is_undecided():
    reset = pd.concat([rows([50, 51, 50], 1000), rows([100])])
    came = [rows([50, 51, 50], 1000, 8000, first_s=60.0), rows([80], 2000, 8000, first_s=60.0)]
    (said,) = sentences(recoveries(reset, pd.concat(came)), "1/1/1/1M")
    assert said.startswith("1/1/1/1M comes back at 1,000 users after 8,000; whether it does at the others is undecided")
    assert "at 2,000: 0.80 [" in said


def test_who_stays_away_is_said_to_do_so_within_the_run_only():
    """What was asked for before may take longer than a run to work off: that is not known to last."""
    (said,) = sentences([judged([100, 102, 99], [31, 33, 30])], "1/1/1/1M")
    assert " within a run of 40 s " in said
    assert said.endswith(" (longer runs, by PHASES=, tell whether it comes back later).")
    old = rows([31, 33, 30], above=8000, first_s=60.0).drop(columns="run_end_s")
    (said,) = sentences(recoveries(rows([100, 102, 99]).drop(columns="run_end_s"), old), "1/1/1/1M")
    assert said.startswith("1/1/1/1M does not come back within the run at 2,000 users after 8,000: 0.31 [0.")
