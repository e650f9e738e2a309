"""Purge on a real Incus: a project, pool and bridge of the test's own are removed, and nothing else."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "ntierpurge"
FOREIGN = "ntier-foreign"
SLICE = Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")

pytestmark = pytest.mark.nodes


def incus(*arguments: str, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(["incus", *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def image(path: Path) -> Path:
    """The smallest image that Incus takes."""
    with tarfile.open(path, "w") as tar:
        for name, text in {"metadata.yaml": "architecture: x86_64\ncreation_date: 1\n", "rootfs/empty": ""}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def machine(tmp_path):
    """Our things, and foreign ones beside them: a container with its profile and pool in the default project."""
    state = tmp_path / "state"
    clean(state)  # what a run of the tests that was killed left
    small = image(tmp_path / "image.tar")
    incus("storage", "create", FOREIGN, "dir")
    incus("profile", "create", FOREIGN)
    incus("profile", "device", "add", FOREIGN, "root", "disk", "path=/", f"pool={FOREIGN}")
    incus("image", "import", str(small), "--alias", FOREIGN)
    incus("create", FOREIGN, FOREIGN, "--profile", FOREIGN)
    incus("storage", "create", NAME, "dir")
    incus("network", "create", f"{NAME}br0", "ipv4.address=198.19.255.1/24", "ipv6.address=none")
    incus("project", "create", NAME, "--config", "features.networks=false")
    profile = (ROOT / "setup/profile.yml").read_text().replace("pool: ntier", f"pool: {NAME}")
    incus("--project", NAME, "profile", "edit", "default", stdin=profile.replace("ntierbr0", f"{NAME}br0"))
    incus("--project", NAME, "image", "import", str(small), "--alias", "web")
    incus("--project", NAME, "create", "web", "web1")
    incus("--project", NAME, "create", "web", "db1")
    (state / "local").mkdir(parents=True)
    yield state
    clean(state)


def clean(state: Path) -> None:
    for command in (
        ["delete", "--force", FOREIGN],
        ["image", "delete", FOREIGN],
        ["profile", "delete", FOREIGN],
        ["storage", "delete", FOREIGN],
    ):
        incus(*command, check=False)
    purge(state, "--yes")


def purge(state: Path, *arguments: str) -> subprocess.CompletedProcess:
    """In an empty checkout: the environment that runs this test stays."""
    checkout = state.parent / "checkout"
    (checkout / "setup").mkdir(parents=True, exist_ok=True)
    script = checkout / "setup/purge.sh"
    script.write_text((ROOT / "setup/purge.sh").read_text())
    environment = {**os.environ, "NTIER_NAME": NAME, "NTIER_STATE": str(state)}
    command = ["bash", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def foreign() -> str:
    """All there is of the foreign things, as text."""
    shown = [incus(kind, "show", FOREIGN) for kind in ("profile", "storage")]
    return "".join([*shown, incus("config", "show", FOREIGN), incus("image", "info", FOREIGN)])


def test_without_a_terminal_or_with_an_unknown_option_nothing_is_removed(machine):
    assert purge(machine, "--force").returncode == 2
    done = purge(machine)
    assert done.returncode == 2
    assert "nothing was removed. Use --yes" in done.stderr
    assert "web1" in done.stdout
    assert "db1" in done.stdout
    assert incus("--project", NAME, "list", "--format", "csv", "--columns", "n").split() == ["db1", "web1"]


def test_nothing_of_ours_is_left_and_the_foreign_is_untouched(machine):
    before = foreign()
    done = purge(machine, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    left = [NAME in incus(kind, "list", "--format", "csv") for kind in ("project", "storage", "network")]
    assert left == [False, False, False]
    assert not machine.exists()
    assert foreign() == before
    assert "nothing is here" in purge(machine, "--yes").stdout


def test_slices_of_quotas_are_as_before_set_up(machine):
    now = SLICE.read_text()
    (machine / "slice_us").write_text("4000\n")
    try:
        assert purge(machine, "--yes").returncode == 0
        assert SLICE.read_text() == "4000\n"
    finally:
        SLICE.write_text(now)


def test_what_only_the_state_knows_of_is_not_forgotten(machine):
    """Machines of others that hold a deployment, and machines that cost."""
    for file, text, said in (
        ("hosts/nodes.json", "[]", "make down TARGET=hosts"),
        ("hcloud/rented.json", '{"until_s": null}', "make down TARGET=hcloud"),
    ):
        record = machine / file
        record.parent.mkdir()
        record.write_text(text)
        done = purge(machine, "--yes")
        assert done.returncode == 1
        assert said in done.stderr
        assert record.exists()
        record.unlink()
    assert purge(machine, "--yes").returncode == 0
