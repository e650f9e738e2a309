"""MySQL Cluster's programs from packages, which stand for MySQL's own, and what is refused. A build takes 45 minutes,
and is not tested here; what it hands on goes through the same steps."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "server-core": ["usr/sbin/mysqld"],
    "client": ["usr/bin/mysql"],
    "management-server": ["usr/sbin/ndb_mgmd", "usr/bin/ndb_mgm"],
    "data-node": ["usr/sbin/ndbmtd"],
}
SAYS = "#!/bin/sh\necho '/usr/sbin/mysqld  Ver 9.7.4-cluster for Linux on x86_64 (MySQL Cluster Community Server)'\n"


def package(folder: Path, name: str, files: list[str]) -> None:
    """A .deb file with these files, each a program that says its version."""
    tree = folder / f"tree-{name}"
    for file in [*files, *(["usr/share/mysql-8.4/english/errmsg.sys"] if name == "server-core" else [])]:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(SAYS)
        (tree / file).chmod(0o755)
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: mysql-cluster-community-{name}\nVersion: 9.7.4\nArchitecture: all\nMaintainer: test <a@b.c>\n"
    (tree / "DEBIAN/control").write_text(f"{control}Description: test\n")
    made = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, folder / f"{name}.deb"]
    subprocess.run(made, check=True, capture_output=True)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    for name, files in PROGRAMS.items():
        package(folder, name, files)
    return folder


def ndb(state: Path, *arguments: str, packages: Path | str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NTIER_STATE": str(state), "NTIER_NDB_PACKAGES": str(packages)}
    return subprocess.run([ROOT / "setup/ndb.sh", *arguments], env=environment, capture_output=True, text=True)


def test_a_state_whose_place_depends_on_where_one_stands_is_refused():
    done = ndb(Path("state"), "--check")
    assert done.returncode == 2
    assert done.stderr.startswith("error: NTIER_STATE: 'state' is not an absolute path; allowed are")


def test_packages_become_the_archive_that_images_are_made_from(packages, tmp_path):
    state = tmp_path / "state"
    assert ndb(state, "--check", packages=packages).returncode == 1
    done = ndb(state, packages=packages)
    assert done.returncode == 0, done.stderr
    record = json.loads((state / "ndb/version.json").read_text())
    archive = (state / "ndb/programs.tar.zst").read_bytes()
    assert record["version"] == "9.7.4-cluster"
    assert (record["bytes"], record["sha256"]) == (len(archive), sha256(archive).hexdigest())
    plain = subprocess.run(["zstd", "-dc"], input=archive, capture_output=True, check=True).stdout
    (tmp_path / "plain.tar").write_bytes(plain)
    with tarfile.open(tmp_path / "plain.tar") as tar:
        names = {name.removeprefix("./") for name in tar.getnames()}
    assert {f"bin/{Path(file).name}" for files in PROGRAMS.values() for file in files} <= names
    assert {"share/english/errmsg.sys", "VERSION"} <= names


def test_a_second_time_nothing_is_made_and_other_packages_are_taken(packages, tmp_path):
    state = tmp_path / "state"
    ndb(state, packages=packages)
    first = (state / "ndb/version.json").read_text()
    for again in (packages, ""):  # without a word they stay, too
        done = ndb(state, packages=again)
        assert done.stdout == "MySQL Cluster's programs are there: 9.7.4-cluster, from MySQL's packages\n"
        assert (state / "ndb/version.json").read_text() == first
    assert ndb(state, "--check").returncode == 0
    os.utime(packages / "client.deb", (1, 1))
    assert ndb(state, "--check", packages=packages).returncode == 1


def test_one_file_of_all_packages(packages, tmp_path):
    bundle = tmp_path / "mysql-cluster.tar"
    with tarfile.open(bundle, "w") as tar:
        for deb in packages.glob("*.deb"):
            tar.add(deb, deb.name)
    done = ndb(tmp_path / "state", packages=bundle)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("missing", "says"),
    [("data-node", "ndbmtd is not among what was made"), ("server-core", "there is no mysqld in")],
)
def test_packages_that_lack_a_program_leave_no_archive(packages, tmp_path, missing, says):
    (packages / f"{missing}.deb").unlink()
    done = ndb(tmp_path / "state", packages=packages)
    assert done.returncode == 1
    assert says in done.stderr
    assert [p.name for p in (tmp_path / "state/ndb").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("arguments", "packages_are", "says"),
    [
        (["--fast"], "", "unknown option '--fast'; allowed: --idle, --check"),
        ([], "/nowhere", "NTIER_NDB_PACKAGES: /nowhere is neither a folder nor a .tar or .deb file"),
        ([], "empty", "there is no .deb file in"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, arguments, packages_are, says):
    (tmp_path / "empty").mkdir()
    given = tmp_path / packages_are if packages_are == "empty" else packages_are
    done = ndb(tmp_path / "state", *arguments, packages=given)
    assert done.returncode == 2
    assert says in done.stderr
