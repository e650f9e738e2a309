"""What the fakes of the providers' APIs share: a server, faults that are asked for, and a count of what exists."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Fault:
    """What goes wrong with requests of `method` for things of a kind, `times` times after `skip` that go well. `of`:
    machine, network, filter, address, or what else the provider has (`FakeCloud.things`). `kind`:

    * quota: refused, the account's limit is reached
    * rate: 429
    * error: 500, nothing is done
    * error_after: 500, but it is done
    * capacity: no machine is free in `location`
    * slow: answered after `seconds`
    """

    kind: str
    method: str = "POST"
    of: str = "machine"
    times: int = 1
    skip: int = 0
    location: str | None = None
    seconds: float = 0.0

    def takes(self, method: str, path: str, things: str, location: str | None) -> bool:
        """`things`: where the provider has those of the kind; `location`: that the request names."""
        if method != self.method or not re.search(things + ("/" if method == "DELETE" else "(/detail)?$"), path):
            return False
        if self.location and location != self.location:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return self.times >= 0


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class FakeCloud:
    """The account. `addresses`: of the machines, in this order, each free again once its machine is gone.
    `created`, `deleted`: called with a machine's record (bench/rented_local.py lets real nodes stand for them)."""

    addresses: Callable[[int], str] = lambda i: f"203.0.113.{i + 1}"
    address_of: Callable[[str], str] | None = None
    """The address of this name instead."""
    created: Callable[[dict[str, Any]], None] = lambda _: None
    deleted: Callable[[dict[str, Any]], None] = lambda _: None
    faults: list[Fault] = field(default_factory=list)
    resources: dict[str, dict[Any, dict[str, Any]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    made: int = 0
    """Machines that were ever made."""
    most: int = 0
    """Machines that there were at once."""
    user_data: dict[str, str] = field(default_factory=dict)

    target: ClassVar[str]
    """Of the harness."""
    provider: ClassVar[str]
    """Terraform's, as in its registry."""
    version: ClassVar[str]
    """Of the provider in tests: a newer one might ask for what the fake does not answer."""
    secrets: ClassVar[tuple[str, ...]]
    """What must be in no file."""
    kinds: ClassVar[tuple[str, ...]]
    things: ClassVar[dict[str, str]]
    """Where in the API the kinds of `Fault.of` are."""
    errors: ClassVar[dict[str, tuple[int, str, str]]]
    """Kind of `Fault` -> HTTP status, code, message."""
    locations: ClassVar[tuple[str, str]]
    """The first two that are tried."""
    offer: ClassVar[dict[str, Any]] = {}
    """What the offer says other than the target's own."""

    def __post_init__(self) -> None:
        self.resources = {kind: {} for kind in self.kinds}
        self._ids = itertools.count(1000)
        self._lock = threading.RLock()
        self._server: ThreadingHTTPServer | None = None

    # ---- as a server

    def __enter__(self) -> FakeCloud:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Quiet."""

            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                status, answer = fake.answer(self.command, self.path, self.headers.get(fake.credential), body)
                data = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in fake.headers(self.path, status).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = handle_one

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: Any) -> None:
                """A client that was killed is no error of ours."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    credential: ClassVar[str] = "Authorization"
    """Header with the token."""

    def headers(self, _path: str, _status: int) -> dict[str, str]:
        """More of them in the answer."""
        return {}

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What leads provider and harness here, and lets them in."""
        raise NotImplementedError

    def count(self) -> dict[str, int]:
        """What exists, without the kinds of which there is nothing."""
        with self._lock:
            return {kind: len(things) for kind, things in self.resources.items() if things}

    def names(self, kind: str = "servers") -> list[str]:
        with self._lock:
            return sorted(r["name"] for r in self.resources[kind].values())

    def next_address(self, name: str, taken: set[str]) -> str:
        if self.address_of:
            return self.address_of(name)
        return next(a for i in itertools.count() if (a := self.addresses(i)) not in taken)

    # ---- what tests do to it

    def switch_off(self, machine: dict[str, Any]) -> None:
        raise NotImplementedError

    def where(self, machine: dict[str, Any]) -> str:
        """Its location."""
        raise NotImplementedError

    def take_away(self, machine: dict[str, Any]) -> None:
        raise NotImplementedError

    def add_network(self, name: str, labels: dict[str, str]) -> None:
        raise NotImplementedError

    def let_in(self) -> list[list[str]]:
        """Networks from which the filters let SSH in."""
        raise NotImplementedError

    def expected(self, machines: int) -> dict[str, int]:
        """What there is of a deployment of so many machines."""
        raise NotImplementedError

    def populate(self, owner: str, machines: int) -> int:
        """Makes so many machines with all that belongs to them; returns how many things these are."""
        raise NotImplementedError

    # ---- requests

    def answer(self, method: str, url: str, token: str | None, body: dict[str, Any]) -> tuple[int, Any]:
        parsed = urllib.parse.urlparse(url)
        path, query = self.shortened(parsed.path), urllib.parse.parse_qs(parsed.query)
        with self._lock:
            self.requests.append(f"{method} {path}")
            place = self.place(body)
            fault = next((f for f in self.faults if f.takes(method, path, self.things[f.of], place)), None)
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        try:
            self.check_token(path, token, body)
            if fault and fault.kind in self.errors:
                raise Refused(*self.errors[fault.kind])
            with self._lock:
                status, answer = self._route(method, path, query, body)
                if fault:
                    self.after(fault, answer)
            return status, answer
        except Refused as refused:
            return refused.status, self.told(path, refused)

    def after(self, fault: Fault, _answer: Any) -> None:
        if fault.kind == "error_after":
            raise Refused(*self.errors["error"])

    def shortened(self, path: str) -> str:
        return path

    def place(self, _body: dict[str, Any]) -> str | None:
        """Location that a request names."""
        return None

    def check_token(self, path: str, token: str | None, body: dict[str, Any]) -> None:
        """Raises Refused for who is not let in."""
        raise NotImplementedError

    def told(self, path: str, refused: Refused) -> dict[str, Any]:
        """An error as the API says it."""
        raise NotImplementedError

    def _route(self, method: str, path: str, query: Any, body: Any) -> tuple[int, Any]:
        raise NotImplementedError


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
