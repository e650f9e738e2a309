"""From which mirror, and through which proxy, a node has its packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import base
import pytest

ROOT = Path(__file__).resolve().parents[2]
MIRRORS = base.mirrors.__wrapped__


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("http://mirror.example.org/debian/", "http://mirror.example.org/debian"),
        ("cdrom://[Debian 13]/", None),
        ("mirror+file:{list}", "https://mirror.example.org/debian"),
        ("mirror+file:/nowhere", None),
    ],
)
def test_mirror_that_a_node_can_use(tmp_path, uri, expected):
    mirrors = tmp_path / "debian.list"
    mirrors.write_text("https://mirror.example.org/debian/\nhttps://second.example.org/debian/\n")
    assert base.reachable_mirror(uri.format(list=mirrors)) == expected


def test_setting_overrides_the_mirror(monkeypatch):
    monkeypatch.setitem(os.environ, "NTIER_DEBIAN_MIRROR", "http://mirror.example.org/debian")
    assert base.mirrors.__wrapped__()[0] == "http://mirror.example.org/debian"


def test_a_machine_that_knows_no_mirror_is_told_the_setting(monkeypatch, capsys):
    monkeypatch.delenv("NTIER_DEBIAN_MIRROR", raising=False)
    nothing = subprocess.CompletedProcess([], 0, stdout="Ubuntu|Ubuntu|http://archive.example.org/ubuntu/\n")
    monkeypatch.setattr(base.subprocess, "run", lambda *_, **__: nothing)
    with pytest.raises(SystemExit, match="2"):
        base.mirrors.__wrapped__()
    assert "NTIER_DEBIAN_MIRROR" in capsys.readouterr().err


ONE_BASE = {"snapshot": "20260101T000000Z", "sources": ["deb {mirror} sid main", "deb {security} sid-security main"]}


@pytest.fixture
def network(monkeypatch):
    """network(apt's configuration here, NAME=VALUE of the environment): the node's options."""
    for name in base.PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    places = ("http://mirror.example.org/debian", "http://security.example.org/debian-security")
    monkeypatch.setattr(base, "mirrors", lambda: places)

    def options(dump: str = "", **environment: str) -> list[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(base.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=dump))
        return base.apt_options(ONE_BASE, pinned=False)

    return options


def test_a_node_goes_through_the_proxy_of_the_environment(network):
    assert network() == []
    proxy = 'Acquire::http::Proxy "http://proxy.example.org:3128"'
    assert network(http_proxy="http://proxy.example.org:3128") == [proxy]
    past = 'Acquire::http::Proxy::security.example.org "DIRECT"'
    assert network(no_proxy="security.example.org") == [proxy, past]
    own = 'Acquire::http::Proxy "http://apt.example.org:3142"'
    assert network(f"{own};\n") == [own], "what apt is told here comes first"


def test_a_shell_without_proxies_has_those_of_the_one_before(network, monkeypatch, tmp_path):
    """As sudo makes it: the images stay as they are."""
    before = dict(os.environ)
    with monkeypatch.context() as shell:
        shell.setattr(os, "environ", before | {"HTTPS_PROXY": "http://proxy.example.org:3128"})
        base.keep_proxies(tmp_path)
    for ask, expected in ((False, "http://proxy.example.org:3128"), (True, None), (False, None)):
        with monkeypatch.context() as shell:
            shell.setattr(os, "environ", dict(before))
            base.keep_proxies(tmp_path, ask=ask)
            assert os.environ.get("https_proxy") == expected
    assert (tmp_path / "images/proxies.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("address", ["http://localhost:3128/", "http://127.0.0.1:3142", "localhost:3128"])
def test_a_proxy_or_mirror_that_a_node_would_look_for_in_itself_is_refused(network, monkeypatch, capsys, address):
    with pytest.raises(SystemExit, match="2"):
        network(http_proxy=address)
    with pytest.raises(SystemExit, match="2"):
        network(f'Acquire::http::Proxy "{address}";\n')
    monkeypatch.setenv("NTIER_DEBIAN_MIRROR", address)
    monkeypatch.setattr(base, "package_sources", list)
    with pytest.raises(SystemExit, match="2"):
        MIRRORS()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert all("error: the " in line and "let it listen on 198.18.0.1 too" in line for line in said)
    assert (ROOT / "setup/preseed.yml.j2").read_text().count(f"ipv4.address: {base.BRIDGE}/16") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root brings apt's lists up to date")
def test_where_apt_has_no_lists_they_are_fetched(monkeypatch, tmp_path):
    """As in slim images, which have all packages and no lists. A folder is the archive, which no node can use."""
    for name in ("lists/partial", "cache/archives/partial", "archive/dists/trixie/main/binary-amd64"):
        (tmp_path / name).mkdir(parents=True)
    packages = b"Package: some\nVersion: 1\nArchitecture: all\nFilename: some.deb\nSize: 0\n"
    (tmp_path / "archive/dists/trixie/main/binary-amd64/Packages").write_bytes(packages)
    hashed = f" {hashlib.sha256(packages).hexdigest()} {len(packages)} main/binary-amd64/Packages\n"
    release = "Origin: Debian\nLabel: Debian\nCodename: trixie\nArchitectures: amd64\nComponents: main\n"
    date = f"Date: {datetime.now(UTC):%a, %d %b %Y %H:%M:%S} UTC\n"
    (tmp_path / "archive/dists/trixie/Release").write_text(f"{release}{date}SHA256:\n{hashed}")
    (tmp_path / "list").write_text(f"deb [trusted=yes arch=amd64] file:{tmp_path}/archive trixie main\n")
    config = f'Dir::Etc::sourcelist "{tmp_path}/list"; Dir::Etc::sourceparts "-"; APT::Sandbox::User "root";'
    (tmp_path / "conf").write_text(f'{config} Dir::State::lists "{tmp_path}/lists"; Dir::Cache "{tmp_path}/cache";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "conf"))
    monkeypatch.delenv("NTIER_DEBIAN_MIRROR", raising=False)
    assert base.package_sources() == []
    with pytest.raises(SystemExit, match="2"):
        base.mirrors.__wrapped__()
    assert [origin for origin, _, _ in base.package_sources()] == ["Debian"]
