"""Ansible on the nodes: one call, its events as they come, the first failure as the reason."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner


class Events:
    """Reads the lines of the jsonl callback: tasks as progress, the first failure as the reason. `on_failure` is told
    it at once, since the other nodes may wait for long for what failed."""

    def __init__(self, on_task: Callable[[str], None], on_failure: Callable[[str], None] = lambda _: None) -> None:
        self.on_task, self.on_failure = on_task, on_failure
        self.tasks = 0
        self.failure = ""
        self.last = ""

    def line(self, text: str) -> None:
        try:
            event = json.loads(text)
        except ValueError:
            self.last = text.strip() or self.last
            return
        kind = event.get("_event", "")
        if kind in ("v2_runner_on_ok", "v2_runner_on_skipped"):
            self.tasks += 1
            self.on_task(f"{next(iter(event.get('hosts', {})), '')}: {event.get('task', {}).get('name', '')}")
        elif kind in ("v2_runner_on_failed", "v2_runner_on_unreachable") and not self.failure:
            for host, result in event.get("hosts", {}).items():
                if not result.get("ignore_errors"):
                    self.failure = f"{host}: task {event.get('task', {}).get('name', '?')!r}: {reason(result)[:400]}"
                    self.on_failure(self.failure)


def reason(result: dict[str, Any]) -> str:
    """Why a task failed: the module's message, or a command's last line, since the message says nothing about a
    command."""
    message = str(result.get("msg") or "failed").strip()
    said = str(result.get("stderr") or result.get("stdout") or "").strip().splitlines()
    if said and message in ("failed", "non-zero return code"):
        return f"{said[-1].strip()} (exit code {result.get('rc', 'unknown')})"
    return message


def play(runner: Runner, paths: Paths, names: Sequence[str], on_task: Callable[[str], None] = lambda _: None, *,
         on_failure: Callable[[str], None] = lambda _: None, roles: Path | None = None, check: bool = False,
         limit: Sequence[str] = ()) -> int:  # fmt: skip
    """Runs playbooks (names of `ansible/playbooks`, or paths) on the nodes of `nodes.json`, or on those in `limit`;
    returns the number of tasks. `on_failure`: told the first failure when it happens. `roles`: of the system, which
    come before those that all systems share.

    Raises WorkError with host, task and message of the first failed task."""
    log = paths.logs / f"ansible-{Path(names[0]).stem}.jsonl"
    log.unlink(missing_ok=True)
    log.touch(mode=0o600)  # from the beginning, and also if the play is interrupted: what fails may print a password
    # what comes later wins: the deployment knows the digests of a system's own roles, set-up does not
    files = [f for f in (paths.install_digests, paths.deployment, paths.secrets, paths.machine) if f.exists()]
    argv = [
        str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(paths.nodes),
        *(n if n.endswith(".yml") else f"playbooks/{n}.yml" for n in names),
        *(part for f in files for part in ("-e", f"@{f}")),
        *(["--check"] if check else []), *(["--limit", ",".join(limit)] if limit else []),
    ]  # fmt: skip
    # what the person's shell tells Ansible is not for this: not to check host keys, say, or to take another strategy
    env: dict[str, str | None] = {name: None for name in os.environ if name.startswith("ANSIBLE_")}
    env |= {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.jsonl", "ANSIBLE_NOCOLOR": "1", "NTIER_STATE": str(paths.state)}
    env["ANSIBLE_CONFIG"] = str(paths.root / "ansible" / "ansible.cfg")  # not the person's own
    env["ANSIBLE_HOME"] = str(paths.place / "ansible")  # a home that may not be written is no obstacle
    env["LC_ALL"] = "C.UTF-8"  # Ansible ends at once in a locale that is not UTF-8 or does not exist
    shared = paths.root / "ansible" / "roles"
    env["ANSIBLE_ROLES_PATH"] = ":".join(str(folder) for folder in (roles, shared) if folder)
    reader = Events(on_task, on_failure)
    code = runner.lines(argv, reader.line, log=log, cwd=paths.root / "ansible", env=env)
    if code:
        reason = reader.failure or reader.last or f"ansible-playbook ended with {code}"
        raise WorkError(f"{Path(names[0]).stem}: {reason}; its log: {log}")
    return reader.tasks
