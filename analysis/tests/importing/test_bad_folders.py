# ruff: noqa: E501 (tables: a line per case)
"""A good import, spoilt in one way at a time: an error that names the place, or a trial that does not count."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import good_import as good
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.importing import import_folder
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts

pytestmark = pytest.mark.whole

PROGRAM = Path(sys.executable).with_name("ntier-analysis")
BASE = good.files()
LAST = BASE["trials"]["trial"].iloc[-1]


def files() -> good.Files:
    return {name: frame.copy() for name, frame in BASE.items()}


def cell(file: str, column: str, value, row: int = 0):
    """Puts a value (as text) into one cell; the column may be new."""

    def change(tables: good.Files) -> None:
        column_ = (
            tables[file][column].astype(object) if column in tables[file] else pd.Series("", index=tables[file].index)
        )
        column_ = column_.astype(object)
        column_.iloc[row] = value
        tables[file][column] = column_

    return change


def column(file: str, name: str, of):
    """Changes a whole column; of: column -> column."""

    def change(tables: good.Files) -> None:
        tables[file][name] = of(tables[file].get(name))

    return change


def without(file: str, name: str):
    return lambda tables: tables.__setitem__(file, tables[file].drop(columns=name))


def scraped_beside(node, every):
    """Each `every`th sample of a node, as if another collector had read it too."""

    def change(f):
        some = f[S][f[S]["node"] == node].iloc[::every].assign(source="node_exporter")
        f[S] = pd.concat([f[S].assign(source="sysstat"), some])

    return change


def scrapes_of(node: str, took_s: float):
    """Each sample of the node's CPU was counted at some time in a scrape of so many seconds."""

    def change(tables: good.Files) -> None:
        samples = tables["samples"]
        told = samples[samples["node"] == node].assign(metric="scrape_s", value=took_s)
        tables["samples"] = pd.concat([samples, told], ignore_index=True)

    return change


def rows(file: str, keep):
    return lambda tables: tables.__setitem__(file, tables[file][keep(tables[file])])


def of_node(node: str, column_: str, of):
    """Changes a column of one node's samples."""

    def change(tables: good.Files) -> None:
        frame = tables["samples"]
        frame[column_] = frame[column_].where(frame["node"] != node, of(frame[column_]))

    return change


def both(*changes):
    return lambda tables: [change(tables) for change in changes]


T, S, I = "trials", "samples", "interactions"  # noqa: E741
NOT_NUMBERS = ["many", "1,5", "1_000", "0x10", "--", "NULL", "1 000", "12s", "½"]

ERRORS = [
    # ---- trials.csv: numbers
    *[(cell(T, "users", v), r"trials.csv:2: users is .*, expected a whole number") for v in [*NOT_NUMBERS[:6], "400.5"]],
    *[(cell(T, "throughput_per_s", v), r"trials.csv:2: throughput_per_s is .*, expected a number") for v in NOT_NUMBERS],
    *[
        (cell(T, c, v, 1), rf"trials.csv:3: {c} is {said}, expected")
        for c in ("users", "throughput_per_s", "response_time_mean_ms", "run_start_s")
        for v, said in (("-5", "-5.*"), ("inf", "inf|inf.*"), ("-inf", "-inf|-inf.*"))
    ],
    *[(cell(T, "users", v), rf"trials.csv:2: users is {s}") for v, s in (("0", "0"), ("", "empty"), ("nan", "empty"))],
    *[(cell(T, "scale", v), r"trials.csv:2: scale is .*, expected a number > 0") for v in ("0", "-1", "inf")],
    *[(column(T, "think_time_s", lambda c, v=v: v), r"think_time_s is .*, expected a number >= 0") for v in (-7, np.inf)],
    (cell(T, "rep", "0"), "trials.csv:2: rep is 0, expected a whole number >= 1"),
    (cell(T, "slo_ms", "-1"), "trials.csv:2: slo_ms is -1.0, expected a number > 0"),
    (cell(T, "errors", "-3"), "trials.csv:2: errors is -3, expected a number >= 0"),
    (cell(T, "throughput_per_s", ""), "trials.csv:2: throughput_per_s is empty"),
    (cell(T, "run_start_s", ""), "trials.csv:2: run_start_s is empty"),
    # ---- trials.csv: times
    (cell(T, "run_end_s", good.T0 - 1), "trials.csv:2: run_end_s is 1789999999.0, expected more than run_start_s"),
    (cell(T, "run_end_s", good.T0), "trials.csv:2: run_end_s is .*, expected more than run_start_s"),
    (column(T, "run_end_s", lambda c: c * 1000), r"run_end_s is .*divide milliseconds by 1000"),
    (cell(T, "run_end_s", "9e10"), "run_end_s is 90000000000.0, expected at most 1e.06 s after run_start_s"),
    (cell(T, "users", "1e300"), "trials.csv:2: users is 1e.300, expected a whole number"),
    (cell(T, "run_start_s", "2026-11-01T10:00:00"), "run_start_s is '2026-11-01T10:00:00', expected a number"),
    # ---- trials.csv: what contradicts itself
    (cell(T, "users_real", "7"), "trials.csv:2: users_real is 7, expected users x scale = 200"),
    (cell(T, "goodput_per_s", "500"), "goodput_per_s is 500.0, expected at most throughput_per_s"),
    (both(cell(T, "response_time_p50_ms", "9"), cell(T, "response_time_p95_ms", "5")), "p50_ms is 9.0, expected at most"),
    (both(cell(T, "response_time_p95_ms", "9"), cell(T, "response_time_p99_ms", "5")), "p95_ms is 9.0, expected at most"),
    (cell(T, "throughput_low_per_s", "999"), "throughput_low_per_s is 999.0, expected at most throughput_per_s"),
    (cell(T, "throughput_high_per_s", "1"), "throughput_per_s is .*, expected at most throughput_high_per_s"),
    (cell(T, "topology", "1/2/1/1M", 1), "trials.csv:3: topology is '1/2/1/1M', expected '1/1/1/1M' as in the sweep's"),
    (cell(T, "think_time_s", "5", 1), "trials.csv:3: think_time_s is '5.0', expected '7.0' as in the sweep's"),
    (column(T, "scale", lambda c: [1, 1, 0.5]), "trials.csv:4: scale is '0.5', expected '1.0' as in the sweep's"),
    (column(T, "mix", lambda c: ["a", "b", "a"]), "trials.csv:3: mix is 'b', expected 'a' as in the sweep's"),
    # ---- trials.csv: names
    *[(column(T, "sweep", lambda c, v=v: v), r"trials.csv:2: sweep is .*, expected letters") for v in ("a/b", "../x", "")],
    (cell(T, "trial", ""), "trials.csv:2: trial is empty, expected a name"),
    (cell(T, "trial", "a/b"), "samples.csv:2: trial 'u00200' of sweep 's' is not in trials.csv"),
    (cell(T, "topology", ""), "trials.csv:2: topology is empty"),
    (cell(T, "trial", LAST), f"trials.csv:4: s {LAST} is repeated"),
    (cell(T, "valid", "maybe"), "trials.csv:2: valid is 'maybe', expected true or false"),
    (cell(T, "state", "done"), "trials.csv:2: state is 'done', expected planned, running, collected or failed"),
    (column(T, "tiers", lambda c: "web,app"), "tiers is 'web,app' in sweep s, expected each tier .*middleware, db"),
    (column(T, "tiers", lambda c: "web,app,middleware,db,db"), "expected each tier of samples.csv once"),
    *[(without(T, c), rf"trials.csv:1: column '{c}' is missing") for c in ("sweep", "users", "run_end_s", "topology")],
    (rows(T, lambda f: f["users"] < 0), "trials.csv: a header and no rows"),
    (rows(T, lambda f: f["trial"] != LAST), rf"samples.csv:\d+: trial '{LAST}' of sweep 's' is not in trials.csv"),
    # ---- samples.csv
    *[(cell(S, "value", v, 9), r"samples.csv:11: value is .*, expected a number") for v in NOT_NUMBERS],
    *[(cell(S, "value", v, 9), r"samples.csv:11: value is -?inf, expected a finite number") for v in ("inf", "-inf", "1e999")],
    (cell(S, "value", "-1", 9), "samples.csv:11: value is -1.0, expected a number >= 0"),
    *[(cell(S, "t_s", v, 9), r"samples.csv:11: t_s is (empty|-5.0|inf), expected seconds") for v in ("", "-5", "inf")],
    (column(S, "t_s", lambda c: c * 1000), r"samples.csv:2: t_s is .*divide milliseconds by 1000"),
    *[(cell(S, c, "", 9), rf"samples.csv:11: {c} is empty") for c in ("node", "tier", "metric", "resource")],
    (cell(S, "trial", "", 9), "samples.csv:11: trial '' of sweep 's' is not in trials.csv"),
    (cell(S, "sweep", "other", 9), "samples.csv:11: trial .* of sweep 'other' is not in trials.csv"),
    (cell(S, "tier", "app", 9), "samples.csv:11: tier is 'app', expected one tier per node; web1 has another"),
    *[(cell(S, "resource", v, 9), rf"samples.csv:11: resource is '{v}', expected one of cpu, disk") for v in ("CPU", "gpu")],
    (column(S, "metric", lambda c: "cpu_util"), "samples.csv:2: metric is 'cpu_util'; a utilization in percent is named"),
    (column(S, "metric", lambda c: "Utilization_pct"), "metric is 'Utilization_pct'; a utilization in percent is named"),
    (column(S, "unit", lambda c: "share"), "samples.csv:2: unit is 'share', expected 'pct'"),
    (column(S, "value", lambda c: c / 100), r"samples.csv:\d+: .*looks like a share of 1: multiply by 100"),
    (column(S, "value", lambda c: (c / 100).round(2)), "looks like a share of 1: multiply by 100"),
    (column(S, "phase", lambda c: "run " + c if c is not None else "rampup"), "samples.csv:2: phase is 'rampup'"),
    (column(S, "phase", lambda c: "outside"), "samples.csv:2: phase is 'outside', but t_s is .* and the run is"),
    (cell(S, "interval_s", "-1", 9), "samples.csv:11: interval_s is -1.0, expected a number > 0"),
    (lambda f: f.__setitem__(S, pd.concat([f[S], f[S].iloc[[5]]])), r"samples.csv:902: s u00200 web1 .* is repeated"),
    *[(without(S, c), rf"samples.csv:1: column '{c}' is missing") for c in ("t_s", "node", "tier", "value", "metric")],
    (rows(S, lambda f: f["value"] < -1), "samples.csv: a header and no rows"),
    # ---- interactions.csv
    *[(cell(I, "response_time_ms", v), r"interactions.csv:2: response_time_ms is .*, expected") for v in ("-1", "inf", "x")],
    *[(cell(I, "t_s", v), r"interactions.csv:2: t_s is .*, expected") for v in ("", "-1", "soon", "1790000000000")],
    (cell(I, "ok", "perhaps"), "interactions.csv:2: ok is 'perhaps', expected true or false"),
    (cell(I, "interaction", ""), "interactions.csv:2: interaction is empty"),
    (cell(I, "trial", "u9"), "interactions.csv:2: trial 'u9' of sweep 's' is not in trials.csv"),
    (cell(I, "bytes", "-4"), "interactions.csv:2: bytes is -4, expected a number >= 0"),
    (without(I, "interaction"), "interactions.csv:1: column 'interaction' is missing"),
    (rows(I, lambda f: f["t_s"] < 0), "interactions.csv: a header and no rows"),
]  # fmt: skip

INVALID = [
    # ---- the load: what cannot be told from a wrong system, but does not fit together
    (column(T, "throughput_per_s", lambda c: c * 60), "law", "it fits if throughput_per_s is per minute"),
    (column(T, "throughput_per_s", lambda c: c * 3600), "law", "it fits if throughput_per_s is per hour"),
    (column(T, "throughput_per_s", lambda c: c / 1000), "law", "multiply it by 1,000"),
    (column(T, "response_time_mean_ms", lambda c: c / 1000), "law", "response_time_mean_ms is in seconds"),
    (column(T, "response_time_mean_ms", lambda c: c * 1000), "law", "response_time_mean_ms is in microseconds"),
    (column(T, "think_time_s", lambda c: c * 1000), "law", "think_time_s is in milliseconds"),
    (column(T, "think_time_s", lambda c: c / 60), "law", "think_time_s is in minutes"),
    (column(T, "think_time_s", lambda c: c / 7), "law", "are users, think time and units right?"),
    (without(T, "think_time_s"), "", ""),  # 7 s assumed, and that is said
    (column(T, "users", lambda c: c * 2), "law", "times the 2800 given"),
    (column(T, "users", lambda c: c * 10), "law", ""),
    (column(T, "scale", lambda c: 0.1), "law", ""),
    (column(T, "think_time_s", lambda c: 0.0), "no_think_time", "users who do not think wait at every load"),
    (column(T, "throughput_per_s", lambda c: 0.0), "no_throughput", "throughput is 0/s"),
    (column(T, "response_time_mean_ms", lambda c: 0.0), "response_time_unit", "less than any page takes"),
    (column(T, "response_time_mean_ms", lambda c: ""), "no_throughput", "response_time_mean_ms is empty"),
    (column(T, "errors", lambda c: 900), "errors", "900 of"),
    (column(T, "valid", lambda c: False), "as imported", ""),
    (column(T, "state", lambda c: "failed"), "as imported", ""),
    (column(T, "topology", lambda c: "1/1/1/0M"), "topology", "1 db for 0"),
    # ---- samples
    (rows(S, lambda f: f["tier"] == "client"), "too_few_samples", "no CPU utilization .* of any server"),
    (column(S, "metric", lambda c: "busy_pct"), "too_few_samples", "no CPU utilization"),
    (column(S, "resource", lambda c: "disk"), "too_few_samples", "no CPU utilization"),
    (rows(S, lambda f: f.groupby(["trial", "node"]).cumcount() % 30 == 5), "too_few_samples", "has 2 samples"),
    (rows(S, lambda f: (f["node"] != "db1") | (f.groupby(["trial", "node"]).cumcount() < 2)), "too_few_samples", "db1 cpu has 2"),
    (column(S, "t_s", lambda c: c + 500), "too_few_samples", r"has 0 samples of .* in the run phase \(60 in all\)"),
    (of_node("db1", "t_s", lambda c: c - 3600), "too_few_samples", "db1 cpu has 0 samples"),
    (of_node("db1", "t_s", lambda c: c + 30), "gaps", "db1 cpu has none for"),
    (rows(S, lambda f: (f["node"] != "app1") | (f.groupby(["trial", "node"]).cumcount() % 40 > 12)), "gaps", "app1 cpu has none"),
    (of_node("db1", "value", lambda c: c.mask(np.arange(len(c)) % 60 < 20)), "gaps", "db1 cpu has none for"),
    (scraped_beside("db1", 20), "", ""),  # a second source, of which the verdict takes nothing
    (of_node("db1", "value", lambda c: c * 1.5), "wrong_capacity", "db1 cpu was used 150 %"),
    (of_node("db1", "value", lambda c: c * 8), "wrong_capacity", "percent of the whole node"),
    (column(S, "value", lambda c: c * 1000), "wrong_capacity", "more than it has"),
    (cell(S, "value", "150", 60 * 10 + 240), "wrong_capacity", "150 % in a second"),
    (both(cell(S, "value", "150", 60 * 10 + 240), scrapes_of("client1", 0.3)), "wrong_capacity", "at least 115 % in a second, whenever in its scrape"),
    (both(cell(S, "value", "130", 60 * 10 + 240), scrapes_of("client1", 0.3)), "", ""),
    (both(cell(S, "value", "130", 60 * 10 + 240), scrapes_of("app1", 0.3)), "wrong_capacity", "130 % in a second"),
    (both(of_node("db1", "value", lambda c: c * 1.2), scrapes_of("db1", 0.3)), "wrong_capacity", "% over 10 s"),
    (of_node("db1", "value", lambda c: c / 100), "utilization_unit", "db1 never passes .* looks like a share of 1"),
    (of_node("app1", "value", lambda c: c / 100), "", ""),  # 0.4 %: too small to tell, and no limit in truth
    (of_node("app1", "value", lambda c: pd.Series(np.where(np.arange(len(c)) % 60 == 7, 0.9, 0.1))), "", ""),  # idle
    (of_node("client1", "value", lambda c: c * 0 + 100), "generator_cpu", "client1 was 100 % busy"),
    (both(of_node("client1", "tier", lambda c: "controller"), of_node("client1", "value", lambda c: c * 0 + 85)), "generator_cpu", "85 %"),
    (both(of_node("client1", "tier", lambda c: "host"), of_node("client1", "value", lambda c: c * 0 + 95)), "host_saturated", "95 %"),
    (both(of_node("client1", "tier", lambda c: "host"), of_node("client1", "value", lambda c: c * 0 + 85)), "host_saturated", "85 %"),
]  # fmt: skip

DIFFERING = [
    (rows(I, lambda f: np.arange(len(f)) % 2 == 0), "files_differ", "times as much"),
    (column(I, "response_time_ms", lambda c: c / 2), "files_differ", "trials.csv says 7000 ms"),
    (column(I, "response_time_ms", lambda c: c / 1000), "files_differ", "a factor of 1000 looks like a wrong unit"),
    (column(I, "t_s", lambda c: c - 30), "files_differ", "trials.csv says 100/s"),
    (column(I, "ok", lambda c: [i % 10 > 0 for i in range(len(c))]), "errors", "interactions failed"),
]

TEXTS = [
    # ---- bytes: what an editor or a spreadsheet makes of a file
    ("trials.csv", lambda b: b.replace(b",", b";"), "column 'sweep' is missing; found sweep;trial"),
    ("trials.csv", lambda b: b.decode().encode("utf-16"), "UTF-16, expected UTF-8"),
    ("samples.csv", lambda b: b.decode().encode("utf-16"), "UTF-16, expected UTF-8"),
    ("trials.csv", lambda b: b"", "empty, expected a header"),
    ("trials.csv", lambda b: b"\n\n", "empty, expected a header|column 'sweep' is missing"),
    ("trials.csv", lambda b: b"\x00\x01\x02" * 100, "trials.csv:1: a NUL byte"),
    ("trials.csv", lambda b: b"<html></html>", "column 'sweep' is missing"),
    ("trials.csv", lambda b: b.replace(b"1/1/1/1M", b"\xff\xfe\xfd"), "expected UTF-8"),
    ("trials.csv", lambda b: b.replace(b"users,", b"trial,", 1), "column '.*' (occurs twice|is missing)"),
    ("trials.csv", lambda b: b.replace(b"think_time_s", b"users"), "column 'users' occurs twice"),
    ("trials.csv", lambda b: b.replace(b"1/1/1/1M,", b"1/1/1/1M,,", 1), r"trials.csv:2: \d+ fields, the header has"),
    ("samples.csv", lambda b: b[:-20], r"samples.csv:901: \d fields, the header has 8|value is empty|resource is"),
    ("samples.csv", lambda b: b.replace(b"utilization_pct,", b"utilization_pct,1,", 1), "samples.csv:2: 9 fields"),
    ("samples.csv", lambda b: b.replace(b"\n", b"\n\n", 3).replace(b"cpu", b"gpu", 1), "samples.csv:3: resource is 'gpu'"),
]  # fmt: skip


def test_the_good_import_is_good(tmp_path):
    notices = import_folder(good.write(tmp_path / "f", files()), tmp_path / "store")
    assert "s: 3 trials, 3 valid, 900 samples" in notices
    (verdict,) = verdicts(tmp_path / "store", [])
    assert (verdict.verdict, [(b.tier, b.resource) for b in verdict.bottlenecks]) == ("single", [("db", "cpu")])
    assert any("app1 needs 3.96 ms of its whole CPU per interaction" in said for said in verdict.evidence)  # 4 in truth


def number(rows_: list) -> list:
    return [pytest.param(*row, id=f"{k}: {row[-1][:50]}") for k, row in enumerate(rows_)]


@pytest.mark.parametrize(("change", "message"), number(ERRORS))
def test_what_cannot_be_true_is_an_error_that_names_the_place(tmp_path, change, message):
    tables = files()
    change(tables)
    with pytest.raises(DataError, match=message):
        import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("file", "change", "message"), number(TEXTS))
def test_what_is_no_such_file_is_an_error_that_names_it(tmp_path, file, change, message):
    folder = good.write(tmp_path / "f", files())
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    with pytest.raises(DataError, match=message):
        import_folder(folder, tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("change", "reason", "detail"), number(INVALID))
def test_what_does_not_fit_together_does_not_count(tmp_path, change, reason, detail):
    tables = files()
    del tables[I]
    spoilt(tmp_path, tables, change, reason, detail)


@pytest.mark.parametrize(("change", "reason", "detail"), number(DIFFERING))
def test_files_that_contradict_each_other_do_not_count(tmp_path, change, reason, detail):
    spoilt(tmp_path, files(), change, reason, detail)


def spoilt(folder: Path, tables: good.Files, change, reason: str, detail: str) -> None:
    change(tables)
    notices = import_folder(good.write(folder / "f", tables), folder / "store")
    trials = read_table(folder / "store", "trials").set_index("trial")
    if not reason:
        assert trials["valid"].all()
        return
    assert not trials["valid"][LAST]
    assert reason in trials["invalid_reasons"][LAST].split(", ")
    assert re.search(detail, "\n".join(notices))
    (judged,) = verdicts(folder / "store", [])
    if not trials["valid"].any():
        assert judged.verdict == "unknown"
    assert any(reason in text for text in judged.evidence)


def test_a_byte_order_mark_and_quotes_and_spaces_are_harmless(tmp_path):
    tables = files()
    tables.pop(I)
    folder = good.write(tmp_path / "f", tables)
    path = folder / "trials.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"sweep,trial", b'"sweep", trial'))
    import_folder(folder, tmp_path / "store")
    assert read_table(tmp_path / "store", "trials")["valid"].all()


def test_other_contents_under_an_old_name_must_be_asked_for(tmp_path):
    tables = files()
    tables.pop(I)
    store = tmp_path / "store"
    for _ in range(2):
        import_folder(good.write(tmp_path / "f", tables), store)
    before = {p: p.read_bytes() for p in store.rglob("*.parquet")}
    tables[S]["value"] = tables[S]["value"] * 0.99
    with pytest.raises(DataError, match="sweep s is already stored with other contents; --replace"):
        import_folder(good.write(tmp_path / "f", tables), store)
    assert {p: p.read_bytes() for p in store.rglob("*.parquet")} == before
    import_folder(tmp_path / "f", store, replace=True)
    assert read_table(store, "samples")["value"].max() < 99.5


def test_a_measured_sweep_is_never_replaced(tmp_path):
    from ntier_analysis.demo import SWEEP, unpack

    store = unpack(tmp_path)
    tables = files()
    for frame in tables.values():
        frame["sweep"] = SWEEP
    with pytest.raises(DataError, match="was not made by this import"):
        import_folder(good.write(tmp_path / "f", tables), store, replace=True)


def test_a_trial_of_which_nobody_says_whether_it_is_valid_is_valid(tmp_path):
    tables = files()
    tables[T]["valid"] = ["true", "", "false"]
    import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert read_table(tmp_path / "store", "trials")["valid"].tolist() == [True, True, False]


def test_tiers_of_any_name_are_kept_with_their_order(tmp_path):
    names = {"web": "frontend", "app": "backend", "middleware": "cache", "db": "postgres", "client": "client"}
    tables = files()
    tables.pop(I)
    tables[S]["tier"] = tables[S]["tier"].map(names)
    tables[T]["topology"] = "blue cluster"
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "unordered")
    assert any("the order of the tiers frontend, backend, cache, postgres is unknown" in n for n in notices)
    assert read_table(tmp_path / "unordered", "trials")["tiers"].isna().all()
    tables[T]["tiers"] = "frontend,backend,cache,postgres,archive"
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert "s: nodes without any sample: archive1" in notices
    trials = read_table(tmp_path / "store", "trials")
    assert set(trials["tiers"]) == {"frontend,backend,cache,postgres,archive"}
    assert trials["valid"].all()
    assert set(read_table(tmp_path / "store", "nodes")["tier"]) == {*names.values(), "archive"}
    assert set(read_table(tmp_path / "store", "saturation")["tier"]) == set(names.values())


@pytest.mark.parametrize(
    ("names", "topology", "tiers", "more"),
    [
        ({"middleware": "app", "app": "middleware"}, "1/1/2/1M", "web,middleware,app,db", ["app2"]),
        (
            {"web": "front", "app": "back", "middleware": "cache", "db": "pg"},
            "1/1/1/2",
            "front, back, cache, pg",
            ["pg1"],
        ),
        ({"middleware": "app"}, "1/3/1", "web,app,db", ["app2"]),
        ({"middleware": "app"}, "1/3/1/1", "web,app,db", ["app2", "middleware2"]),
    ],
)
def test_a_topology_counts_the_tiers_in_their_order(tmp_path, names, topology, tiers, more):
    """More nodes than were measured, of the tier that the number is of; app1, middleware1 and db1 are names of some."""
    tables = files()
    tables.pop(I)
    tables[S]["tier"] = tables[S]["tier"].replace(names)
    tables[T] = tables[T].assign(topology=topology, tiers=tiers)
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert f"s: nodes without any sample: {', '.join(more)}" in notices
    assert read_table(tmp_path / "store", "trials")["valid"].all(), notices
    assert not any("the topology against the nodes" in text for text in notices)


def test_more_nodes_than_a_topology_has_are_counted_in_its_order(tmp_path):
    tables = files()
    tables.pop(I)
    tables[S]["tier"] = tables[S]["tier"].replace({"web": "front", "db": "pg"})
    tables[T] = tables[T].assign(topology="1/1/1/0", tiers="front,app,middleware,pg")
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    assert any("INVALID (topology)" in text and "1 pg for 0" in text for text in notices), notices


def test_what_was_not_validated_is_kept(tmp_path):
    tables = files()
    tables.pop(I)
    notices = import_folder(good.write(tmp_path / "f", tables), tmp_path / "store")
    (text,) = read_table(tmp_path / "store", "trials")["not_validated"].unique()
    for part in ("generator lag", "clocks", "the mix", "single interactions", "errors", "the host's CPU"):
        assert part in text
    assert "the client's CPU" not in text
    assert f"s: not validated, because it was measured elsewhere: {text}" in notices
    without(T, "think_time_s")(tables)
    import_folder(good.write(tmp_path / "g", tables), tmp_path / "other")
    assert "the think time (7 s assumed)" in read_table(tmp_path / "other", "trials")["not_validated"].iloc[0]


def test_exit_code_2_and_no_traceback(tmp_path):
    tables = files()
    cell(T, "users", "-5")(tables)
    folder = good.write(tmp_path / "f", tables)
    done = subprocess.run(
        [PROGRAM, "import", folder, "--store", tmp_path / "store"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {folder}/trials.csv:2: users is -5, expected a whole number >= 1\n"
    assert not (tmp_path / "store").exists()
