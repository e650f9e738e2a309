"""Which images are built, when, and in what order; without building any."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import base
import digests
import golden
import incus
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MIRRORS = base.mirrors.__wrapped__


@pytest.fixture
def images(monkeypatch):
    """The program setup/images as a module."""
    spec = importlib.util.spec_from_file_location("ntier_images", ROOT / "setup/images/__main__.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "ntier_images", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A checkout with one role."""
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    role = tmp_path / "ansible/roles/web"
    for path, text in {
        "tasks/install.yml": "a",
        "tasks/configure.yml": "b",
        "files/reset": "c",
        "tests/t.yml": "d",
    }.items():
        (role / path).parent.mkdir(parents=True, exist_ok=True)
        (role / path).write_text(text)
    (tmp_path / "static").mkdir()
    (tmp_path / "static/index.html").write_text("hello")
    return tmp_path


def test_a_file_that_a_role_takes_from_elsewhere_makes_its_image_stale():
    images = yaml.safe_load((ROOT / "setup/images/images.yml").read_text())["images"]
    taken = set()
    for role, image in images.items():
        home = ROOT / "ansible/roles" / role
        places = {"role_path": str(home), f"{role}_schema_source": f"{ROOT}/rubbos-app/schema/{role}"}
        for value in yaml.safe_load((home / "vars/main.yml").read_text())[f"{role}_program"].get("files", {}).values():
            if "{{" in value:
                path = re.sub(r"\{\{ (\w+) \}\}", lambda found: places[found[1]], value)  # noqa: B023
                taken.add(os.path.relpath(path, ROOT))
                assert os.path.relpath(path, ROOT) in image["sources"], role
    assert "ansible/roles/mysql/files/data" in taken


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("ansible/roles/web/tasks/install.yml", True),
        ("ansible/roles/web/files/reset", True),
        ("static/index.html", True),
        ("ansible/roles/web/tasks/configure.yml", False),
        ("ansible/roles/web/tests/t.yml", False),
    ],
)
def test_only_what_is_installed_makes_an_image_stale(tree, path, changes):
    before = digests.of_role("web", ["static"])
    (tree / path).write_text("changed")
    assert (digests.of_role("web", ["static"]) != before) is changes


def test_digest_sees_names_and_permissions(tree):
    before = digests.of(files=["static"])
    (tree / "static/index.html").rename(tree / "static/other.html")
    renamed = digests.of(files=["static"])
    (tree / "static/other.html").chmod(0o755)
    assert len({before, renamed, digests.of(files=["static"])}) == 3


def test_build_leftovers_do_not_count(tree):
    before = digests.of(files=["static"])
    (tree / "static/target").mkdir()
    (tree / "static/target/rubbos.war").write_text("built")
    assert digests.of(files=["static"]) == before


def step(images, name, needs=(), is_image=True, make=None):
    return images.Step(name, f"digest of {name}", make or (lambda log: None), list(needs), is_image)


@pytest.fixture
def steps(images):
    parts = [
        step(images, "base"),
        step(images, "jar", is_image=False),
        step(images, "app", ["base", "jar"]),
        step(images, "web", ["base"]),
        step(images, "data", ["app", "jar"]),
    ]
    return {s.name: s for s in parts}


def have(monkeypatch, steps, *names):
    present = {n: {"properties": {incus.DIGEST: steps[n].digest}} for n in names}
    monkeypatch.setattr(incus, "images", lambda: present)


def test_nothing_is_built_when_all_is_there(images, steps, monkeypatch):
    have(monkeypatch, steps, "base", "app", "web", "data")
    assert images.stale(steps, ["web", "data"], rebuild=False) == []


def test_a_set_up_that_waited_for_another_one_finds_everything_done(images, monkeypatch, tmp_path):
    monkeypatch.setattr(images.golden, "STATE", tmp_path)
    monkeypatch.setattr(images.base, "is_pinned", lambda *_, **__: False)
    monkeypatch.setattr(images, "note", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["images", "--images", "client"])
    looked = iter([["client"], []])
    monkeypatch.setattr(images, "stale", lambda *_: next(looked))
    assert images.main() == 0


class FakeIncus:
    """Images and instances by name, as the client would change them; `stop_at`: the call before which set-up ends."""

    def __init__(self, monkeypatch):
        self.instances, self.images, self.stop_at = set(), {}, None
        monkeypatch.setattr(incus, "run", self.run)

    def run(self, *arguments, **_):
        if self.stop_at == arguments[0]:
            raise KeyboardInterrupt
        match arguments:
            case ("list", *_):
                return json.dumps([{"name": name} for name in self.instances])
            case ("image", "list", *_):
                aliases = {f: [{"name": name}] if name else [] for f, name in self.images.items()}
                return json.dumps([{"fingerprint": f, "aliases": names} for f, names in aliases.items()])
            case ("image", "delete", fingerprint):
                del self.images[fingerprint]
            case ("image", "alias", "create", name, fingerprint):
                self.images[fingerprint] = name
            case ("image", "alias", "delete", name):
                self.images = {f: None if n == name else n for f, n in self.images.items()}
            case ("exec", *_):
                return "packages\n---\n2026\n---\nweb 1\n"
            case ("publish", *_):
                fingerprint = f"{len(self.images):064x}"
                self.images[fingerprint] = None
                return fingerprint
            case ("create", _, name):
                if name in self.instances:
                    raise incus.IncusError(f"Instance {name!r} already exists")
                self.instances.add(name)
            case ("delete", *_, name):
                self.instances.remove(name)
        return ""


@pytest.mark.parametrize("stop_at", ["create", "delete", "image"])
def test_an_image_can_be_made_again_after_a_killed_set_up(images, monkeypatch, tmp_path, stop_at):
    monkeypatch.setattr(golden, "STATE", tmp_path)
    fake, node = FakeIncus(monkeypatch), golden.BuildNode("web", "198.18.200.9", role="web", tier="web")
    node.folder.mkdir(parents=True)
    fake.stop_at = stop_at
    with pytest.raises(KeyboardInterrupt):
        node.publish("digest", None)
    fake.stop_at = None
    incus.delete_nameless_images()
    assert fake.images == {}
    node.publish("digest", None)
    assert (list(fake.images.values()), fake.instances) == (["web"], set())
    fake.instances |= {node.name, node.clone, "build-ndb"}
    node.remove()
    assert fake.instances == {"build-ndb"}


def test_an_image_is_built_in_a_locale_that_ansible_takes(monkeypatch):
    told = {}
    monkeypatch.setattr(golden, "call", lambda *_, env, **__: told.update(env))
    monkeypatch.setenv("LC_ALL", "C")
    golden.BuildNode("web", "198.18.200.9", role="web", tier="web").play(Path("install.yml"), {}, None)
    assert told["LC_ALL"] == "C.UTF-8"


def test_the_base_is_customized_whatever_the_path_of_the_checkout(monkeypatch, tmp_path):
    place = tmp_path / "my work" / "images"
    place.mkdir(parents=True)
    (place / "customize.sh").write_text("# Nobody's\necho 'one  two' >&2 # \"three\"\n")
    (tmp_path / "chroot").write_text('#!/bin/sh\n[ "$1" = "/new root" ] || exit 1\nshift\nexec "$@"\n')
    (tmp_path / "chroot").chmod(0o755)
    monkeypatch.setattr(base, "__file__", str(place / "base.py"))
    script = base.customize().removeprefix("--customize-hook=")
    command = ["sh", "-c", script, "exec", "/new root"]  # as mmdebstrap runs a hook
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(command, env={"PATH": path}, cwd="/", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "one  two\n")


def test_artefacts_are_built_only_for_images_that_are(images, steps, monkeypatch):
    have(monkeypatch, steps, "base", "app", "data")
    assert images.stale(steps, ["web", "data"], rebuild=False) == ["web"]
    have(monkeypatch, steps, "base", "app", "web")
    assert images.stale(steps, ["web", "data"], rebuild=False) == ["jar", "data"]


def test_an_image_brings_what_it_needs(images, steps, monkeypatch):
    have(monkeypatch, steps)
    assert images.stale(steps, ["data"], rebuild=False) == ["base", "jar", "app", "data"]


def test_a_failure_stops_what_needs_it_and_nothing_else(images, steps, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(images.golden, "STATE", tmp_path)
    (tmp_path / "logs").mkdir()
    made = []

    def maker(name):
        def make(log):
            log.write(f"making {name}\n")
            if name == "jar":
                raise subprocess.CalledProcessError(3, ["/usr/bin/mvn"])
            made.append(name)

        return make

    for name, one in steps.items():
        one.make = maker(name)
    failed = images.make_all(steps, list(steps), images.Screen())
    assert failed == ["jar", "app", "data"]
    assert sorted(made) == ["base", "web"]
    out = capsys.readouterr().out
    assert "jar: failed: mvn ended with 3" in out
    assert "making jar" in out
    assert str(tmp_path / "logs/setup-jar.log") in out


def test_plan_covers_every_tier_and_each_step_follows_its_needs(images):
    spec = images.artefacts.load()
    names = list(images.plan(spec, {"mysql": ["tiny", "small"]}))
    assert {
        "base-trixie",
        "base-sid",
        "web",
        "app",
        "shardingsphere",
        "mysql",
        "client",
        "mysql-tiny",
        "mysql-small",
    } <= set(names)
    for position, name in enumerate(names):
        assert set(images.plan(spec, {"mysql": ["tiny", "small"]})[name].needs) <= set(names[:position])


@pytest.mark.parametrize("name", ["base-trixie", "node-sid"])
def test_what_images_are_made_of_can_be_asked_for(images, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", ["setup", "--images", name])
    assert images.arguments(images.artefacts.load()).names == [name]


def test_a_topology_without_a_dbms_is_an_error_and_not_all_of_them(images, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["setup", "--topo", "1/1/1/1m"])
    with pytest.raises(SystemExit, match="2"):
        images.arguments(images.artefacts.load())
    assert "'1/1/1/1m' ends in no letter of a DBMS; allowed: M, P" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("topo", "left_out"),
    [("", set()), ("1/2/1/9ML", {"postgresql", "postgresql-small"}), ("1/1/1/1P", {"mysql", "mysql-small"})],
)
def test_a_topology_needs_the_images_of_its_dbms(images, monkeypatch, topo, left_out):
    spec = images.artefacts.load()
    names = []
    for wanted in ("", topo):
        monkeypatch.setattr(sys, "argv", ["setup", "--topo", wanted])
        names.append(set(images.arguments(spec).names))
    assert names[0] - names[1] == left_out


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("", {"shardingsphere"}), ("haproxy", {"haproxy"}), ("pgpool,haproxy", {"pgpool", "haproxy"})],
)
def test_only_the_middlewares_that_are_asked_for_get_an_image(images, monkeypatch, asked, expected):
    spec = images.artefacts.load()
    monkeypatch.setattr(sys, "argv", ["setup", *(["--middleware", asked] if asked else [])])
    middlewares = {name for name, one in spec["images"].items() if one["tier"] == "middleware"}
    assert set(images.arguments(spec).names) & middlewares == expected


def test_an_unknown_middleware_is_an_error_that_names_the_allowed_ones(images, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["setup", "--middleware", "cjdbc"])
    with pytest.raises(SystemExit) as error:
        images.arguments(images.artefacts.load())
    assert error.value.code == 2
    assert "allowed: shardingsphere, haproxy" in capsys.readouterr().err


def test_profiles_differ(images):
    steps = images.plan(images.artefacts.load(), {"mysql": ["tiny", "small"]})
    assert steps["mysql-tiny"].digest != steps["mysql-small"].digest


def test_data_in_images_are_of_the_seed_that_the_system_says(images, monkeypatch, tmp_path):
    """As on targets where roles load them: else one study would be on two sets of data."""
    monkeypatch.setattr(images.golden, "STATE", tmp_path)
    commands = []

    def generate(command, _log, **_options):
        commands.append(command)
        raise KeyboardInterrupt

    monkeypatch.setattr(images.golden, "call", generate)
    usual, found = images.golden.data_of("rubbos"), []
    for seed in (1, 2):
        monkeypatch.setattr(images.golden, "data_of", lambda _, seed=seed: usual | {"seed": seed})
        found.append(images.plan(images.artefacts.load(), {"mysql": ["tiny"]})["mysql-tiny"])
        with pytest.raises(KeyboardInterrupt):
            found[-1].make(None)
    assert [command[command.index("--seed") + 1] for command in commands] == ["1", "2"]
    assert found[0].digest != found[1].digest


def test_unknown_image_is_an_error_that_names_the_allowed_ones():
    done = subprocess.run(
        [sys.executable, ROOT / "setup/images", "--images", "web,apache"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "'apache'" in done.stderr
    assert "mysql-small" in done.stderr


def test_unknown_module_is_an_error_that_names_the_allowed_ones():
    done = subprocess.run([sys.executable, ROOT / "setup/build.py", "rubbos"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "'rubbos'" in done.stderr
    assert "rubbos-app" in done.stderr


def test_a_program_that_the_user_gives_is_part_of_its_image_and_an_empty_setting_is_not(images, monkeypatch, tmp_path):
    spec = images.artefacts.load()
    program = tmp_path / "proxysql"
    program.write_text("one")
    digest = {}
    for name, value in (("none", None), ("empty", ""), ("given", str(program))):
        monkeypatch.delenv("PROXYSQL_BINARY", raising=False)
        if value is not None:
            monkeypatch.setenv("PROXYSQL_BINARY", value)
        digest[name] = images.digests.of_installs(spec["images"])["proxysql"]
    program.write_text("two")
    assert digest["none"] == digest["empty"]
    assert len({digest["none"], digest["given"], images.digests.of_installs(spec["images"])["proxysql"]}) == 3


def test_a_failed_build_shows_what_ansible_said_and_not_what_followed(images):
    log = "TASK [x]\n[ERROR]: Task failed: no package proxysql\nOrigin: install.yml\n" + "timing\n" * 20
    assert images.told(log) == ["Task failed: no package proxysql"]
    fatal = (
        '{"changed": true, "cmd": "proxysql", "msg": "non-zero return code", "rc": 127, "stderr": "no libgnutls.so.30"}'
    )
    error = "Task failed: Module failed: non-zero return code"
    log = f"[ERROR]: {error}\nOrigin: x\n\nfatal: [build-proxysql]: FAILED! => {fatal}\n"
    assert images.told(log) == [error, "no libgnutls.so.30"]
    assert images.told("making jar\nno compiler\n") == ["making jar", "no compiler"]


@pytest.mark.parametrize("there", [True, False])
def test_packages_come_from_the_snapshot_if_it_is_reached_and_it_stays_so(monkeypatch, tmp_path, there):
    """A web server in place of Debian's, asked by apt's own program."""
    site, state, day = tmp_path / "site", tmp_path / "state", "20260101T000000Z"
    page = site / "debian" / day / "dists/sid/InRelease"
    page.parent.mkdir(parents=True)
    page.write_text("Origin: Debian\n")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("NTIER_DEBIAN_MIRROR", raising=False)
    monkeypatch.setattr(base, "SNAPSHOT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(base, "mirrors", lambda: ("http://mirror/debian", "http://mirror/debian-security"))
    one = {
        "snapshot": day if there else "20250101T000000Z",
        "sources": ["deb {mirror} sid main", "deb {security} x main"],
    }
    try:
        pinned = base.is_pinned(state, {"sid": one})
    finally:
        server.shutdown()
    assert pinned is there
    assert base.is_pinned(state, {"sid": one}) is there, "noted: the server is gone"
    place = f"{base.SNAPSHOT}/{{}}/{day}" if there else "http://mirror/{}"
    expected = [f"deb {place.format('debian')} sid main", f"deb {place.format('debian-security')} x main"]
    assert base.sources(one, pinned) == expected
    monkeypatch.setenv("NTIER_DEBIAN_MIRROR", "http://mine/debian")
    assert not base.is_pinned(state, {"sid": one}), "a mirror that was named counts"


def test_each_base_has_a_day_of_the_archive(images):
    days = [one["snapshot"] for one in images.artefacts.load()["bases"].values()]
    assert all(re.fullmatch(r"20\d{6}T\d{6}Z", day) for day in days)
    assert images.origin(images.artefacts.load()["bases"], pinned=True).endswith("sid of 20261030")


def test_sealing_says_the_versions_of_what_the_role_is_about(tmp_path):
    text = (ROOT / "setup/images/seal.sh").read_text()
    listing = text[text.index("for file in") : text.index("apt-get clean")].replace("/etc/ntier", str(tmp_path))
    (tmp_path / "packages.d").mkdir()
    (tmp_path / "packages.d/role").write_text("dpkg\n")
    (tmp_path / "packages.d/monitor").write_text("coreutils\n")
    done = subprocess.run(["sh", "-euc", listing], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"dpkg \S+\n", done.stdout)


def test_mysql_cluster_is_made_only_when_it_is_named(images, monkeypatch):
    spec = images.artefacts.load()
    cluster = {"ndbmgmd", "ndbmtd", "ndbsql"}
    monkeypatch.setattr(sys, "argv", ["setup"])
    assert not cluster & set(images.arguments(spec).names)
    monkeypatch.setattr(sys, "argv", ["setup", "--images", ",".join(sorted(cluster))])
    assert set(images.arguments(spec).names) == cluster


def test_other_programs_of_mysql_cluster_make_its_images_stale_and_no_other(images, monkeypatch, tmp_path):
    spec = images.artefacts.load()
    monkeypatch.setenv("NTIER_STATE", str(tmp_path))
    before = images.digests.of_installs(spec["images"])
    (tmp_path / "ndb").mkdir()
    (tmp_path / "ndb/version.json").write_text("{}")
    after = images.digests.of_installs(spec["images"])
    assert {role for role in before if before[role] != after[role]} == {"ndbmgmd", "ndbmtd", "ndbsql"}


def test_all_may_read_what_becomes_the_folders_of_a_node(tmp_path):
    """Whatever umask the checkout was made with: services of a node do not run as root."""
    private = tmp_path / "rootfs"
    (private / "etc/cron.d").mkdir(parents=True)
    for name, mode in (("etc/hosts", 0o600), ("etc/run", 0o700)):
        (private / name).write_text("")
        (private / name).chmod(mode)
    for folder in (private, private / "etc", private / "etc/cron.d"):
        folder.chmod(0o700)
    made = base.readable_copy(private, tmp_path / "copy")
    modes = {str(p.relative_to(made)): p.stat().st_mode & 0o777 for p in (made, *made.rglob("*"))}
    assert modes == {".": 0o755, "etc": 0o755, "etc/cron.d": 0o755, "etc/hosts": 0o644, "etc/run": 0o755}


@pytest.mark.parametrize("fails", [True, False])
def test_what_users_are_told_of_the_data_changes_with_the_image_and_not_before(images, monkeypatch, tmp_path, fails):
    monkeypatch.setattr(images.golden, "STATE", tmp_path)
    kept = tmp_path / "data/mysql-small"
    kept.mkdir(parents=True)
    (kept / "data.json").write_text("of the image that is there")

    def generate(command, _log, **_options):
        folder = Path(command[command.index("--out") + 1])
        (folder / "data.json").write_text("of the new one")
        (folder / "users.tsv").write_text("1\n")
        assert (kept / "data.json").read_text() == "of the image that is there"

    class Node:
        name = "build-mysql-small"

        def __getattr__(self, _name):
            return lambda *_: None

        def publish(self, _digest, _log):
            if fails:
                raise subprocess.CalledProcessError(1, ["incus", "publish"])
            return "mysql 9"

    monkeypatch.setattr(images.golden, "call", generate)
    monkeypatch.setattr(incus, "run", lambda *_, **__: "")
    build = functools.partial(
        images.golden.build_data, Node(), "mysql", images.golden.data_of("rubbos"), "small", "digest", None
    )
    if fails:
        with pytest.raises(subprocess.CalledProcessError):
            build()
    else:
        assert build() == "mysql 9"
    assert (kept / "data.json").read_text() == ("of the image that is there" if fails else "of the new one")
    assert [f.name for f in (tmp_path / "data").rglob("*") if f.is_file()] == ["data.json"]
