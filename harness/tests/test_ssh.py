"""Where SSH's sockets can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from ntier_harness.errors import RequestError
from ntier_harness.paths import Paths
from ntier_harness.ssh import check_place


def place(state: str) -> Paths:
    return Paths(Path("/root"), Path(state), Path("/root/results"))


@pytest.mark.parametrize("state", ["/var/lib/ntier", "/home/someone/.local/state/ntier", "/" + 41 * "x"])
def test_sockets_fit_into_usual_places(state):
    check_place(place(state))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("/" + 42 * "x", "too long for SSH's sockets in it; allowed are 42 bytes"),
        ("/a b", "NTIER_STATE: /a b has ' ' in it"),
        ("/a%b", "NTIER_STATE: /a%b has '%' in it"),
        ("/o'brien", "has \"'\" in it, which SSH's settings do not take"),
    ],
)
def test_a_place_that_ssh_cannot_use_is_refused_before_anything_is_made(state, said):
    with pytest.raises(RequestError, match=said):
        check_place(place(state))
