"""Are the readings of all collectors there, at their interval?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import zstandard
from checked import Checks
from ntier_analysis.contracts import Outcome
from synthetic import Spec, Truth, write_trial

SPEC = Spec(600, Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012}), phases=(20.0, 100.0, 5.0))
SPEC = replace(SPEC, seal=False)


def checks(folder: Path):
    return Checks(folder)


def read_at(folder: Path, intervals: np.ndarray) -> None:
    """db1's sysstat as sadc leaves it that reads at such intervals: stamps and lengths in whole seconds."""
    path = folder / "nodes/db1/sysstat.json.zst"
    document = json.loads(zstandard.ZstdDecompressor().decompress(path.read_bytes()))
    host = document["sysstat"]["hosts"][0]
    records = host["statistics"]
    first = datetime.fromisoformat("{date}T{time}+00:00".format(**records[0]["timestamp"])).timestamp()
    last = first + len(records) - 1
    ends = first + 0.5 + np.cumsum(np.resize(intervals, 2 * len(records)))
    kept = []
    for record, end, length in zip(records, ends[ends < last + 0.5], np.resize(intervals, len(ends)), strict=False):
        moment = datetime.fromtimestamp(end, UTC)
        stamp = {"date": f"{moment:%Y-%m-%d}", "time": f"{moment:%H:%M:%S}", "interval": round(length)}
        kept.append(record | {"timestamp": record["timestamp"] | stamp})
    host["statistics"] = kept
    path.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(document).encode()))


@pytest.mark.parametrize(
    ("intervals", "failed"),
    [
        ([1.0], set()),
        ([1.03], set()),  # each reading puts off the next one
        ([*[1.0] * 20, 2.0], {"C1"}),  # one in 22 s left out
        ([*[1.0] * 20, 3.0], {"C1", "C1.gap", "C2"}),
        ([1.0, 1.0, 1.0, 1.45], {"C2"}),  # the median is right
        ([1.08], {"C2"}),
    ],
)
def test_readings_that_come_later_are_there_and_those_left_out_are_not(tmp_path, intervals, failed):
    folder = write_trial(tmp_path, SPEC)
    read_at(folder, np.array(intervals))
    by_id = checks(folder)
    found = {id_ for id_ in ("C1", "C1.gap", "C2") if by_id[id_].outcome is Outcome.FAIL}
    assert found == failed, {id_: by_id[id_].detail for id_ in ("C1", "C1.gap", "C2")}
    assert all("sysstat of db1" in by_id[id_].detail for id_ in failed)
