# ruff: noqa: E501, PT017 (tables: a line per case; most cases may be taken or refused)
"""Raw trials whose files are spoilt: each is read or refused; and no door takes more memory than stated."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import doors
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from ntier_analysis import cli
from ntier_analysis.contracts.files import GIB, lines
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial
from synthetic import Spec, Truth, write_trial

pytestmark = pytest.mark.whole

PEAK_BYTES = {"zst": 0.75 * GIB, "json": 2.5 * GIB}
"""No refusal takes more memory: 0.4 GB were seen for tables, of which the program itself takes 0.25, and 2.3 GB for 60
MiB of JSON, which become 20 million objects."""


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
    folder = write_trial(tmp_path_factory.mktemp("raw"), Spec(300, truth, phases=(2.0, 6.0, 1.0), seal=False))
    (folder.parent / "search.json").write_text(
        json.dumps({"decisions": [{"users": 300, "reason": "low", "why": "x"}], "grid": [300]})
    )
    return folder


def raw_parts(folder: Path) -> dict[str, Callable[[RawTrial], object]]:
    """File -> what reads it."""
    client = "clients/client1/"
    parts: dict[str, Callable[[RawTrial], object]] = {
        client + "interactions.jtl.csv": lambda t: t.interactions,
        client + "thinks.csv": lambda t: t.thinks,
        client + "users.csv": lambda t: t.users,
        client + "progress.csv": lambda t: t.progress,
        "nodes/web1/logs/access.log": lambda t: t.web_logs,
        "nodes/db1/facts_before.json": lambda t: t.facts("db1", "before"),
    }
    for node, collector in RawTrial(folder).collectors():
        name = "sysstat.json" if collector == "sysstat" else f"{collector}.csv"
        parts[f"nodes/{node}/{name}"] = lambda t, n=node, c=collector: t.samples_of(n, c)
    return parts


@contextmanager
def spoilt_trial(folder: Path, relative: str, content: bytes | Callable[[Path], None]) -> Iterator[RawTrial]:
    """The trial with one other file; what stays is linked."""
    with TemporaryDirectory(dir=folder.parents[2]) as name:
        at = Path(name) / folder.name
        shutil.copytree(folder, at, copy_function=os.link)
        for path in (at / relative, at / f"{relative}.zst"):
            path.unlink(missing_ok=True)
        content(at / relative) if callable(content) else (at / relative).write_bytes(content)
        yield RawTrial(at)


def content_of(folder: Path, relative: str) -> bytes:
    path = folder / relative
    if path.exists():
        return path.read_bytes()
    return zstandard.ZstdDecompressor().stream_reader((folder / f"{relative}.zst").read_bytes()).read()


def test_each_raw_file_is_read_or_refused(trial):
    """All kinds of what is no file or no text, at each file of a trial."""
    cases = 0
    for relative, reader in raw_parts(trial).items():
        good = content_of(trial, relative)
        kinds = {**doors.NO_FILES, **{k: make(good) for k, make in doors.NO_TEXTS.items()}}
        for kind, content in kinds.items():
            cases += 1
            with spoilt_trial(trial, relative, content) as folder, doors.within(doors.LIMIT_S):
                try:
                    reader(folder)
                except DataError as error:
                    assert Path(relative).name in str(error), (relative, kind)
                    assert len(str(error)) < 1000, (relative, kind)
                else:
                    lenient = relative.endswith(".log") or kind in ("comments", "latin1")
                    assert lenient or kind in ("empty", "blank"), (relative, kind)
    assert cases > 300


@doors.examples(60)
@given(data=st.data())
def test_a_spoilt_raw_file_is_read_or_refused(trial, data):
    parts = raw_parts(trial)
    relative = data.draw(st.sampled_from(sorted(parts)))
    good = content_of(trial, relative)
    kinds = [doors.spoilt_bytes(good)]
    if relative.endswith(".csv"):
        kinds.append(doors.spoilt_csv(good))
    if relative.endswith(".json"):
        kinds.append(doors.spoilt_document(json.loads(good)).map(lambda spoilt: json.dumps(spoilt).encode()))
    with spoilt_trial(trial, relative, data.draw(st.one_of(kinds))) as spoilt, doors.within(doors.LIMIT_S):
        try:
            parts[relative](spoilt)
        except DataError as error:
            assert str(trial.name) in str(error)


@pytest.mark.parametrize("kind", [*doors.NO_FILES, *doors.NO_TEXTS])
def test_a_manifest_of_another_kind_is_refused(trial, tmp_path, kind):
    shutil.copytree(trial, tmp_path / "t", copy_function=os.link)
    path = tmp_path / "t" / "manifest.json"
    path.unlink()
    if kind in doors.NO_FILES:
        doors.NO_FILES[kind](path)
    else:
        path.write_bytes(doors.NO_TEXTS[kind]((trial / "manifest.json").read_bytes()))
    doors.refused(doors.call(cli.main, "validate", tmp_path / "t"), "manifest.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [("users", 0), ("users_real", -1), ("scale", 0), ("scale", float("nan")), ("think_time_s", 0), ("rep", 0),
     ("slo_ms", -1), ("mix", "../../etc/passwd"), ("sweep", "a/b"), ("phases.1.end_s", 0.0), ("phases.1.start_s", 1e300),
     ("nodes.0.cpu_cores", 0), ("nodes.0.name", "../x"), ("host.cores", 0), ("collectors", {"../x": ["tcp"]}), ("state", "done"), ("odd", 1)],
)  # fmt: skip
def test_an_impossible_value_in_a_manifest_is_named(trial, tmp_path, field, value):
    document = json.loads((trial / "manifest.json").read_text())
    *path, last = [int(p) if p.isdigit() else p for p in field.split(".")]
    place = document
    for part in path:
        place = place[part]
    place[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    doors.refused(
        doors.call(cli.main, "validate", tmp_path), "manifest.json", "" if value != value else field.split(".")[0]
    )


@doors.examples(25)
@given(data=st.data())
def test_a_spoilt_manifest_is_refused_or_taken(trial, data):
    document = json.loads((trial / "manifest.json").read_text())
    with TemporaryDirectory(dir=trial.parents[2]) as name:
        (Path(name) / "manifest.json").write_text(json.dumps(data.draw(doors.spoilt_document(document))))
        doors.orderly(doors.call(cli.main, "validate", name), 0)


@pytest.mark.parametrize(
    "kind", [k for k in (*doors.NO_FILES, *doors.NO_TEXTS) if k not in ("missing", "dangling", "loop")]
)
def test_the_record_of_a_search_of_another_kind_is_refused(trial, tmp_path, kind):
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / "search.json"
    if kind in doors.NO_FILES:
        doors.NO_FILES[kind](path)
    else:
        path.write_bytes(doors.NO_TEXTS[kind](b'{"decisions": [], "grid": [1, 2, 3, 4, 5, 6]}'))
    doors.refused(doors.call(cli.main, "ingest", "--raw", tmp_path, "--store", tmp_path / "store"), "search.json")


# ---- memory --------------------------------------------------------------------------------------------------------

CHILD = """
import re, sys, doors
from pathlib import Path
from ntier_analysis import cli
for line in Path(sys.argv[1]).read_text().splitlines():
    doors.refused(doors.call(cli.main, *line.split()))
    peak = re.search("VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(line.split()[-1], int(peak[1]) * 1024)
"""


def child(code: str, *arguments: object, limit: str = "") -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-c", limit + code, *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_no_door_takes_more_memory_than_stated(good, tmp_path):
    """What is small on the disk and large in memory, or is as large as it may be."""
    inside = {
        "zeros.jtl.zst": zstandard.compress(bytes(2**28)),
        "lines.jtl.zst": zstandard.compress(b"timeStamp,elapsed,label,success\n" + b"1790000000000,1,a,maybe\n" * 2_000_000),
        "quote.jtl.zst": zstandard.compress(b'timeStamp,elapsed,label,success\n1790000000000,1,"a\n' + b"1,2,3,4\n" * 2_000_000),
    }  # fmt: skip
    calls = []
    for name, content in inside.items():
        (tmp_path / name).write_bytes(content)
        calls.append(
            f"import --sa db1={good}/db1.json --topology 1/1/1/1M --store {tmp_path}/new --jtl {tmp_path}/{name}"
        )
    (tmp_path / "objects.json").write_bytes(b'{"sysstat": [' + b"{}," * (20 * 2**20) + b"0]}")
    calls.append(
        f"import --jtl {good}/run.jtl --topology 1/1/1/1M --store {tmp_path}/new --sa db1={tmp_path}/objects.json"
    )
    (tmp_path / "calls").write_text("\n".join(calls))
    done = child(CHILD, tmp_path / "calls")
    assert done.returncode == 0, done.stderr[-2000:]
    for line in done.stdout.splitlines():
        name, peak = line.split()
        assert int(peak) < PEAK_BYTES[name.rpartition(".")[2]], done.stdout
    assert len(done.stdout.splitlines()) == len(calls)


LIMITED = """
import resource, sys
from pathlib import Path
from ntier_analysis import cli
from ntier_analysis.validity.registry import registered
registered()
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
more = int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (held + more, held + more))
cli.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_limit_of_memory_says_nothing_of_a_trial(trial):
    """The checks are made, or the program says that its memory is short; the trial is not called invalid for it."""
    free, enough, short = (child(LIMITED, more_mib, "validate", trial) for more_mib in (64 * 1024, 1024, 8))
    assert free.returncode == 0, free.stderr[-1000:]
    assert (enough.returncode, enough.stdout) == (0, free.stdout), enough.stderr[-1000:]
    if short.returncode == 1:
        assert short.stderr.strip().splitlines()[-1].startswith("error: not enough memory"), short.stderr[-1000:]
    else:
        assert (short.returncode, short.stdout) == (0, free.stdout), short.stderr[-1000:]


def test_a_line_without_an_end_is_not_held(tmp_path):
    (tmp_path / "a.zst").write_bytes(zstandard.compress(bytes(2**26)))
    with pytest.raises(DataError, match=r"a\.zst:1: a line of more than 1 MiB"):
        list(lines(tmp_path / "a.zst"))
