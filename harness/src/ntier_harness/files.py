"""The files that a request names or needs: opened through the door of the contracts, wrong ones are wrong requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ntier_analysis.contracts import files
from ntier_analysis.contracts.nodes import said
from ntier_analysis.errors import DataError
from pydantic import BaseModel, ConfigDict, ValidationError

from ntier_harness.errors import RequestError, WorkError

P, T = ParamSpec("P"), TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def _asked(read: Callable[P, T]) -> Callable[P, T]:
    @wraps(read)
    def reader(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except DataError as error:
            raise RequestError(str(error)) from None

    return reader


read_text, read_json, read_yaml, parse_yaml = map(
    _asked, (files.read_text, files.read_json, files.read_yaml, files.parse_yaml)
)


def at_home(place: str, text: str) -> Path:
    """The path with the home for ~. Raises RequestError for the home of somebody who is not known here."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise RequestError(
            f"{place}: {text}: {text.partition('/')[0]} is the home of no user of this machine"
        ) from None


class Document(BaseModel):
    """A file's keys and values: no others, and numbers are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


def checked(model: type[M], data: Any, file: Path) -> M:
    """Raises RequestError naming file and field, and what is allowed."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise RequestError(f"{file}: {said(error)}") from None


def no_record(file: Path, kind: str, error: ValueError) -> WorkError:
    """For a record of our own programs that cannot be read (DataError) or is of another form (ValidationError)."""
    why = said(error) if isinstance(error, ValidationError) else str(error).removeprefix(f"{file}: ")
    return WorkError(f"{file}: not the record of a {kind} ({why})")
