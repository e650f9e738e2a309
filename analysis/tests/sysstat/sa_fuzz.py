"""Damaged files: whatever the damage, the reader gives an error with a place in the file, or figures that can be.

`python sa_fuzz.py --cases 100000` runs for as long as it takes; `--sadf sadf` also compares the figures of every case
that both read with sadf's, which takes ten times as long."""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import zstandard
from ntier_analysis.errors import DataError
from ntier_analysis.sysstat import SaFile, read
from ntier_analysis.sysstat.loops import Loops, compiled

sys.path.insert(0, str(Path(__file__).parent))
from against_sadf import differences, ours, printed, sadf

DATA = Path(__file__).parent / "data"
LIMIT_S = 60.0  # of CPU; the first case compiles the loops, what never ends takes longer
MEMORY_BYTES = 1_500_000_000
INTERESTING = (0, 1, 2, 4, 5, 15, 16, 127, 128, 255)
NUMBERS = (0, 1, 2, 2**15, 2**16, 2**28, 2**31 - 1, 2**31, 2**32 - 1)


def originals() -> list[bytes]:
    """The files, and the plain part of each."""
    files = [zstandard.ZstdDecompressor().stream_reader(p.read_bytes()).read() for p in sorted(DATA.glob("*.sa.zst"))]
    return [*files, *map(plain, files)]


def plain(content: bytes) -> bytes:
    """The file of a machine on which nothing comes or goes: two alike records, the second of them three times."""
    file = read("f.sa", content)
    stretch = next(stretch for stretch in file._records.stretches if stretch.n > 1)
    second = stretch.header + stretch.step
    return content[: file.header.end] + content[stretch.header : second] + 3 * content[second : second + stretch.step]


def damaged(files: list[bytes], random_: random.Random) -> bytes:
    """One case: one or more of truncation, flipped bits, set bytes and words, spliced, repeated and dropped parts."""
    content = bytearray(random_.choice(files))
    for _ in range(random_.choice((1, 1, 1, 2, 5))):
        kind = random_.randrange(8)
        end = min(len(content), random_.choice((80, 420, 2000, len(content))))  # the front decides most
        at = random_.randrange(max(end, 1))
        if kind == 0:
            del content[random_.randrange(len(content) + 1) :]
        elif kind == 1 and content:
            content[at] ^= 1 << random_.randrange(8)
        elif kind == 2 and content:
            content[at] = random_.choice(INTERESTING)
        elif kind == 3 and at + 4 <= len(content):
            at -= at % 4
            content[at : at + 4] = random_.choice(NUMBERS).to_bytes(4, random_.choice(("little", "big")))
        elif kind == 4:
            other = random_.choice(files)
            start = random_.randrange(len(other))
            content[at:] = other[start:]
        elif kind == 5:
            size = random_.randrange(1, 6000)
            content[at:at] = content[at : at + size]
        elif kind == 6:
            del content[at : at + random_.randrange(1, 6000)]
        elif kind == 7:
            size = random_.choice((4, 8, 12, 80))
            content[at : at + size] = random_.randbytes(size)
    return bytes(content)


def check(content: bytes) -> str:
    """Reads all of it. -> "read", or the error's text. AssertionError for anything but figures that can be, or if the
    compiled loops find other ones."""
    started = time.process_time()
    (file, said), (quick, said_quick) = (_opened(content, loops) for loops in (None, compiled()))
    assert said == said_quick, f"{said!r}, with compiled loops {said_quick!r}"
    if said:
        match = re.match(r"f\.sa: byte (\d+): ", said)
        assert match, f"no place: {said}"
        assert int(match[1]) <= len(content), f"place behind the end: {said}"
        return said
    assert unlike(file, quick) == []
    tables = file.tables()
    for name, table in tables.items():
        rows = len(table.record)
        assert (table.record < len(file._records.t_s)).all(), name
        assert not rows or 0 <= table.item.min() <= table.item.max() < len(table.items), name
        assert (table.interval_s > 0).all(), name
        for column, values in table.values.items():
            assert len(values) == rows, (name, column)
            possible = np.isnan(values) | ((values >= 0) & (values < np.inf))
            assert possible.all() or name in SENSORS or column == "variation", (name, column)
    for column, values in tables["cpu-load"].values.items() if "cpu-load" in tables else ():
        assert (values >= 0).all(), column
        assert (values < 100.01).all() or column in GUESTS, (column, values.max())
    assert time.process_time() - started < LIMIT_S, "too slow"
    return "read"


def _opened(content: bytes, loops: Loops | None) -> tuple[SaFile | None, str]:
    """-> the file, all of it read, and the error's text."""
    try:
        file = SaFile("f.sa", content, loops)
        file.tables()
    except DataError as error:
        return None, str(error)
    return file, ""


def unlike(file: SaFile, other: SaFile) -> list[str]:
    """What two readings of the same file do not have to the last bit."""
    found = [] if file.activities == other.activities else ["activities"]
    for name, a in file.tables().items():
        b = other.table(name)
        rows = [getattr(a, what).tobytes() == getattr(b, what).tobytes() for what in ("record", "item", "t_s")]
        if not all(rows) or (a.items, a.notes, list(a.values)) != (b.items, b.notes, list(b.values)):
            found.append(name)
        found += [f"{name} {c}" for c in a.values if a.values[c].tobytes() != b.values[c].tobytes()]
    return found


SENSORS = ("fan-speed", "temperature", "voltage-input")
"""The file has floats there, which may be anything."""
GUESTS = ("guest", "gnice")
"""Parts of another counter, not among the ticks that add up to 100 %."""


def run(cases: int, seed: int, program: str | None = None) -> dict[str, int]:
    """-> how many cases ended how. Raises AssertionError, or what the reader should not raise, with the seed."""
    files, count = originals(), {"read": 0, "refused": 0, "compared": 0, "values": 0, "sadf reads what is refused": 0}
    for number in range(cases):
        random_ = random.Random(f"{seed}.{number}")
        content = damaged(files, random_)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = check(content)
            count["read" if result == "read" else "refused"] += 1
            if program:
                _compare(content, result, program, count)
        except Exception as error:
            raise AssertionError(f"case {seed}.{number}: {type(error).__name__}: {error}") from error
    return count


def _compare(content: bytes, result: str, program: str, count: dict[str, int]) -> None:
    with tempfile.NamedTemporaryFile(suffix=".sa") as temporary:
        temporary.write(content)
        temporary.flush()
        try:
            records, said = sadf(Path(temporary.name), program)
        except (ValueError, KeyError, IndexError):
            return  # no JSON
    if result != "read":
        count["sadf reads what is refused"] += bool(records and not said)
        return
    file = read("f.sa", content)
    if len(records) != len(file.t_s):
        return
    theirs = printed(records)
    wrong = [line for line in differences(theirs, ours(file)) if "only" not in line]
    count["compared"] += 1
    count["values"] += len(theirs)
    for line in wrong:
        print(line)
    count["differ"] = count.get("differ", 0) + len(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sadf")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    print(run(options.cases, options.seed, options.sadf))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")
