"""The few calls of the Incus client that image building needs, all within the project `ntier`."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

PROJECT = "ntier"
DIGEST = "user.ntier.digest"
VERSIONS = "user.ntier.versions"


class IncusError(RuntimeError):
    """A call of the client that failed; the message has the call and what it said."""


def run(*arguments: str, stdin: str | None = None, log: Any = None) -> str:
    """`incus --project ntier ARGUMENTS`; returns its output. Raises IncusError. `log`: a file that gets a copy."""
    command = ["incus", "--project", PROJECT, *arguments]
    done = subprocess.run(command, input=stdin or "", capture_output=True, text=True)
    if log:
        log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        log.flush()
    if done.returncode:
        raise IncusError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def images() -> dict[str, dict]:
    """Alias -> image of the project."""
    listed = json.loads(run("image", "list", "--format", "json"))
    return {alias["name"]: image for image in listed for alias in image["aliases"]}


def fingerprint(said: str) -> str:
    """The fingerprint in what the client says after making an image."""
    return re.search(r"[0-9a-f]{64}", said)[0]


def instances() -> dict[str, dict]:
    return {instance["name"]: instance for instance in json.loads(run("list", "--format", "json"))}


def exists(instance: str) -> bool:
    return instance in instances()


def delete_instance(name: str) -> None:
    if exists(name):
        run("delete", "--force", name)


def delete_nameless_images() -> None:
    """Images of the project without an alias: a set-up that was killed before it gave one. No other uses them."""
    for image in json.loads(run("image", "list", "--format", "json")):
        if not image["aliases"]:
            run("image", "delete", image["fingerprint"])


def replace_alias(alias: str, fingerprint: str, log: Any = None) -> None:
    """Points `alias` to the new image and removes the one it pointed to; at no time is the alias without an image for
    longer than one call."""
    old = images().get(alias)
    if old and old["fingerprint"] == fingerprint:
        return
    if old:
        run("image", "alias", "delete", alias, log=log)
    run("image", "alias", "create", alias, fingerprint, log=log)
    if old and len(old["aliases"]) == 1:
        run("image", "delete", old["fingerprint"], log=log)
