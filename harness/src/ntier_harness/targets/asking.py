"""How a provider's HTTP API is asked: again, while it is busy or broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ntier_harness.errors import WorkError
from ntier_harness.targets.account import Thing
from ntier_harness.targets.rental import Offer

TRIES, FIRST_WAIT_S = 7, 0.5  # 0.5 + 1 + 2 + ... = 31 s in all
BUSY = (409, 422, 423, 429)  # changed meanwhile, still in use, locked, too many requests


def is_token(text: str) -> bool:
    """Whether it can be in a request's header; Python would say the whole text of one that cannot."""
    return all("!" <= sign <= "~" for sign in text)


@dataclass(frozen=True)
class Answer:
    """`status`: of HTTP; 0: there was no answer. `said`: what went wrong."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    said: str = ""


class HttpAccount:
    """What the accounts (`Account`) have in common. `sleep`: waits so many seconds."""

    name: str
    hint: str
    """What to look at if the provider lets us not in."""
    kinds: tuple[str, ...]
    """Of things, in the order in which they can be deleted."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    def delete(self, thing: Thing) -> None:
        """What is gone already is no error."""
        raise NotImplementedError

    def once(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        """One request."""
        raise NotImplementedError

    def remove(self, things: list[Thing]) -> None:
        """One that cannot be deleted keeps those of the next kinds, which it may need, but no other of its own kind."""
        for kind in self.kinds:
            problems = []
            for thing in (t for t in things if t.kind == kind):
                try:
                    self.delete(thing)
                except WorkError as error:
                    problems.append(error)
            if problems:
                raise problems[0]

    def prices(self, _location: str) -> dict[str, float]:
        return {}

    def lacks(self, _offer: Offer) -> list[str]:
        return []

    def ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        gone_is_fine: bool = False,
        tries: int = TRIES,
    ) -> dict[str, Any]:
        """Tries again while the API is busy or broken. Raises WorkError with what it said last."""
        for number in range(tries):
            answer = self.once(method, path, body)
            if 0 < answer.status < 300 or (answer.status == 404 and gone_is_fine):
                return answer.body
            if answer.status and answer.status not in BUSY and answer.status < 500:
                break
            if number + 1 < tries:
                self._sleep(FIRST_WAIT_S * 2**number)
        hint = f"; {self.hint}" if answer.status in (401, 403) else ""
        raise WorkError(f"{self.name}: {method} {path.partition('?')[0]}: {answer.said}{hint}")
