"""What other programs write: times in whole seconds, CPU time that a hypervisor took, interfaces without a speed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import good_import as good
import ntier_analysis
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.comparison.sweeps import BATCHES_ONLY, compare
from ntier_analysis.importing import import_folder
from ntier_analysis.parsers.generated import in_whole_seconds
from ntier_analysis.parsers.sysstat import sysstat
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from synthetic import sysstat_json

pytestmark = pytest.mark.whole


def judged(folder, tables, said=None):
    notices = import_folder(good.write(folder / "f", tables), folder / "store")
    assert said is None or any(said in notice for notice in notices)
    (verdict,) = verdicts(folder / "store", [])
    return verdict


def test_times_in_whole_seconds_are_no_stops(tmp_path):
    """As in an access log: all that is done in a second is done at its beginning."""
    exact, cut = good.files(), good.files()
    cut["interactions"]["t_s"] = np.floor(cut["interactions"]["t_s"])
    there, here = (
        judged(tmp_path / "exact", exact),
        judged(tmp_path / "cut", cut, "times of 3 trials are whole seconds"),
    )
    assert [load.paused for load, _ in here.trials] == [0.0, 0.0, 0.0]
    assert (here.verdict, here.bottlenecks[0].tier) == (there.verdict, there.bottlenecks[0].tier) == ("single", "db")
    kept = read_table(tmp_path / "cut" / "store", "interactions")["t_s"]
    assert np.array_equal(np.sort(np.floor(kept)), np.sort(cut["interactions"]["t_s"]))


def test_repetitions_that_the_file_does_not_number_are_numbered(tmp_path):
    """By load, in the order of their runs."""
    tables = good.files(interactions=False)
    again = {name: frame.assign(trial=frame["trial"] + "b") for name, frame in tables.items()}
    again["trials"] = again["trials"].assign(run_start_s=lambda t: t["run_start_s"] - 1e5,
                                             run_end_s=lambda t: t["run_end_s"] - 1e5)  # fmt: skip
    again["samples"] = again["samples"].assign(t_s=lambda s: s["t_s"] - 1e5)
    judged(tmp_path, {name: pd.concat([tables[name], again[name]], ignore_index=True) for name in tables})
    reps = read_table(tmp_path / "store", "trials").set_index("trial")["rep"]
    assert {name: reps[name] for name in ("u00200", "u01000", "u00200b", "u01000b")} == {
        "u00200": 2, "u01000": 2, "u00200b": 1, "u01000b": 1,
    }  # fmt: skip


def test_only_times_that_were_cut_are_spread():
    assert in_whole_seconds(np.repeat([10.0, 11.0, 12.0], 5))
    assert not in_whole_seconds(np.array([10.0, 11.0, 12.0, 13.0])), "one each second may be so"
    assert not in_whole_seconds(np.r_[np.repeat([10.0, 11.0], 5), 11.5])


@pytest.mark.parametrize(("stolen_pct", "valid"), [(0.2, True), (12.0, False)])
def test_stolen_time_makes_an_import_invalid(tmp_path, stolen_pct, valid):
    """Its CPU is full, and reads 88 %."""
    tables = good.files()
    mine = tables["samples"][tables["samples"]["node"] == "db1"]
    steal = mine.assign(metric="steal_pct", value=stolen_pct)
    own = mine.assign(value=(mine["value"] - stolen_pct).clip(lower=0))
    others = tables["samples"][tables["samples"]["node"] != "db1"]
    tables["samples"] = pd.concat([others, own, steal], ignore_index=True)
    verdict = judged(tmp_path, tables)
    trials = read_table(tmp_path / "store", "trials")
    assert trials["valid"].all() == valid
    assert (verdict.verdict == "unknown") == (not valid)
    if not valid:
        assert set(trials["invalid_reasons"]) == {"host_robbed"}


@pytest.mark.parametrize(
    ("topology", "verdict"), [("my shop", "unknown"), ("1/1/1/1M", "unknown"), ("1/1/1/0", "hidden")]
)
def test_nothing_is_hidden_in_an_import_that_does_not_say_which_servers_there_are(tmp_path, topology, verdict):
    """The database's CPU limits, and nobody measured it: another company's, say."""
    tables = good.files()
    tables["samples"] = tables["samples"][tables["samples"]["node"] != "db1"]
    tables["trials"]["topology"] = topology
    found = judged(tmp_path, tables)
    assert (found.verdict, found.bottlenecks) == (verdict, [])
    assert any("say which servers the system has" in text for text in found.next) == (topology == "my shop")


@pytest.mark.parametrize(("apart_pct", "valid"), [(0.0, False), (0.1, True)])
def test_one_machine_under_two_names_makes_an_import_invalid(tmp_path, apart_pct, valid):
    """The database's machine is told as the middleware's, too: its CPU would limit in both tiers."""
    tables = good.files()
    samples = tables["samples"]
    mine = samples[samples["node"] == "db1"]
    again = mine.assign(node="middleware1", tier="middleware", value=mine["value"] - apart_pct)
    tables["samples"] = pd.concat([samples[samples["tier"] != "middleware"], again], ignore_index=True)
    verdict = judged(tmp_path, tables)
    trials = read_table(tmp_path / "store", "trials")
    assert trials["valid"].all() == valid
    assert (verdict.verdict == "unknown") == (not valid)
    if not valid:
        assert set(trials["invalid_reasons"]) == {"same_machine"}


@pytest.mark.parametrize(("tier", "idle"), [("middleware", True), ("db", False)])
def test_machines_that_idle_alike_and_a_tier_s_mean_given_to_its_replicas_are_not_one_machine(tmp_path, tier, idle):
    """In whole percents two that idle read 0, and 1 when something starts on both each half minute."""
    tables = good.files()
    samples = tables["samples"]
    mine = samples[samples["node"] == "db1"]
    if idle:
        mine = mine.assign(value=(np.arange(len(mine)) % 30 == 0).astype(float))
    again = mine.assign(node=f"{tier}2", tier=tier)
    tables["samples"] = pd.concat([samples[samples["node"] != "db1"], mine, again], ignore_index=True)
    tables["trials"] = tables["trials"].assign(topology="1/1/1/2M" if tier == "db" else "1/1/2/1M")
    judged(tmp_path, tables)
    trials = read_table(tmp_path / "store", "trials")
    assert not trials["invalid_reasons"].str.contains("same_machine").any()


@pytest.mark.parametrize(
    ("sent_kib", "used_pct", "known"), [(2000.0, 0.0, False), (2000.0, 1.6, True), (5.0, 0.0, True)]
)
def test_an_interface_of_unknown_speed_was_not_measured(tmp_path, sent_kib, used_pct, known):
    """2 MB/s are no 0.00 % of any interface that there is; 5 kB/s may be."""
    document = json.loads(sysstat_json(np.arange(1_790_000_000.0, 1_790_000_005.0), np.full(5, 20.0), "db1"))
    for record in document["sysstat"]["hosts"][0]["statistics"]:
        record["network"]["net-dev"][1] |= {"rxkB": 1.0, "txkB": sent_kib, "ifutil-percent": used_pct}
    (tmp_path / "sysstat.json").write_text(json.dumps(document))
    frame = sysstat(tmp_path / "sysstat.json", own_machine=True)
    network = frame[frame["resource"] == "network"]
    assert ("utilization_pct" in set(network["metric"])) == known
    assert set(network["metric"]) >= {"rx_bytes_per_s", "tx_bytes_per_s"}


def test_trials_of_which_there_are_no_single_interactions_count(tmp_path):
    """One sweep with single requests, one with sums only; and a load that the file of requests lacks."""
    tables = good.files()
    other = {name: frame.assign(sweep="t") for name, frame in good.files(interactions=False).items()}
    done = tables["interactions"]
    tables = {name: pd.concat([tables[name], other[name]], ignore_index=True) for name in other}
    tables["interactions"] = done[done["trial"] != "u00200"]
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials").set_index(["sweep", "trial"])
    assert trials["valid"].all(), notices
    without = trials["not_validated"].str.contains("single interactions")
    assert without.to_dict() == {key: key[0] == "t" or key[1] == "u00200" for key in trials.index}
    assert [v.verdict for v in verdicts(tmp_path / "store", [])] == ["single", "single"]


@pytest.mark.parametrize(("names", "told"), [(24, False), (500, True)])
def test_names_that_carry_numbers_are_told(tmp_path, names, told):
    tables = good.files()
    tables["interactions"]["interaction"] = [f"GET /items/{n % names}" for n in range(len(tables["interactions"]))]
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert any(f"s: {names} names of interactions" in text for text in notices) == told


def test_advice_names_no_variable_of_make(tmp_path):
    """REPS= and PHASES= are of a sweep that Ntier runs. Here two loads beyond the knee differ too much."""
    tables = good.files(interactions=False)
    last = tables["trials"].index[-1]
    tables["trials"].loc[last, ["throughput_per_s", "response_time_mean_ms"]] = 78.0, 1000 * (1400 / 78 - 7)
    verdict = judged(tmp_path, tables)
    assert any(text.startswith("repeat the loads beyond the knee: 2 trials") for text in verdict.next)
    assert not any("REPS=" in text or "PHASES=" in text for text in verdict.next)


def test_each_variable_of_make_in_advice_goes_through_one_function():
    """Which leaves it out for imports. (Trials from above, of recovery.py, are no part of an import.)"""
    source = Path(ntier_analysis.__file__).parent
    lines = [(f.name, line) for f in source.rglob("*.py") for line in f.read_text().splitlines()]
    named = [(f, line) for f, line in lines if re.search(r"\b(REPS|PHASES|USERS)=", line)]
    assert len(named) > 8
    assert [x for x in named if "by_make(" not in x[1] and x[0] not in ("recovery.py", "setting.py")] == []


def test_a_comparison_of_imports_names_no_variable_of_make(tmp_path):
    for sweep in ("before", "after"):
        tables = {name: frame.assign(sweep=sweep) for name, frame in good.files().items()}
        import_folder(good.write(tmp_path / sweep, tables), tmp_path / "store")
    warnings = compare("before", "after", tmp_path / "store").warnings
    assert any(text.endswith("measure both in turn") for text in warnings), warnings
    assert not any("REPS=" in text for text in warnings)


def test_sums_that_differ_at_one_load_are_not_known_to_differ(tmp_path):
    """Their ratio had an interval without a width: no single interactions were ten batches of none."""
    for sweep, times in (("before", 1.0), ("after", 1.01)):
        tables = {name: frame.assign(sweep=sweep) for name, frame in good.files(interactions=False).items()}
        tables["trials"] = tables["trials"].assign(throughput_per_s=times * tables["trials"]["throughput_per_s"])
        import_folder(good.write(tmp_path / sweep, tables), tmp_path / "store")
    found = compare("before", "after", tmp_path / "store")
    rates = [row for row in found.rows if row.metric == "throughput_per_s" and row.basis == BATCHES_ONLY]
    assert rates
    assert all(row.outcome == "undecided" and not np.isfinite(row.ratio.low) for row in rates)
