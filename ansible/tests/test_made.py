"""What a deployment makes on its owner's machine, and that it goes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[1] / "roles"
MADE = ROLES / "machine/files/ntier-made"


class Machine:
    """A folder that stands for an owner's machine; the record is in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.record = root / "machine", root / "ntier" / "before"
        self.record.mkdir(parents=True)
        self.root.mkdir()

    def made(self, command: str, text: str = "", **more: str) -> None:
        environment = {**os.environ, "NTIER_RECORD": str(self.record), **more}
        subprocess.run([sys.executable, MADE, command], input=text, env=environment, check=True, text=True)

    def note(self, **wanted: list[str]) -> None:
        self.made("note", json.dumps({how: [str(self.root / path) for path in paths] for how, paths in wanted.items()}))

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def tree(self) -> dict[str, tuple[int, str]]:
        files = {}
        for path in sorted(self.root.rglob("*")):
            content = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
            files[str(path.relative_to(self.root))] = (path.lstat().st_mode, content)
        return files


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


LISTS = {
    "makes": ["opt/ntier", "opt/jmeter", "etc/app.d/ntier.conf", "var/www/ntier", "etc/new/deep/file"],
    "shares": ["var/www", "opt"],
    "replaces": ["etc/app.conf", "etc/logrotate.timer", "etc/masked.timer", "etc/none.timer"],
    "edits": ["etc/hosts"],
}


def deploy(machine: Machine) -> None:
    for path in ("opt/ntier/app.jar", "etc/app.d/ntier.conf", "var/www/ntier/index.html", "etc/new/deep/file"):
        machine.write(path, "ours")
    machine.write("etc/app.conf", "ours", 0o600)
    for name in ("logrotate", "masked", "none"):
        (machine.root / f"etc/{name}.timer").unlink(missing_ok=True)
        (machine.root / f"etc/{name}.timer").symlink_to("/dev/null")
    hosts = machine.root / "etc/hosts"
    hosts.write_text(f"{hosts.read_text()}\n# BEGIN ntier\n198.18.1.1 web1\n# END ntier\n")


@pytest.fixture
def owned(machine: Machine) -> Machine:
    """With things of its owner's: a service's configuration, a JMeter, a timer, a masked timer, a name."""
    machine.write("etc/app.conf", "the owner's", 0o640)
    machine.write("opt/jmeter/plan.jmx", "the owner's")
    machine.write("etc/logrotate.timer", "[Timer]")
    (machine.root / "etc/masked.timer").symlink_to("/dev/null")
    machine.write("etc/hosts", "10.9.9.9 printer")
    return machine


def test_a_machine_is_as_before(owned):
    before = owned.tree()
    owned.note(**LISTS)
    deploy(owned)
    assert owned.tree() != before
    owned.note(**LISTS)  # a second deployment: what it finds now is ours
    deploy(owned)
    owned.made("undo")
    assert owned.tree() == before
    assert not owned.record.parent.exists()


def test_what_the_owner_did_meanwhile_stays(owned):
    owned.note(**LISTS)
    deploy(owned)
    hosts = owned.root / "etc/hosts"
    hosts.write_text(f"10.1.1.1 new\n{hosts.read_text()}")
    owned.write("etc/app.d/mine.conf", "the owner's")
    owned.made("undo")
    assert hosts.read_text() == "10.1.1.1 new\n10.9.9.9 printer\n"
    assert [p.name for p in (owned.root / "etc/app.d").iterdir()] == ["mine.conf"]


def test_what_the_owner_put_into_a_folder_that_came_with_us_stays(owned):
    owned.note(**LISTS)
    deploy(owned)
    page = owned.write("var/www/mine/index.html", "the owner's")
    owned.write("var/www/html/.empty", "").unlink()  # a package's, which it took along
    owned.made("undo")
    assert page.read_text() == "the owner's"
    assert [p.name for p in (owned.root / "var/www").iterdir()] == ["mine"]


def test_a_folder_that_an_earlier_version_would_have_removed_whole_is_shared_too(owned):
    owned.note(makes=["var/www"])
    deploy(owned)
    owned.note(**LISTS)
    owned.write("var/www/mine/index.html", "the owner's")
    owned.made("undo")
    assert [p.name for p in (owned.root / "var/www").iterdir()] == ["mine"]


def test_an_undo_that_was_cut_short_is_repeated(owned):
    before = owned.tree()
    owned.note(**LISTS)
    deploy(owned)
    record = (owned.record / "record.json").read_text()
    copies = {p: p.read_bytes() for p in (owned.record / "files").iterdir() if not p.is_symlink()}
    owned.made("undo")
    (owned.record / "files").mkdir(parents=True)
    for path, content in copies.items():  # as if it had ended before its last step
        path.write_bytes(content)
        path.chmod(before["etc/app.conf"][0] & 0o777 if content == b"the owner's" else 0o644)
    (owned.record / "files" / "2.link").symlink_to("/dev/null")
    for entry in (paths := json.loads(record))["paths"].values():
        if "copy" in entry and not os.path.lexists(entry["copy"]):
            os.symlink("/dev/null", entry["copy"])
    (owned.record / "record.json").write_text(json.dumps(paths))
    owned.made("undo")
    assert owned.tree() == before


def test_only_packages_that_were_not_there_are_noted(machine):
    said = """VERSION 3
APT::Architecture=amd64

zstd - - none < 1.5.7 amd64 foreign /var/cache/apt/archives/zstd.deb
tzdata 2025a all foreign < 2025b all foreign /var/cache/apt/archives/tzdata.deb
nftables - - none < 1.1.3 amd64 none **CONFIGURE**
mariadb-server 11.8 amd64 none > - - none **REMOVE**
"""
    machine.made("packages", said)
    machine.made("packages", said.replace("nftables", "sysstat"))
    assert (machine.record / "packages").read_text().split() == ["zstd:amd64", "nftables:amd64", "sysstat:amd64"]


def test_a_package_whose_configuration_the_owner_kept_is_noted_apart(machine, tmp_path):
    """It was removed once, not purged: to purge it would take the owner's files along."""
    dpkg = tmp_path / "bin" / "dpkg-query"
    dpkg.parent.mkdir()
    dpkg.write_text('#!/bin/sh\ncase "$*" in *haproxy*) printf config-files;; *) printf not-installed;; esac\n')
    dpkg.chmod(0o755)
    said = "VERSION 3\n\nhaproxy - - none < 3.0 amd64 none /a.deb\nzstd - - none < 1.5 amd64 foreign /b.deb\n"
    for _ in range(2):
        machine.made("packages", said, PATH=f"{dpkg.parent}:{os.environ['PATH']}")
    assert (machine.record / "packages").read_text().split() == ["zstd:amd64"]
    assert (machine.record / "configured").read_text().split() == ["haproxy:amd64"]


@pytest.mark.parametrize(
    ("cluster", "gone"), [("main", ["postgresql-17:amd64", "zstd:amd64"]), ("mine", ["zstd:amd64"])]
)
def test_a_package_that_the_owner_uses_by_then_stays(machine, tmp_path, cluster, gone):
    """To purge PostgreSQL drops all its clusters, not only ours."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    installed = "".join(f"{name}:amd64 installed\\n" for name in ("postgresql-17", "zstd"))
    for name, text in (("dpkg-query", f"printf '{installed}'"), ("apt-get", f'echo "$@" >>{tmp_path}/said')):
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    folder = machine.root / "etc/postgresql/17"
    wanted = {"makes": [f"{folder}/main"], "shares": [str(folder)], "used_in": {"postgresql-17": str(folder)}}
    machine.made("note", json.dumps(wanted))
    for name in ("main", cluster):
        machine.write(f"etc/postgresql/17/{name}/postgresql.conf", "")
    (machine.record / "packages").write_text("postgresql-17:amd64\nzstd:amd64\n")
    machine.made("undo", PATH=f"{bin_}:{os.environ['PATH']}")
    last = (tmp_path / "said").read_text().splitlines()[-1].split()
    assert last[last.index("purge") + 1 :] == gone
    assert folder.exists() == (cluster == "mine")


def test_a_file_comes_back_though_its_folder_went(machine):
    """A package that is removed takes its empty folder along."""
    machine.write("etc/haproxy/haproxy.cfg", "the owner's")
    before = machine.tree()
    machine.note(replaces=["etc/haproxy/haproxy.cfg"])
    shutil.rmtree(machine.root / "etc/haproxy")
    machine.made("undo")
    assert machine.tree() == before


def with_stubs(folder: Path, **programs: str) -> str:
    """PATH with these programs, each a text of the shell, before all others."""
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


SYSTEMCTL = "case $1 in is-enabled) echo enabled;; is-active) echo active;; start) exit 5;; show) echo {};; esac"


@pytest.mark.parametrize("loaded", ["not-found", "loaded"])
def test_a_unit_or_setting_that_is_there_no_longer_holds_up_nothing(machine, tmp_path, loaded, capfd):
    """The owner removed the package that had it. One that is there and does not start is told."""
    path = with_stubs(tmp_path / "bin", systemctl=SYSTEMCTL.format(loaded))
    machine.made("note", json.dumps({"units": ["man-db.timer"]}), PATH=path)
    record = json.loads((machine.record / "record.json").read_text())
    record["settings"]["net.ntier.gone"] = "1"
    (machine.record / "record.json").write_text(json.dumps(record))
    if loaded == "not-found":
        machine.made("undo", PATH=path)
        assert not machine.record.parent.exists()
        return
    with pytest.raises(subprocess.CalledProcessError):
        machine.made("undo", PATH=path)
    assert "man-db.timer does not start" in capfd.readouterr().err
    assert machine.record.exists()


def test_what_cannot_come_back_is_named_and_holds_up_nothing(owned, tmp_path, capfd):
    """As on a full disk."""
    before = owned.tree()
    owned.note(**LISTS)
    deploy(owned)
    no_room = 'case "$*" in *logrotate*) echo "cp: no room" >&2; echo half >"$3"; exit 1;; esac; exec /bin/cp "$@"'
    path = with_stubs(tmp_path / "bin", cp=no_room)
    with pytest.raises(subprocess.CalledProcessError):
        owned.made("undo", PATH=path)
    assert f"{owned.root}/etc/logrotate.timer: cp: no room" in capfd.readouterr().err
    now = owned.tree()
    assert {name for name in {*now, *before} if now.get(name) != before.get(name)} == {"etc/logrotate.timer"}
    owned.made("undo")
    assert owned.tree() == before


@pytest.mark.parametrize(("owner", "stays"), [("us-1\n", False), ("", False), (None, False), ("other-2\n", True)])
def test_a_machine_that_another_deployment_took_meanwhile_keeps_its_claim(tmp_path, owner, stays):
    """The claim goes where all is undone, and the playbook waits there for the slowest machine."""
    tasks = yaml.safe_load((ROLES.parent / "playbooks/destroy.yml").read_text())[0]["tasks"]
    assert "{{ machine_owner" in tasks[-1]["environment"]["ours"]
    folder = tmp_path / "ntier"
    (folder / "before").mkdir(parents=True)
    if owner is not None:
        (folder / "owner").write_text(owner)
    command = tasks[-1]["ansible.builtin.shell"]["cmd"].replace("/etc/ntier", str(folder))
    subprocess.run(["sh", "-c", command], env={**os.environ, "ours": "us-1"}, check=True)
    assert folder.exists() == stays


def test_a_claim_goes_while_nobody_else_can_claim(owned):
    owned.note(**LISTS)
    deploy(owned)
    whole = owned.record.parent
    lock = os.open(whole.parent, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    environment = {**os.environ, "NTIER_RECORD": str(owned.record)}
    with subprocess.Popen([sys.executable, MADE, "undo"], env=environment, stdout=subprocess.PIPE) as undo:
        assert undo.stdout.readline(), "all is undone"
        with pytest.raises(subprocess.TimeoutExpired):
            undo.wait(0.5)
        assert (owned.record / "record.json").exists()
        os.close(lock)
        assert undo.wait(30) == 0
    assert not whole.exists()


def test_an_owners_file_need_not_be_utf_8(machine):
    """Names of hosts with remarks in Latin 1, and line ends of another system."""
    hosts = machine.write("etc/hosts", "")
    hosts.write_bytes(b"10.9.9.9 printer # B\xfcro\r\n")
    machine.note(edits=["etc/hosts"])
    hosts.write_bytes(b"10.9.9.9 printer # B\xfcro\r\n# BEGIN ntier\n198.18.1.1 web1\n# END ntier\n10.1.1.1 new\r\n")
    machine.made("undo")
    assert hosts.read_bytes() == b"10.9.9.9 printer # B\xfcro\r\n10.1.1.1 new\r\n"


def test_a_system_s_own_roles_are_noted_before_the_shared_ones(machine, tmp_path):
    """The task as Ansible runs it, on this machine, with a record of the test's own."""
    own = tmp_path / "roles"
    for role, path in (("shop_web", "/opt/shop"), ("web", "/etc/shop-web")):
        (own / role).mkdir(parents=True)
        (own / role / "made.yml").write_text(f"makes: [{path}]\n")
    (own / "shop_facts").mkdir()
    (own / "shop_facts/made.yml").write_text("# it sets facts only\n")
    task = yaml.safe_load((ROLES / "machine/tasks/note.yml").read_text())[-1]
    task["ansible.builtin.command"]["argv"] = [sys.executable, str(MADE), "note"]
    task["environment"] = {"NTIER_RECORD": str(machine.record)}
    told = {
        "ntier_tier": "web", "ntier_role": "web", "ntier_roles": {"web": ["shop_facts", "shop_web", "web", "haproxy"]},
    }  # fmt: skip
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": told, "tasks": [task]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    environment = {**os.environ, "ANSIBLE_ROLES_PATH": f"{own}:{ROLES}", "ANSIBLE_LOCALHOST_WARNING": "false"}
    argv = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "play.yml"]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    noted = json.loads((machine.record / "record.json").read_text())["paths"]
    assert {"/opt/shop", "/etc/shop-web", "/usr/local/bin/ntier-node"} <= set(noted)
    haproxy = yaml.safe_load((ROLES / "haproxy/made.yml").read_text())
    assert set(haproxy["makes"]) <= set(noted)
    web = set(yaml.safe_load((ROLES / "web/made.yml").read_text())["replaces"])
    assert not web & set(noted), "the shared role of the same name is not meant"
