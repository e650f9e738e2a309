"""The same users on one client and on two: same checks, same store, same verdict."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zstandard
from ntier_analysis.contracts import Manifest, implied
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.store.tables import read_table
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import validate
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from synthetic import Spec, Truth, entry, write_trial

LOADS = (400, 800, 1000)
FIRST = 37  # of client2; uneven on purpose


def table(path: Path) -> pd.DataFrame:
    raw = path.read_bytes()
    text = zstandard.ZstdDecompressor().decompress(raw) if path.suffix == ".zst" else raw
    return pd.read_csv(io.BytesIO(text), dtype=str, keep_default_na=False)


def write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = frame.to_csv(index=False).encode()
    path.write_bytes(zstandard.ZstdCompressor().compress(text) if path.suffix == ".zst" else text)


def share_out(folder: Path) -> None:
    """Users from FIRST on move to client2, which has its own numbers from 1 in JMeter's file, as a real one has."""
    one, two = folder / "clients/client1", folder / "clients/client2"
    jtl = table(one / "interactions.jtl.csv.zst")
    number = jtl["threadName"].str.rpartition("-")[2].astype(int) - 1
    beats = table(one / "progress.csv")
    at = 1000 * beats["t_s"].astype(float).to_numpy()
    for to, mine in ((one, number < FIRST), (two, number >= FIRST)):
        first = 0 if to == one else FIRST
        done = np.sort((jtl["timeStamp"].astype(int) + jtl["elapsed"].astype(int))[mine])
        counts = np.searchsorted(done, at, side="right")
        write(jtl[mine].assign(threadName="Users 1-" + (number[mine] - first + 1).astype(str)),
              to / "interactions.jtl.csv.zst")  # fmt: skip
        write(beats.assign(completed=counts, content_checked=counts), to / "progress.csv")
        (to / "driver.json").write_text(json.dumps({"first_worker": first}))
    for name in ("thinks.csv.zst", "users.csv"):
        rows = table(one / name)
        mine = rows["user"].astype(int) < FIRST
        write(rows[~mine], two / name)
        write(rows[mine], one / name)
    for name in ("gc.log", "driver_cpu.csv"):
        shutil.copy(one / name, two)
    shutil.copytree(folder / "nodes/client1", folder / "nodes/client2")
    m = Manifest.read(folder)
    client = next(n for n in m.nodes if n.name == "client1")
    second = client.model_copy(update={"name": "client2", "index": 2, "address": "198.18.0.20"})
    for known in (m.clock_offsets_s, m.collectors):
        known["client2"] = known["client1"]
    readback = [r | {"node": "client2"} for r in m.quota_readback if r["node"] == "client1"]
    m.model_copy(update={"nodes": [*m.nodes, second], "quota_readback": [*m.quota_readback, *readback]}).write(folder)


@pytest.fixture(scope="module")
def sides(made_once) -> list[Path]:
    """Stores of the same users on one client and on two; raw trials are beside them."""
    whole = made_once("two-clients", make_sides)
    return [whole / str(clients) for clients in (1, 2)]


def make_sides(whole: Path) -> None:
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
    for clients in (1, 2):
        place = whole / str(clients)
        for users in LOADS:
            if clients == 1:
                folder = write_trial(place / "raw", Spec(users, truth, phases=(20.0, 40.0, 5.0), seal=False))
            else:
                one = next(whole.glob(f"1/raw/*/u{users:05d}.r01"))
                folder = shutil.copytree(one, place / one.relative_to(whole / "1"))
                share_out(folder)
            m = Manifest.read(folder)
            files = [entry(folder, p) for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "manifest.json"]
            m.model_copy(update={"system": implied.system(users), "files": files}).write(folder)
        ingest_sweep(folder.parent, place / "store")


@pytest.mark.parametrize("users", LOADS)
def test_checks_find_the_same(sides, users):
    one, two = (
        {c.id: c for c in validate(RawTrial(next(side.glob(f"raw/*/u{users:05d}.r01")))).checks} for side in sides
    )
    assert {k: c.outcome for k, c in one.items()} == {k: c.outcome for k, c in two.items()}
    for total in ("G1", "G4", "E1", "E2"):  # of all users together
        assert (two[total].value, two[total].n) == (pytest.approx(one[total].value), one[total].n), total


def test_the_store_has_the_same_interactions_and_the_same_sums(sides):
    tables = [read_table(side / "store", "trials").sort_values("trial") for side in sides]
    assert len(tables[0]) == len(LOADS)
    for column in ("interactions", "errors", "pending", "throughput_per_s", "response_time_p95_ms", "think_measured_s"):
        one, two = (t[column].to_numpy(float) for t in tables)
        assert two == pytest.approx(one, nan_ok=True), column
    columns = ["trial", "t_s", "response_time_ms"]
    one, two = (read_table(side / "store", "interactions")[columns].sort_values(columns) for side in sides)
    assert one.reset_index(drop=True).equals(two.reset_index(drop=True))


def test_the_verdict_is_the_same(sides):
    one, two = (as_json(verdicts(side / "store", [])[0]) for side in sides)
    assert (one["verdict"], [b["nodes"] for b in one["bottlenecks"]]) == ("single", [["db1"]])
    for key in ("verdict", "bottlenecks", "max_throughput_per_s", "max_throughput_interval", "knee_users"):
        assert two[key] == one[key], key


def lagging(client: Path) -> None:
    """60 ms a think; with the thinks of the other client the mean would be within the limit of 35 ms."""
    thinks = table(client / "thinks.csv.zst")
    late = thinks["actual_ms"].astype(float) + 60
    write(thinks.assign(actual_ms=late.map("{:.3f}".format)), client / "thinks.csv.zst")


def pausing(client: Path) -> None:
    with (client / "gc.log").open("a") as log:
        t_ms = 1000 * RawTrial(client.parents[1]).run[0] + 5000
        log.write(f"[{t_ms:.0f}ms] GC(9) Pause Full 250.000ms\n")


@pytest.mark.parametrize(("fault", "check"), [(lagging, "G2"), (pausing, "G3.gc")])
def test_a_client_that_fails_does_not_hide_behind_the_other(sides, tmp_path, fault, check):
    folder = shutil.copytree(next(sides[1].glob("raw/*/u00800.r01")), tmp_path / "trial")
    fault(folder / "clients/client2")
    found = validate(RawTrial(folder))
    assert next(c for c in found.checks if c.id == check).outcome == "fail"
    assert not found.valid
