#!/usr/bin/env python3
"""Makes the data of `ntier-analysis demo`: measured sweeps, thinned, in one archive.

    analysis/bench/thin.py RESULTS:SWEEP ... > analysis/src/ntier_analysis/demo/data.zip

Kept are all tables; of the samples the run phase of what verdicts and figures read, with times to the millisecond and
values to 0.01 (cores to 0.0001); of the raw trials the manifests (without steps and files, and without the place of
the results in their command) and the transition table. Everything else is as measured."""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, to_table, write_parquet
from ntier_analysis.verdict.tables import NEEDED_METRICS

MOMENT = (1980, 1, 1, 0, 0, 0)  # equal data give an equal archive


def table(store: Path, name: str, sweep: str) -> bytes:
    frame = read_table(store, name, sweep)
    if name == "samples":
        frame = samples(frame, read_table(store, "saturation", sweep))
    if name == "interactions":
        frame["bytes"] = None
    target = Path(tempfile.mkdtemp()) / "table.parquet"
    write_parquet(name, to_table(name, frame), target, level=19)
    return target.read_bytes()


def samples(frame: pd.DataFrame, saturation: pd.DataFrame) -> pd.DataFrame:
    kept = frame[(frame["phase"] == "run") & frame["metric"].isin(NEEDED_METRICS) & (frame["tier"] != "host")]
    # of several collectors of one resource, the one that the verdict trusts
    trusted = saturation[["trial", "node", "resource", "item", "source"]].drop_duplicates()
    kept = kept.merge(trusted, on=list(trusted.columns))
    cores = kept["metric"] == "used_cores"
    return kept.assign(t_s=kept["t_s"].round(3), value=kept["value"].round(2).where(~cores, kept["value"].round(4)))


def manifests(raw: Path) -> dict[str, bytes]:
    files = {}
    for path in sorted(raw.glob("*/manifest.json")):
        manifest = json.loads(path.read_bytes()) | {"files": [], "steps": []}
        manifest["command"] = re.sub(r" --results \S+", "", manifest["command"])
        trial = f"raw/{raw.name}/{path.parent.name}"
        files[f"{trial}/manifest.json"] = json.dumps(manifest, separators=(",", ":")).encode()
        for mix in path.parent.glob(f"config/{manifest['mix']}.csv"):
            files[f"{trial}/config/{mix.name}"] = mix.read_bytes()
    return files


def main(arguments: list[str]) -> None:
    members: dict[str, bytes] = {}
    for argument in arguments:
        results, sweep = argument.rsplit(":", 1)
        store = Path(results) / "store"
        members |= {f"store/{name}/{sweep}.parquet": table(store, name, sweep) for name in TABLES}
        members |= manifests(Path(results) / "raw" / sweep)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(members.items()):
            archive.writestr(zipfile.ZipInfo(name, MOMENT), content, zipfile.ZIP_DEFLATED, 9)
    sys.stdout.buffer.write(target.getvalue())


if __name__ == "__main__":
    main(sys.argv[1:])
