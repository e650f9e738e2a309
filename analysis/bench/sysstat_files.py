"""Reading sysstat's binary files: `sadf -d` and pandas against the reader, side by side in one run.

    sadc -S XALL 1 721 day.sa      # twelve minutes of a machine, as in the study's trials
    python analysis/bench/sysstat_files.py day.sa --repeats 9

Each repetition runs every way on --files files in a row (the same one), as an ingest reads one node after the other;
the figure is the CPU time of a file (user and system, children included), the median of the repetitions and of the
ratios within them. Each way has a process of its own, so that none inherits the memory which another one left in
pieces. Starting Python and importing (numba too: `read` uses it in a process that has it) are not counted.
pandas reads each section of sadf's output (each has a header of its own) as the table it is."""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ntier_analysis.sysstat import SaFile, read

SELECTION = ["-u", "-r", "-b", "-d", "-n", "DEV", "-q"]
SELECTED = ["cpu-load", "memory", "io", "disk", "net-dev", "queue"]
"""What the study looks at: CPU, memory, disks, interfaces, queue."""


def cpu_s() -> float:
    of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in of)


def by_sadf(path: Path, options: list[str]) -> int:
    """-> values"""
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(["sadf", "-d", "-U", path, "--", *options], capture_output=True, check=True, env=environment)
    values = 0
    for section in ("\n" + done.stdout.decode()).split("\n# ")[1:]:
        head, _, rows = section.partition("\n")
        names = head.split(";")
        width = rows.partition("\n")[0].count(";") + 1
        names = [*names[:width], *(f"more{i}" for i in range(width - len(names)))]  # INTR has more fields than names
        values += pd.read_csv(io.StringIO(rows), sep=";", names=names).select_dtypes("number").size
    return values


def by_reader(path: Path, names: list[str] | None) -> int:
    """-> values; with the number of the record and of the item of each row"""
    return values_of(read(str(path), path.read_bytes()), names)


def by_numpy(path: Path, names: list[str] | None) -> int:
    """The same without numba."""
    return values_of(SaFile(str(path), path.read_bytes()), names)


def values_of(file: SaFile, names: list[str] | None) -> int:
    tables = [file.table(name) for name in names or file.activities]
    return sum(len(t.record) * len(t.values) for t in tables if len(t.item) == len(t.t_s))


def frames_by_reader(path: Path, names: list[str] | None) -> int:
    """The same as data frames."""
    file = read(str(path), path.read_bytes())
    return sum(file.table(name).frame().select_dtypes("number").size for name in names or file.activities)


def parquet_by_reader(path: Path, names: list[str] | None) -> int:
    """The same as one Parquet file (zstd, in memory) of three columns: series, number of the record, value."""
    file = read(str(path), path.read_bytes())
    series, codes, records, values = [], [], [], []
    for name in names or file.activities:
        table = file.table(name)
        for column, those in table.values.items():
            codes.append((table.item + len(series)).astype(np.int32))
            series += [f"{name} {item} {column}" for item in table.items]
            records.append(table.record.astype(np.int32))
            values.append(those)
    coded = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(codes)), pa.array(series))
    rows = pa.table({"series": coded, "record": np.concatenate(records), "value": np.concatenate(values)})
    dictionary = ["series", "record"]
    pq.write_table(rows, pa.BufferOutputStream(), compression="zstd", use_dictionary=dictionary, write_statistics=False)
    return len(rows)


def timed(run: Callable[[], int], files: int) -> tuple[float, int]:
    """-> CPU seconds of a file, its values"""
    before = cpu_s()
    values = [run() for _ in range(files)]
    return (cpu_s() - before) / files, values[0]


def in_turns(runs: list[Callable[[], int]], files: int, repeats: int) -> list[list[tuple[float, int]]]:
    """-> per repetition, `timed` of each run"""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        processes = [stack.enter_context(ProcessPoolExecutor(1, spawn)) for _ in runs]
        for process, run in zip(processes, runs, strict=True):
            process.submit(run).result()  # imports what is imported when it is first used
        return [
            [process.submit(timed, run, files).result() for process, run in zip(processes, runs, strict=True)]
            for _ in range(repeats)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--files", type=int, default=10)
    options = parser.parse_args()
    file = read(str(options.file), options.file.read_bytes())
    version = subprocess.run(["sadf", "-V"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    versions = ", ".join(f"{module.__name__} {module.__version__}" for module in (pd, np, numba))
    print(f"{options.file.stat().st_size} bytes, sysstat {file.version}, {len(file.t_s)} intervals; "
          f"{version}, {versions}, {platform.machine()}")  # fmt: skip
    ways = ("sadf -d + pandas", "reader", "without numba", "as data frames", "as Parquet")
    print(f"| what | values | {ways[0]}, ms | {' | '.join(f'{way}, ms | ratio' for way in ways[1:])} |")
    print(f"|---|{'--:|' * 2 * len(ways)}")
    for title, words, names in (("all (`-A`)", ["-A"], None), (f"`{' '.join(SELECTION)}`", SELECTION, SELECTED)):
        runs = [partial(by_sadf, options.file, words)]
        runs += [
            partial(way, options.file, names) for way in (by_reader, by_numpy, frames_by_reader, parquet_by_reader)
        ]
        rounds = in_turns(runs, options.files, options.repeats)
        ms = [statistics.median(1e3 * r[i][0] for r in rounds) for i in range(len(runs))]
        ratios = [statistics.median(r[0][0] / r[i][0] for r in rounds) for i in range(1, len(runs))]
        took = [[1e3 * r[i][0] for r in rounds] for i in range(len(runs))]
        shown = [f"{m:.1f} ({min(t):.1f}-{max(t):.1f})" for m, t in zip(ms, took, strict=True)]
        cells = [shown[0], *(c for way, ratio in zip(shown[1:], ratios, strict=True) for c in (way, f"{ratio:.0f}"))]
        print(f"| {title} | {rounds[0][1][1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
