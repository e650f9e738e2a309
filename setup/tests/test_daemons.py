"""The bridge beside Docker, whose rules drop what other bridges forward."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Keeps DOCKER-USER in a file; without the file there is no such chain, as on a machine without Docker.
IPTABLES = """#!/bin/sh
[ -f "$RULES" ] || exit 1
shift # -w
case $1 in
  -n) exit 0 ;;
  -C) shift 2; grep -qx -e "$*" "$RULES" ;;
  -I) shift 2; echo "$*" >>"$RULES" ;;
esac
"""


@pytest.fixture
def daemons(tmp_path):
    """Runs daemons.sh with an Incus that answers."""
    for name, text in {"iptables": IPTABLES, "incus": "#!/bin/sh\n", "id": "#!/bin/sh\necho 0\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RULES": str(tmp_path / "rules"),
        "NTIER_STATE": str(tmp_path / "state"),
        "NTIER_SLICE": str(tmp_path / "slice_us"),  # the kernel's own is of the whole machine
    }

    def run() -> str:
        command = ["bash", "-c", f"source {ROOT}/setup/daemons.sh"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    return run


def test_bridge_is_let_through_once(daemons, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("")
    assert "Docker lets ntierbr0 through" in daemons()
    assert sorted(rules.read_text().splitlines()) == ["-i ntierbr0 -j ACCEPT", "-o ntierbr0 -j ACCEPT"]
    assert "Docker" not in daemons()
    assert len(rules.read_text().splitlines()) == 2


def test_without_docker_nothing_is_added(daemons, tmp_path):
    assert "Docker" not in daemons()
    assert not (tmp_path / "rules").exists()


def test_slices_of_quotas_are_short_and_what_was_before_is_known(daemons, tmp_path):
    slice_us = tmp_path / "slice_us"
    slice_us.write_text("5000\n")
    assert "slices of 1 ms" in daemons()
    assert slice_us.read_text() == "1000\n"
    assert (tmp_path / "state/slice_us").read_text() == "5000\n"
    assert "slices" not in daemons()
