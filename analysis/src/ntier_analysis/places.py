"""Folders that may lie elsewhere: a path of this machine, or a URL of fsspec (`s3://bucket/raw`, `ssh://host/raw`).

A program that reads and judges knows files of this machine only. So a store elsewhere is a temporary folder here
(`at_hand`): a table's file is copied into it when it is first asked for (`table_file`), and put there when it was
written (`wrote`): under a temporary name that is then renamed, or, where a file appears only when it is whole (S3), at
once. Putting the same thing twice leaves what putting it once leaves."""

from __future__ import annotations

import atexit
import os
import posixpath
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from ntier_analysis.contracts.files import GIB, replacing, size
from ntier_analysis.errors import DataError

FILE_BYTES = 4 * GIB
"""Of one file that is copied; as much as is read piece by piece (contracts/files.py)."""
AT_ONCE = ("s3", "s3a", "gs", "gcs", "abfs", "az", "memory")
"""Kinds of places where a file appears only when it is whole, and where renaming is copying."""
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")

Result = TypeVar("Result")


def _told(do: Callable[..., Result]) -> Callable[..., Result]:
    """Whatever goes wrong there is a DataError that names the place: each kind of place has errors of its own."""

    @wraps(do)
    def done(place: Place, *words: Any) -> Result:
        try:
            return do(place, *words)
        except (DataError, MemoryError):
            raise
        except Exception as error:
            said = " ".join(str(error).split())[:300] or type(error).__name__
            raise DataError(f"{place.text}: cannot be reached ({type(error).__name__}: {said})") from error

    return done


@dataclass(frozen=True)
class Place:
    """A folder. `text`: as the user wrote it."""

    text: str

    @classmethod
    def of(cls, text: str | Path, *, absolute: bool = False) -> Place:
        """`absolute`: a path from the root on, for programs that run in another folder."""
        url = str(text)
        if url.startswith("file://"):
            url = url.removeprefix("file://")
        elif _URL.match(url):
            return cls(url.rstrip("/"))
        return cls(str(Path(url).absolute() if absolute else Path(url)))

    @property
    def local(self) -> Path | None:
        """The folder if it is one of this machine."""
        return None if _URL.match(self.text) else Path(self.text)

    def _there(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError:
            said = "needs fsspec; install it with: pip install 'ntier-analysis[remote]'"
            raise DataError(f"{self.text}: {said}") from None
        try:
            system, path = url_to_fs(self.text)
        except (ImportError, ValueError) as error:
            raise DataError(f"{self.text}: {' '.join(str(error).split())}") from None
        system.invalidate_cache()  # others write there
        return system, path

    @_told
    def folders(self) -> list[str]:
        """Names of the folders in it, sorted; none if it is not there."""
        if self.local is not None:
            return sorted(p.name for p in self.local.iterdir() if p.is_dir()) if self.local.is_dir() else []
        system, path = self._there()
        found = self._listed(system, path)
        return sorted(posixpath.basename(f["name"].rstrip("/")) for f in found if f["type"] == "directory")

    @_told
    def files(self, folder: str) -> list[str]:
        """Names of the files in a folder of it, sorted; none if that is not there."""
        if self.local is not None:
            return sorted(p.name for p in (self.local / folder).glob("*") if p.is_file())
        system, path = self._there()
        found = self._listed(system, f"{path}/{folder}")
        return sorted(posixpath.basename(f["name"]) for f in found if f["type"] == "file")

    @staticmethod
    def _listed(system: Any, path: str) -> list[dict[str, Any]]:
        with suppress(FileNotFoundError):
            return system.ls(path, detail=True)
        return []

    @_told
    def fetch(self, relative: str, into: Path, only: str = "") -> bool:
        """Copies a file, or a folder with all in it (or with all files of one name), to `into`, each with its time of
        change if the place tells it; whether it is there."""
        system, path = self._there()
        root = f"{path}/{relative}"
        if not system.exists(root):
            return False
        for name, told in system.find(root, detail=True).items():
            if only and posixpath.basename(name) != only:
                continue
            inside = posixpath.relpath(name, system._strip_protocol(root))
            if (told.get("size") or 0) > FILE_BYTES:
                raise DataError(f"{name}: {size(told['size'])}, allowed are at most {size(FILE_BYTES)}")
            target = into if inside == "." else into / inside
            if not target.resolve().is_relative_to(into.resolve()):
                raise DataError(f"{name}: lies outside {relative}")
            target.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(name, str(target))
            changed = told.get("LastModified") or told.get("mtime")
            if isinstance(changed, datetime):
                os.utime(target, (changed.timestamp(), changed.timestamp()))
        return True

    @_told
    def put(self, file: Path, relative: str) -> None:
        """Copies a file there; whoever reads it meanwhile sees the old one or the new one, whole."""
        if self.local is not None:
            target = self.local / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target, durable=True) as temporary:
                shutil.copyfile(file, temporary)
            return
        system, path = self._there()
        target = f"{path}/{relative}"
        kind = self.text.split("://")[0]
        if kind in AT_ONCE:
            system.put_file(str(file), target)
            return
        system.makedirs(posixpath.dirname(target), exist_ok=True)
        temporary = posixpath.join(posixpath.dirname(target), f".{secrets.token_hex(8)}.tmp")
        try:
            system.put_file(str(file), temporary)
            system.mv(temporary, target)
        finally:
            with suppress(Exception):
                if system.exists(temporary):
                    system.rm_file(temporary)


@dataclass
class _Copy:
    """What is here of a store elsewhere: its sweeps' names, and what was asked for."""

    place: Place
    sweeps: set[str]
    asked: set[Path] = field(default_factory=set)


_COPIES: dict[Path, _Copy] = {}
_OPENED = ExitStack()
atexit.register(_OPENED.close)


@contextmanager
def at_hand(store: Place) -> Iterator[Path]:
    """The store as a folder of this machine. Elsewhere it is one that lasts as long as the block, and that holds what
    was asked for."""
    if store.local is not None:
        yield store.local
        return
    with tempfile.TemporaryDirectory(prefix="ntier-") as name:
        here = Path(name) / "store"
        there = {n.removesuffix(".parquet") for n in store.files("trials") if n.endswith(".parquet")}
        if there:
            (here / "trials").mkdir(parents=True)  # as of every store that has a sweep
        _COPIES[here] = _Copy(store, there)
        try:
            yield here
        except DataError as error:
            raise DataError(as_given(str(error))) from error
        finally:
            del _COPIES[here]


def opened(store: str | Path) -> Path:
    """The same for as long as this program runs."""
    return _OPENED.enter_context(at_hand(Place.of(store)))


def table_file(store: Path, table: str, sweep: str) -> Path:
    """The file of one table of one sweep, which may be missing."""
    path = store / table / f"{sweep}.parquet"
    copy = _COPIES.get(store)
    if copy is not None and path not in copy.asked:
        copy.place.fetch(f"{table}/{path.name}", path)
        copy.asked.add(path)
    return path


def table_files(store: Path, table: str) -> list[Path]:
    """The files of one table, sorted."""
    copy = _COPIES.get(store)
    if copy is None:
        return sorted((store / table).glob("*.parquet"))
    names = [n.removesuffix(".parquet") for n in copy.place.files(table) if n.endswith(".parquet")]
    return [table_file(store, table, name) for name in names]


def sweep_names(store: Path) -> list[str]:
    """Of the sweeps that the store holds, sorted."""
    copy = _COPIES.get(store)
    return sorted(p.stem for p in (store / "trials").glob("*.parquet")) if copy is None else sorted(copy.sweeps)


def wrote(store: Path, sweep: str, tables: Iterable[str]) -> None:
    """Puts tables that were written to where the store is; the trials last, since a sweep is in a store if they are."""
    copy = _COPIES.get(store)
    if copy is None:
        return
    for table in sorted(tables, key=lambda t: t == "trials"):
        path = store / table / f"{sweep}.parquet"
        copy.asked.add(path)
        copy.place.put(path, f"{table}/{path.name}")
    copy.sweeps.add(sweep)


def raw_beside(store: Path, sweep: str, only: str = "") -> Path:
    """The folder of a sweep's raw results beside the store, which may be missing; from elsewhere all of its files, or
    those of one name."""
    folder = store.parent / "raw" / sweep
    copy = _COPIES.get(store)
    if copy is None:
        return folder
    beside = copy.place.text.rpartition("/")[0]
    if not copy.asked & {folder, folder / only} and _URL.match(beside):
        Place(f"{beside}/raw").fetch(sweep, folder, only)
    copy.asked.add(folder / only)
    return folder


@contextmanager
def raw_at_hand(raw: Place, sweep: str) -> Iterator[Path]:
    """The folder of raw results as one of this machine, at least this sweep's part of it. Raises DataError if it is
    elsewhere and does not have the sweep."""
    if raw.local is not None:
        yield raw.local
        return
    with tempfile.TemporaryDirectory(prefix="ntier-") as name:
        if not raw.fetch(sweep, Path(name) / sweep):
            raise DataError(f"{raw.text}: no sweep {sweep!r}")
        yield Path(name)


def opened_raw(raw: str, sweep: str) -> Path:
    """The same for as long as this program runs."""
    return _OPENED.enter_context(raw_at_hand(Place.of(raw), sweep))


def as_given(text: object) -> str:
    """A text with the folders of stores elsewhere (and what lies beside them) named as the user gave them."""
    told = str(text)
    for here, copy in list(_COPIES.items()):
        told = told.replace(str(here), copy.place.text).replace(str(here.parent), copy.place.text.rpartition("/")[0])
    return told
