"""The only module that opens and writes files which people or other programs hand over. It reads regular files up to a
stated size: a FIFO would wait for ever, a device has no end, and a sparse or compressed file holds more than its disk.
It writes under a temporary name until the file is whole, so that two programs never write one file at once, and a
reader never sees half of it.

PyYAML and zstandard are imported only where such a file is read; the rest is the standard library."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ntier_analysis.errors import DataError

KIB, MIB, GIB = 2**10, 2**20, 2**30
DOCUMENT_BYTES = MIB
"""YAML, JSON and tables that people write; the largest that comes with the project has 5 kB."""
RECORD_BYTES = 16 * MIB
"""JSON that programs write: manifests, records of searches and campaigns. Manifests of five nodes have 14 kB."""
JSON_BYTES = 64 * MIB
"""JSON of measurements: two hours of sysstat by the second, at 9 kB a record (2 CPUs). Parsed it takes up to 36 times
as much memory."""
WHOLE_BYTES = GIB
"""Other files that are held in memory whole."""
STREAM_BYTES = 4 * GIB
"""Files that are read piece by piece; decompressed."""
LINE_BYTES = MIB
DEPTH = 32
"""Levels of lists and keys in a YAML document; the deepest in use has 4."""
VALUES = 100_000
"""Values of a YAML document, those of aliases counted wherever they stand."""

_WINDOW_BYTES = 128 * MIB  # what zstd may keep of a stream; more is only made by `zstd --ultra --long`
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


# ---- reading -------------------------------------------------------------------------------------------------------


def opened(path: Path, most: int) -> BinaryIO:
    """The file for reading. Raises DataError unless it is a regular one of at most `most` bytes; never waits."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        _only_regular(path, os.stat(path), most)  # a device is not even opened
        file = os.fdopen(os.open(path, flags), "rb")
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise unreadable(path, error) from error
    try:
        _only_regular(path, os.fstat(file.fileno()), most)
    except DataError:
        file.close()
        raise
    return file


def _only_regular(path: Path, status: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise DataError(f"{path}: is {kind}, expected a regular file")
    if status.st_size > most:
        raise DataError(f"{path}: {size(status.st_size)}, allowed are at most {size(most)}")


def size(n: int) -> str:
    """Bytes for a person."""
    unit, name = next(((u, s) for u, s in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if n >= u), (1, "bytes"))
    return f"{n / unit:.3g} {name}" if n < 1000 * unit else f"{n / unit:,.0f} {name}"


def unreadable(path: Path, error: Exception) -> DataError:
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return DataError(f"{path}: cannot be read ({said})")


class _Bounded(io.RawIOBase):
    """A file's (decompressed) bytes; DataError names the file if they cannot be read or are more than `most`."""

    def __init__(self, path: Path, source: Any, most: int, file: BinaryIO) -> None:
        self._path, self._source, self._left, self._most, self._file = path, source, most, most, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            got = self._source.readinto(buffer)
        except Exception as error:  # zstandard's errors have no common base with those of files
            if isinstance(error, MemoryError):
                raise
            raise unreadable(self._path, error) from error
        self._left -= got or 0
        if self._left < 0:
            raise DataError(f"{self._path}: more than {size(self._most)} decompressed, the most that is allowed")
        return got or 0

    def close(self) -> None:
        self._source.close()
        self._file.close()  # gzip leaves it open
        super().close()


def stream(path: Path, most: int = STREAM_BYTES) -> io.BufferedReader:
    """The file's bytes one after the other; `.zst` and `.gz` are decompressed. Raises DataError, then or at a read."""
    file = opened(path, most)
    source: Any = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
    if path.suffix == ".zst":
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        source = reader.stream_reader(source, read_across_frames=True)
    return io.BufferedReader(_Bounded(path, source, most, file), MIB)


def read_bytes(path: Path, most: int = WHOLE_BYTES) -> bytes:
    """The file's (decompressed) content. Raises DataError."""
    with stream(path, most) as file:
        return file.read()


def lines(path: Path, most: int = STREAM_BYTES) -> Iterator[bytes]:
    """The file's lines without their ends. Raises DataError, also for a line of more than LINE_BYTES."""
    number = 0
    with stream(path, most) as file:
        while line := file.readline(LINE_BYTES + 1):
            number += 1
            if len(line) > LINE_BYTES:
                raise DataError(
                    f"{path}:{number}: a line of more than {size(LINE_BYTES)}; expected a text with shorter lines"
                )
            yield line.rstrip(b"\r\n")


def text_of(content: bytes, path: Path | str) -> str:
    """UTF-8 -> text, without its byte-order mark. Raises DataError naming the line for anything else."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8")
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise DataError(f"{path}:{line}: a NUL byte; expected a text in UTF-8 (UTF-16? iconv -f UTF-16 -t UTF-8)")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte {content[error.start]:#x} is not UTF-8") from None


def read_text(path: Path, most: int = DOCUMENT_BYTES) -> str:
    return text_of(read_bytes(path, most), path)


def repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)


def read_json(path: Path, most: int = DOCUMENT_BYTES) -> Any:
    """Raises DataError for what is not strictly JSON, naming line and column."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = repeated(name for name, _ in pairs)
        if twice is not None:
            raise DataError(f"{path}: key {twice[:80]!r} is there twice")
        return dict(pairs)

    def refuse(name: str) -> None:
        raise DataError(f"{path}: {name} is not a number in JSON")

    try:
        return json.loads(read_text(path, most), object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise DataError(f"{path}: not JSON (nested too deeply)") from None
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not JSON ({error})") from None


# ---- YAML ----------------------------------------------------------------------------------------------------------


def read_yaml(path: Path, *, texts: bool = False) -> tuple[Any, Any]:
    """`parse_yaml` of a file (JSON is YAML too)."""
    return parse_yaml(read_text(path), str(path), texts=texts)


def parse_yaml(text: str, name: str, *, texts: bool = False) -> tuple[Any, Any]:
    """The document's values, and its nodes (yaml.Node, for their lines). `texts`: all scalars stay texts.

    Raises DataError naming file and line for what is not YAML, a key that is there twice, and what is nested deeper
    than DEPTH or holds more than VALUES values."""
    import yaml

    safe = "BaseLoader" if texts else "SafeLoader"
    kind = getattr(yaml, f"C{safe}", None) or getattr(yaml, safe)
    try:
        _refuse_growth(yaml.parse(text, Loader=kind), name)
        loader = kind(text)
        try:
            node = loader.get_single_node()
            _refuse_repeats(node, name)
            return (None if node is None else loader.construct_document(node)), node
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        said = " ".join(str(getattr(error, "problem", None) or error).split())
        raise DataError(f"{where}: not YAML ({said[:200]})") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:  # 2001-13-45, a number of 5000 digits
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: not readable as YAML ({' '.join(str(error).split())[:200]})") from None


def _refuse_growth(events: Iterator[Any], name: str) -> None:
    """Before anything is built. An alias stands for all that its anchor holds: ten lines can mean a billion values."""
    import yaml

    sizes: dict[str, int] = {}
    open_: list[list[Any]] = [[None, 0]]  # anchor and values of each list or map that has not ended
    total = 0  # of these values
    for event in events:
        more = 0
        if isinstance(event, yaml.ScalarEvent):
            more = sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            more = 1
            open_.append([event.anchor, 0])
            if len(open_) - 1 > DEPTH:
                raise DataError(f"{name}, line {event.start_mark.line + 1}: nested more than {DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, count = open_.pop()
            sizes[anchor] = count
            open_[-1][1] += count
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                place = f"{name}, line {event.start_mark.line + 1}"
                raise DataError(f"{place}: alias {event.anchor[:80]!r} refers to itself, or to nothing")
            more = sizes[event.anchor]
        open_[-1][1] += more
        total += more
        if total > VALUES:
            raise DataError(f"{name}, line {event.start_mark.line + 1}: more than {VALUES:,} values")


def _refuse_repeats(root: Any, name: str) -> None:
    import yaml

    left, seen = [root], set()
    while left:
        node = left.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
            continue
        keys = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise DataError(f"{name}, line {key.start_mark.line + 1}: key {key.value[:80]!r} is there twice")
                keys.add(key.value)
            left += [key, value]


# ---- writing -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to; at the end of the block it takes the place of `path` at once, and is removed if
    the block fails. `durable`: only when it is on the disk. Raises OSError."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        if durable:
            sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Makes sure that renames in the folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replaces the file at once; makes its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_folder(path: Path, option: str) -> None:
    """Raises DataError unless files can be written into the folder, which need not exist yet. Leaves nothing behind."""
    try:
        there = _nearest(path)
        if not there.is_dir():
            raise DataError(f"{option} {path}: {there} is not a folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(f"{option} {path}: cannot be written ({said})") from None


def _nearest(path: Path) -> Path:
    """The path, or the nearest of its parents that is there (a dangling link is)."""
    for place in (path, *path.parents):
        try:
            os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return place
    return Path()


def check_file(path: Path, option: str) -> None:
    """Raises DataError unless the file can be written: a new one, or a regular one that is replaced."""
    check_folder(path.parent, option)
    if os.path.lexists(path) and not path.is_file():
        raise DataError(f"{option} {path}: exists and is not a regular file")
