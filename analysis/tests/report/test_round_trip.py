"""What a report writes can be imported again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import good_import
import pandas as pd
import pytest
from ntier_analysis.importing import import_folder
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.page import write_tables
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts

pytestmark = pytest.mark.whole

PROGRAM = Path(sys.executable).with_name("ntier-analysis")


def command(*arguments) -> str:
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tables_keep_all_digits(report):
    rows = pd.read_csv(report.folder / "tables" / "trials.csv", comment="#").set_index("trial")
    stored = read_table(report.store, "trials", report.sweep).set_index("trial")
    for column in ("run_start_s", "run_end_s", "throughput_per_s", "response_time_mean_ms", "idc"):
        assert rows[column].dropna().to_dict() == stored[column].dropna().to_dict(), column


def test_a_reports_trials_with_their_samples_are_an_import(report, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "trials.csv").write_bytes((report.folder / "tables" / "trials.csv").read_bytes())
    for table in ("samples", "interactions"):
        query = f"SELECT * FROM {table} WHERE sweep = '{report.sweep}'"
        (folder / f"{table}.csv").write_text(command("sql", query, "--csv", "--store", report.store))
    command("import", folder, "--store", tmp_path / "store")
    before, after = (read_table(s, "trials", report.sweep) for s in (report.store, tmp_path / "store"))
    made = ["valid", "invalid_reasons", "not_validated"]
    pd.testing.assert_frame_equal(
        before.drop(columns=made), after.drop(columns=made), check_dtype=False, check_column_type=False
    )
    for table in ("samples", "interactions"):
        pd.testing.assert_frame_equal(
            read_table(report.store, table, report.sweep), read_table(tmp_path / "store", table), check_dtype=False
        )
    ours, theirs = verdicts(report.store, [report.sweep])[0], verdicts(tmp_path / "store", [])[0]
    assert (ours.verdict, ours.kind) == (theirs.verdict, theirs.kind)
    assert [(b.tier, b.resource, b.nodes) for b in ours.bottlenecks] == [
        (b.tier, b.resource, b.nodes) for b in theirs.bottlenecks
    ]


def test_the_trials_of_a_sweep_over_another_factor_are_an_import_too(tmp_path):
    files = good_import.files(interactions=False)
    files["trials"] = files["trials"].assign(factor="sleep_s", factor_unit="s", factor_value=[2.0, 0.5, 0.1])
    import_folder(good_import.write(tmp_path / "in", files), tmp_path / "store")
    tables = tmp_path / "tables"
    write_tables(read_sweep(tmp_path / "store", "s"), tables)
    (tmp_path / "in" / "trials.csv").write_bytes((tables / "trials.csv").read_bytes())
    import_folder(tmp_path / "in", tmp_path / "again")
    before, after = (read_table(tmp_path / name, "trials").set_index("trial") for name in ("store", "again"))
    for column in ("users", "factor_value"):
        assert before[column].to_dict() == after[column].to_dict()
    shares = pd.read_csv(tables / "saturation.csv", comment="#").set_index("trial")["users"]
    assert shares.to_dict() == before["users"].to_dict()
