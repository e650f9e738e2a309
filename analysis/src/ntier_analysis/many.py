"""What is done for each of many sweeps, alike in this process, in others, and on other machines: a sweep's name in, a
small result out; what it leaves in the store is the same however often it is done."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ntier_analysis.density import GRID_PCT, densities
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import Ingested, ingest_sweep, sweep_folders
from ntier_analysis.places import Place, at_hand, raw_at_hand, sweep_names
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.store import judge_again, judged_by

KEYS = ["trial", "node", "tier", "resource", "item", "source"]
DENSITIES = pa.schema(
    [("sweep", pa.string()), *((name, pa.string()) for name in KEYS), ("n", pa.int64()), ("above_100", pa.int64()),
     ("bandwidth_pct", pa.float64()), ("density", pa.list_(pa.float64(), len(GRID_PCT)))],
    metadata={"grid_pct": f"0 to 100 % in {len(GRID_PCT)} points", "density": "share per percentage point"},
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    sweep: str
    verdict: str
    rules: str
    before: str


def names_of(raw: Place, asked: list[str]) -> list[str]:
    """The sweeps in `raw`, or those asked for. Raises DataError naming what there is."""
    if raw.local is not None:
        return [folder.name for folder in sweep_folders(raw.local, asked)]
    return _asked(raw, asked, raw.folders())


def stored_names(store: Place, asked: list[str]) -> list[str]:
    """The same of a store."""
    with at_hand(store) as here:
        return _asked(store, asked, sweeps(here) if store.local is not None else sweep_names(here))


def _asked(place: Place, asked: list[str], there: list[str]) -> list[str]:
    unknown = [n for n in asked if n not in there]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {place.text}; there are: {', '.join(there) or 'none'}")
    return asked or there


def ingest(sweep: str, *, raw: Place, store: Place, force: bool = False, revalidate: bool = False) -> Ingested:
    """A sweep's raw trials -> its tables, with saturations and verdict."""
    with at_hand(store) as here, raw_at_hand(raw, sweep) as source:
        return ingest_sweep(source / sweep, here, force=force, revalidate=revalidate)


def judge(sweep: str, *, store: Place) -> Judged:
    """A stored sweep's saturations and verdict by the rules of this program."""
    with at_hand(store) as here:
        before = judged_by(here, sweep) or "not stored"
        (judged,) = judge_again(here, [sweep])
        return Judged(sweep, judged.verdict, judged.analysis_version, before)


def density(sweep: str, *, store: Place, out: Place, bandwidth_pct: float) -> int:
    """Density of every utilization in the run phase of every trial -> `<out>/<sweep>.parquet`; their number. Of several
    collectors of one resource, the one that the saturation trusts; utilizations above 100 % count as 100 %."""
    with at_hand(store) as here:
        table = density_table(here, sweep, bandwidth_pct)
    with tempfile.TemporaryDirectory(prefix="ntier-") as folder:
        file = Path(folder) / f"{sweep}.parquet"
        pq.write_table(table, file, compression="zstd", use_dictionary=[*KEYS, "sweep"],
                       column_encoding={"density.list.element": "BYTE_STREAM_SPLIT"})  # fmt: skip
        out.put(file, file.name)
    return len(table)


def density_table(store: Path, sweep: str, bandwidth_pct: float) -> pa.Table:
    """Columns of `DENSITIES`, a row per series, sorted."""
    wanted = [("metric", "==", "utilization_pct"), ("phase", "==", "run")]
    rows = read_table(store, "samples", sweep, columns=[*KEYS, "t_s", "value"], filters=wanted)
    trusted = read_table(store, "saturation", sweep, columns=["trial", "node", "resource", "item", "source"])
    rows = rows.merge(trusted.drop_duplicates(), on=list(trusted.columns)).dropna(subset="value")
    rows = rows.sort_values([*KEYS, "t_s"], ignore_index=True)
    new = (rows[KEYS] != rows[KEYS].shift()).any(axis=1).to_numpy()
    starts = np.append(np.flatnonzero(new), len(rows))
    values = rows["value"].to_numpy()
    series = [values[a:b] for a, b in pairwise(starts)]
    curves = densities([np.clip(s, 0, 100) for s in series], bandwidth_pct)
    keys = rows.iloc[starts[:-1]][KEYS]
    frame = pd.DataFrame({"sweep": sweep, **{k: keys[k].to_numpy() for k in KEYS}})
    above = [int((s > 100).sum()) for s in series]
    frame = frame.assign(n=np.diff(starts), above_100=above, bandwidth_pct=bandwidth_pct)
    columns = [pa.array(frame[f.name], f.type, from_pandas=True) for f in list(DENSITIES)[:-1]]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(curves.ravel()), len(GRID_PCT))
    return pa.Table.from_arrays([*columns, lists], schema=DENSITIES)
