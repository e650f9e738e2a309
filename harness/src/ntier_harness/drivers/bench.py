"""A driver that is run by the contract on this machine: the web server that it asks, what it is told, its folder and
its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ntier_harness.drivers import CONTRACT, Share, split
from ntier_harness.errors import RequestError

WORKERS, THINK_S, RATE_PER_S = 6, 0.2, 20
AMOUNT, ENDLESS = 120, 80_000  # pieces of work; pieces, and seconds, of what is to be ended
PHASES = {"ramp_up_s": 1.0, "run_s": 4.0, "ramp_down_s": 1.0}
TIER = "server"  # of what a driver is told: this machine alone
READY_S = 60.0  # as a trial allows (load.MAX_BOOT_S)


class Server:
    """A web server that notes when it was asked; each page takes 5 ms."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        asked_s = self.asked_s

        class Page(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked_s.append(time.time())
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(0.005)
                body = b"<html>page</html>\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A driver that ends cuts its requests off."""

        self._server = Quiet(("127.0.0.1", 0), Page)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Started:
    """A driver in a folder of its own."""

    folder: Path
    share: Share
    begun_s: float
    start_s: float = 0.0
    rows: list[dict[str, str]] = field(default_factory=list)

    @property
    def code(self) -> int | None:
        with contextlib.suppress(FileNotFoundError):
            return int((self.folder / "driver.rc").read_text())
        return None

    def lines(self) -> list[str]:
        """Whole lines of the heartbeat."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "progress.csv").read_text(errors="replace").rpartition("\n")[0].splitlines()
        return []

    @property
    def last_words(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            lines = (self.folder / "driver.out").read_text(errors="replace").strip().splitlines()
            return f": {lines[-1][:200]}" if lines else ""
        return ""

    def release(self, at_s: float) -> None:
        (self.folder / "start.new").write_text(f"{round(1000 * at_s)}\n")
        (self.folder / "start.new").rename(self.folder / "start")
        self.start_s = round(at_s, 3)

    def wait(self, until_s: float) -> int | None:
        while self.code is None and time.time() < until_s:
            time.sleep(0.05)
        return self.code


@dataclass
class Bench:
    """The runs of one check."""

    command: list[str]
    starter: Path
    settings: Mapping[str, Any]
    model: str
    place: Path
    server: Server
    ready_s: float = field(default_factory=lambda: READY_S)
    """How long a driver may take to its first heartbeat."""
    runs: int = 0

    def told(self, share: Share, seed: int, *, endless: bool = False) -> dict[str, Any]:
        addresses, amount = ["127.0.0.1"], ENDLESS if endless else AMOUNT
        phases = PHASES | ({"run_s": ENDLESS} if endless else {})
        base = {
            "contract": CONTRACT, "load_model": self.model, "workload": "check", "client": share.client,
            "clients": share.clients, "workers": share.workers, "first_worker": share.first, "workers_total": WORKERS,
            "seed": seed, "think_time_s": THINK_S, "phases": phases, "targets": {TIER: addresses},
            "entry": {"addresses": addresses, "port": self.server.port, "path": ""},
            "parameters": {"rate_per_s": RATE_PER_S, "amount": amount},
        }  # fmt: skip
        more = dict(self.settings)
        base["parameters"] |= more.pop("parameters", {})
        if endless:  # also where an amount was given, which may be done before the driver is told to end
            base["parameters"]["amount"] = ENDLESS
        return base | more

    def start(self, share: Share, seed: int = 1, *, endless: bool = False, text: str | None = None) -> Started:
        """`endless`: goes on until it is ended. `text`: written to driver.json instead of the usual contents."""
        self.runs += 1
        folder = self.place / f"run{self.runs}"
        folder.mkdir()
        (folder / "driver.json").write_text(text or json.dumps(self.told(share, seed, endless=endless), indent=1))
        started = Started(folder, share, time.time())
        done = subprocess.run([self.starter, folder, *self.command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RequestError(f"driver: {done.stderr.strip()}")
        return started

    def get_ready(self, run: Started) -> bool:
        """Waits for the first heartbeat."""
        while run.code is None and time.time() < run.begun_s + self.ready_s:
            if len(run.lines()) > 1:
                return True
            time.sleep(0.05)
        return len(run.lines()) > 1

    @property
    def whole(self) -> Share:
        return split(WORKERS, 1)[0]

    def left(self, gone_s: float = 0.0) -> list[int]:
        """Processes of the check's drivers; those that are still there after `gone_s`."""
        until = time.monotonic() + gone_s
        while (processes := self._alive()) and time.monotonic() < until:
            time.sleep(0.05)
        return processes

    def _alive(self) -> list[int]:
        mark, processes = f"NTIER_LOAD={self.place}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    processes.append(int(folder.name))
        return processes

    def end(self) -> None:
        for pid in self.left():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
