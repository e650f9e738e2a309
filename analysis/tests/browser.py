"""A page in a real Chromium, driven over its debugging pipe: what it logs, fetches and computes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]  # fmt: skip


class Page:
    """One tab. `messages`: errors, warnings and exceptions of the page; `requests`: URLs that it asked for."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer, self._next, self._session = b"", 0, None
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._loads = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params) -> dict:
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            answer = self._read(deadline)
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)
        raise TimeoutError(method)

    def _read(self, deadline: float) -> dict:
        while b"\0" not in self._buffer:
            if not select.select([self._receive], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._receive, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: dict) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loads += 1
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(params["exceptionDetails"])[:500])
            case "Log.entryAdded":
                self.messages.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.messages.append(json.dumps(params["args"])[:500])

    def navigate(self, path: Path) -> None:
        """Loads the page and waits for its load event, which needs no scripts."""
        before, deadline = self._loads, time.monotonic() + 90
        self.call("Page.navigate", url=path.as_uri())
        while self._loads == before:
            self._note(self._read(deadline))

    def open(self, path: Path, width: int = 1280, height: int = 900) -> None:
        """Loads the page and waits until every interactive figure is drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.navigate(path)
        drawn = "document.readyState === 'complete' && [...document.querySelectorAll('figure[data-plot]')].every(" \
            "f => f.classList.contains('live') && f.querySelector('.main-svg'))"  # fmt: skip
        deadline = time.monotonic() + 90
        while not self.value(drawn):
            if time.monotonic() > deadline:
                raise TimeoutError(f"figures are not drawn; the page said {self.messages}")
            time.sleep(0.2)
        time.sleep(0.5)  # late errors

    def value(self, expression: str):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)[
            "result"
        ].get("value")


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Starts Chromium with an empty profile, ends it afterwards."""
    to_child, from_us = os.pipe()
    to_us, from_child = os.pipe()
    script = f'exec "$@" 3<&{to_child} 4>&{from_child}'
    command = ["bash", "-c", script, "bash", PROGRAM, *FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        command, pass_fds=(to_child, from_child), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    os.close(to_child)
    os.close(from_child)
    try:
        yield Page(from_us, to_us)
    finally:
        process.terminate()
        process.wait(20)
        os.close(from_us)
        os.close(to_us)
