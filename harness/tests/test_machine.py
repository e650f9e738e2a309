"""Systems without /proc, without root, without flock: what needs no experiment works there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ntier_harness import doctor, machine, sampler
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.screen import Screen
from ntier_harness.targets import local_doctor
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.local import Local

NTIER = Path(sys.executable).with_name("ntier")
ROOT = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root to take /proc away"
)


def test_without_proc_the_memory_is_what_the_system_says(monkeypatch, tmp_path):
    total = machine.memory_info()["MemTotal"]
    monkeypatch.setattr(machine, "PROC", tmp_path)
    assert machine.memory_info() == {"MemTotal": pytest.approx(total, rel=0.05)}
    assert machine.cpu_model() is None
    assert not machine.is_linux()


def test_sysstats_collector_is_where_this_distribution_has_it(monkeypatch, tmp_path):
    new, old = tmp_path / "libexec-sadc", tmp_path / "lib-sadc"
    monkeypatch.setattr(machine, "SADC_PLACES", (str(new), str(old)))
    old.touch()
    assert machine.sadc() == str(old)
    new.touch()
    assert machine.sadc() == str(new)


@pytest.mark.parametrize(
    ("present", "level", "detail"),
    [
        ("cpuset cpu io memory pids", "ok", "version 2"),
        ("cpuset cpu pids", "fail", "version 2 without io, memory"),
        ("", "fail", "version 2 without cpu, io, memory"),
    ],
)
def test_doctor_asks_for_the_controllers_of_version_2(monkeypatch, tmp_path, present, level, detail):
    monkeypatch.setattr(sampler, "CGROUP", str(tmp_path))
    (tmp_path / "cgroup.controllers").write_text(present + "\n")
    finding = local_doctor.cgroups()
    assert (finding.level, finding.detail) == (level, detail)
    assert bool(finding.mend) == (level == "fail")


def test_doctor_asks_for_the_controllers_of_version_1(monkeypatch, tmp_path):
    monkeypatch.setattr(sampler, "CGROUP", str(tmp_path))
    for name in ("cpu", "cpuacct", "memory"):
        (tmp_path / name).mkdir()
    assert (local_doctor.cgroups().level, local_doctor.cgroups().detail) == ("fail", "version 1 without blkio")
    (tmp_path / "blkio").mkdir()
    assert (local_doctor.cgroups().level, local_doctor.cgroups().detail) == ("ok", "version 1")


def test_doctor_does_not_send_who_is_not_root_to_the_set_up(monkeypatch, tmp_path):
    (tmp_path / "incus").write_text("#!/bin/sh\necho 'Error: You do not have the needed permissions' >&2\nexit 1\n")
    (tmp_path / "incus").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    paths = Paths.find(str(tmp_path / "results"))
    lab = Lab(Runner(), paths, Local(Runner(), paths), Screen())
    monkeypatch.setattr(local_doctor.os, "geteuid", lambda: 1000)
    assert (local_doctor.incus(lab).detail, local_doctor.incus(lab).mend) == ("only root may ask it", "run with sudo")
    monkeypatch.setattr(local_doctor.os, "geteuid", lambda: 0)
    assert local_doctor.incus(lab).mend == "make setup"


def test_doctor_looks_where_images_and_nodes_are(monkeypatch, tmp_path):
    """In Incus' file, not in the state; what the file takes already needs no room again."""
    pool = tmp_path / "incus/disks/ntier.img"
    monkeypatch.setattr(local_doctor, "POOL_FILE", pool)
    monkeypatch.setattr(local_doctor.shutil, "disk_usage", lambda place: SimpleNamespace(free=free[str(place)]))
    free = {str(tmp_path): 10_000_000_000}
    finding = local_doctor.disk()
    assert (finding.level, finding.detail) == ("fail", f"10.0 GB free in {tmp_path}")
    assert finding.mend == f"free 2.0 GB there, or before the first set-up mount another disk at {pool.parents[1]}"
    pool.parent.mkdir(parents=True)
    pool.write_bytes(b"x" * 4096)
    free[str(pool.parent)] = doctor.NEEDED_DISK - pool.stat().st_blocks * 512
    assert local_doctor.disk().level == "ok"
    free[str(pool.parent)] -= 1
    assert local_doctor.disk().level == "fail"
    monkeypatch.setattr(local_doctor, "disk", lambda: finding)
    paths = Paths.find(str(tmp_path / "results"))
    monkeypatch.setattr(doctor, "STEAL_S", 0.01)
    lab = Lab(Runner(), paths, Local(Runner(), paths), Screen())
    monkeypatch.setattr(doctor, "programs", lambda _: [])
    monkeypatch.setattr(doctor, "apt", lambda _: finding)
    monkeypatch.setattr(doctor, "resources", lambda _: [doctor.Finding("disk", "ok", "elsewhere")])
    assert [f.detail for f in doctor.examine(lab) if f.what == "disk" and f.detail == "elsewhere"] == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to give up its powers")
@pytest.mark.parametrize(
    ("command", "code", "place"),
    [
        (["doctor"], 1, ""),
        (["status"], 2, "local"),
        (["shell", "db1"], 2, "local"),
        (["logs", "db1"], 2, "local"),
        (["plan", "--target", "hcloud", "--topo", "1/1/1/1M"], 2, "hcloud"),
        (["plan", "--target", "hcloud", "--topo", "1/1/1/1M", "--budget", "9"], 2, "hcloud"),
    ],
)
def test_a_state_that_only_another_may_read_is_an_error_that_says_so(tmp_path, command, code, place):
    """As an ordinary user after root's set-up: here root without the powers to read what is others'."""
    state = tmp_path / "state"
    (state / "local").mkdir(parents=True)
    (state / "local/nodes.json").write_text("[]")
    (state / "lock").touch()
    state.chmod(0o700)
    os.chown(state, 65534, 65534)
    weaker = [str(shutil.which("setpriv")), "--bounding-set=-dac_override,-dac_read_search"]
    for program in ("ssh", "ssh-keygen", "javac", "mvn", "terraform"):  # what a plan for other machines asks for
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).symlink_to("/bin/true")
    path = str(tmp_path / "bin") if command[0] == "plan" else "/nonexistent"
    environment = os.environ | {"NTIER_STATE": str(state), "PATH": path, "TERRAFORM": ""}
    argv = [*weaker, sys.executable, "-m", "ntier_harness.cli", *command]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
    if "setpriv:" in done.stderr:
        pytest.skip(done.stderr)
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    if code == 2:
        assert f"error: privileges: {state / place} cannot be read: needs root" in done.stderr


def test_doctor_goes_on_when_a_program_does_not_answer(monkeypatch, tmp_path):
    """As Incus on a slow machine, whose daemon is started by the first question."""
    for name in ("incus", "terraform"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "ASK_S", 0.2)
    paths = Paths.find(str(tmp_path / "results"))
    findings = {f.what: f for f in doctor.examine(Lab(Runner(), paths, Local(Runner(), paths), Screen()))}
    assert (findings["incus"].level, findings["incus"].mend) == ("warn", "make setup")
    assert findings["incus"].detail == "does not answer: no answer within 0.2 s"
    assert {"cgroup", "network", "download"} <= set(findings)


def test_doctor_asks_of_this_machine_only_what_the_target_needs_here(monkeypatch, tmp_path):
    """With nodes elsewhere neither memory nor disk, and set-up installs nothing; with nodes here it brings the JDK."""
    monkeypatch.setenv("PATH", str(tmp_path))  # no program at all
    monkeypatch.setenv("NTIER_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemTotal": 10**9})
    monkeypatch.setattr(doctor, "STEAL_S", 0.01)
    runner, paths = Runner(), Paths.find(str(tmp_path / "results"))
    elsewhere, here = (
        {f.what: f for f in doctor.examine(Lab(runner, paths, target(runner, paths, None), Screen()))}
        for target in (Hosts, Local)
    )
    assert not {"cores", "memory", "disk", "host load", "sysstat", "mmdebstrap", "apt"} & set(elsewhere)
    assert [f.what for f in elsewhere.values() if f.level == "fail"] == ["terraform"]
    assert "make setup" not in {f.mend for f in elsewhere.values()}
    assert elsewhere["maven"].mend == "apt-get install maven"
    assert here["memory"].level == "fail"
    assert (here["jdk"].level, here["jdk"].mend, here["maven"].mend) == ("warn", "make setup", "make setup")


@needs_root
@pytest.mark.parametrize(
    "who", [[], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]], ids=["root", "nobody"]
)
def test_doctor_without_proc(who):
    """As on macOS: a name space of its own, in which /proc is an empty folder."""
    script = 'mount -t tmpfs none /proc && exec "$@"'
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        *who,
        sys.executable,
        "-m",
        "ntier_harness.cli",
        "doctor",
        "--json",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    if "mount:" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip(done.stderr)
    findings = {f["what"]: f for f in json.loads(done.stdout)}
    assert "TARGET=hosts" in findings["system"]["detail"]
    assert findings["memory"]["detail"].endswith("in all")
    assert not {"cgroup", "incus", "host load", "apt"} & set(findings)


def test_the_environment_needs_neither_flock_nor_sha256sum(tmp_path):
    """The two functions of setup/bootstrap.sh, with what macOS has on its path."""
    text = (ROOT / "setup/bootstrap.sh").read_text()
    functions = "\n".join(line for line in text.splitlines() if line.startswith(("sha256()", "lock()")))
    for name in ("shasum", "bash"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/nonexistent")
    (tmp_path / "python3").symlink_to(sys.executable)
    if not (tmp_path / "shasum").exists():
        pytest.skip("no shasum here")
    held = "\n".join([functions, 'exec 9<"$0" && lock 9 && echo locked && sleep 2'])
    other = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    script = tmp_path / "held.sh"
    script.write_text(held.replace("sleep 2", "read -r"))
    with subprocess.Popen([tmp_path / "bash", script], env={"PATH": str(tmp_path)}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:  # fmt: skip
        assert holder.stdout.readline() == "locked\n"
        assert subprocess.run([sys.executable, "-c", other, script], capture_output=True).returncode != 0
        holder.stdin.close()
    assert subprocess.run([sys.executable, "-c", other, script], capture_output=True).returncode == 0
    hashed = subprocess.run([tmp_path / "bash", "-c", functions + "\necho x | sha256"], env={"PATH": str(tmp_path)},
                            capture_output=True, text=True)  # fmt: skip
    assert len(hashed.stdout.split()[0]) == 64, hashed.stderr
