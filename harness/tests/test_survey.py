"""Which machines that somebody else set up may become nodes."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from ntier_harness.errors import RequestError
from ntier_harness.paths import Paths
from ntier_harness.runner import Done
from ntier_harness.ssh import Access
from ntier_harness.targets.survey import Strangers, survey

FIT = {
    "uid": "0",
    "os": "Debian",
    "distribution": "debian",
    "release": "13",
    "init": "systemd",
    "python": "/usr/bin/python3",
    "owner": "",
    "databases": "",
    "programs": "sshd",
    "listening": "0016",
}


@pytest.mark.parametrize("release", ["12", "13", "13.1", ""])
def test_debian_becomes_a_node(release):
    assert Strangers((), set(), ()).wrong(FIT | {"release": release}, "us") == ""


@pytest.mark.parametrize(
    ("distribution", "release"), [("debian", "11"), ("ubuntu", "24.04"), ("devuan", "5"), ("", "")]
)
def test_nothing_else_does(distribution, release):
    """Derivatives too: what a node installs comes from Debian's archive."""
    said = FIT | {"os": "Something 1", "distribution": distribution, "release": release}
    assert Strangers((), set(), ()).wrong(said, "us") == "runs Something 1; a node is Debian (12 or later)"


def test_a_name_that_only_the_persons_configuration_knows_comes_with_the_reason(tmp_path):
    said = "ssh: Could not resolve hostname lab-web: Name or service not known"
    runner = SimpleNamespace(now=lambda: 0.0, run=lambda argv, **_: Done(argv, 255, "", said))
    with pytest.raises(RequestError, match=r"give its name or address: names of ~/.ssh/config are not known"):
        survey(runner, Paths(tmp_path, tmp_path, tmp_path, "hosts"), "web1", Access("lab-web", "/k"), "us",
               Strangers((), set(), ()))  # fmt: skip


@pytest.mark.parametrize(("port", "known"), [(22, "pc1"), (2222, "'[pc1]:2222'")])
def test_a_changed_host_key_comes_with_the_command_that_forgets_the_old_one(tmp_path, port, known):
    """Of another port, the name in known_hosts has it."""

    def run(argv, **_):
        return Done(argv, 255, "", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @")

    paths = Paths(tmp_path, tmp_path, tmp_path, "hosts")
    runner = SimpleNamespace(now=lambda: 0.0, run=run)
    with pytest.raises(RequestError) as error:
        survey(runner, paths, "web1", Access("pc1", "/k/known_hosts", port=port), "us", Strangers((), set(), ()))
    command = f"ssh-keygen -R {known} -f /k/known_hosts"
    assert str(error.value).endswith(command)
    file = tmp_path / "known_hosts"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(made, check=True)
    key = (tmp_path / "key.pub").read_text().split()[1]
    file.write_text(f"{known.strip(chr(39))} ssh-ed25519 {key}\n")
    subprocess.run(["sh", "-c", command.replace("/k/known_hosts", str(file))], check=True, capture_output=True)
    assert file.read_text() == ""
