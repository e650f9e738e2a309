"""Which machines that somebody else set up may become nodes."""

from __future__ import annotations

import pytest
from ntier_harness.targets.survey import Strangers

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
