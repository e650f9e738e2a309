"""Whole sweeps on the dry twin: what is recorded, what resumes, what counts."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
from dataclasses import replace

import pytest
from ntier_analysis.contracts.manifest import Manifest, Phase
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.store import IDLE_S
from ntier_harness import deploy, node_commands, plan, plan_view, stolen, sweep, trial, versions
from ntier_harness.commands import experiments
from ntier_harness.deploy import JIT_CPU
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.screen import Screen

from . import dry
from .promises import trials


def test_sweep_records_everything(lab, spec):
    s, machine = spec(), lab()
    assert sweep.run(machine, s) == 0
    by_trial = trials(machine, s)
    assert {k: [a.outcome for a in v] for k, v in by_trial.items()} == {
        "u01000.r01": ["valid"],
        "u03000.r01": ["valid"],
    }
    m = by_trial["u03000.r01"][0].manifest
    assert m.users_real == round(3000 * s.scale)
    assert [p.end_s - p.start_s for p in m.phases] == [10, 20, 2]
    assert {q["moment"] for q in m.quota_readback} == {"ramp_up", "run", "end"}
    assert all(q["cpu_cores"] == 0.2 for q in m.quota_readback if q["node"] != "client1")
    assert set(m.collectors) == {"web1", "app1", "middleware1", "db1", "client1", "host"}
    assert all(
        {"offset_before", "offset_after", "rtt_before", "rtt_after"} == set(c) for c in m.clock_offsets_s.values()
    )
    files = {f.path for f in m.files}
    assert {
        "clients/client1/interactions.jtl.csv.zst",
        "clients/client1/thinks.csv.zst",
        "clients/client1/progress.csv",
    } <= files
    assert {"nodes/db1/mysql_status.csv", "nodes/db1/cgroup_cpu.csv.zst", "nodes/db1/facts_before.json",
            "nodes/db1/facts_after.json", "nodes/client1/sysstat.sa", "config/driver.json"} <= files  # fmt: skip
    assert [s["step"] for s in m.steps if s["event"] == "begin"] == [
        "reset", "start", "facts", "limits", "ramp_up", "run", "ramp_down", "stop", "collect", "validate"]  # fmt: skip


def test_servers_rest_before_the_first_user(lab, spec, monkeypatch):
    """What they use then is taken for what they use without load."""
    monkeypatch.setattr(dry, "JMETER_BOOT_S", 0.0)
    assert trial.REST_S >= IDLE_S
    s, machine = spec(users="1000"), lab()
    sweep.run(machine, s)
    m = trials(machine, s)["u01000.r01"][0].manifest
    (asked_s,) = (step["t_s"] for step in m.steps if step["step"] == "facts" and step["event"] == "end")
    assert m.phases[0].start_s - asked_s >= trial.REST_S


def test_clients_share_the_users_and_each_leaves_its_files(lab, spec):
    machine, s = lab(), spec(users="1000", clients="2")
    assert sweep.run(machine, s) == 0
    m = trials(machine, s)["u01000.r01"][0].manifest
    assert len(m.seeds) == 2
    assert len(set(m.seeds.values())) == 1, "what a user draws does not depend on the client it is on"
    assert {machine.runner.world.node(n)["jmeter"]["seed"] for n in m.seeds} == set(m.seeds.values())
    files = {f.path for f in m.files}
    assert {f"clients/client{n}/interactions.jtl.csv.zst" for n in (1, 2)} <= files
    assert [machine.runner.world.node(f"client{n}")["jmeter"]["users"] for n in (1, 2)] == [100, 100]
    shared = [machine.runner.world.node(f"client{n}")["shared"] for n in (1, 2)]
    homes = [f"0,Home of {machine.runner.world.node(f'client{n}')['address']}\n" for n in (1, 2)]
    assert shared[0] == shared[1] == "author,state\n" + "".join(homes)
    with pytest.raises(RequestError, match=r"exists with other clients \(2 there\)"):
        sweep.run(lab(), spec(users="1000", name=s.name))


def test_settings_that_were_asked_for_are_told_from_those_that_follow(lab, spec):
    machine, s = lab(), spec(users="1000", set=["app_pool_size=8"])
    assert sweep.run(machine, s) == 0
    m = trials(machine, s)["u01000.r01"][0].manifest
    assert m.settings == {"app_pool_size": 8}
    assert m.soft_resources["app_pool_size"] == 8
    assert "middleware_pool_max" in m.soft_resources


def test_each_client_has_a_user_in_the_warm_up(lab, spec, monkeypatch):
    """Also where there are more clients than the machine's cores ask for users."""
    monkeypatch.setattr("ntier_harness.deploy.WARM_USERS_PER_CORE", 0)
    assert sweep.run(lab(), spec(users="4000", clients="16")) == 0


@pytest.mark.parametrize(("bytes_s", "times"), [(trial.SLOWEST_BYTES_S, 0), (1, 1)])
def test_a_trial_that_wrote_much_has_more_time_to_be_brought_home_and_judged(lab, spec, monkeypatch, bytes_s, times):
    fetch, run, limits = dry.DryRunner.fetch, dry.DryRunner.run, {}

    def fetched(self, argv, file, timeout=60):
        limits[argv[-1].partition(" ")[2].partition(" ")[0]] = timeout
        fetch(self, argv, file, timeout)

    def ran(self, argv, timeout=60, **more):
        limits[argv[1]] = timeout
        return run(self, argv, timeout=timeout, **more)

    monkeypatch.setattr(dry.DryRunner, "fetch", fetched)
    monkeypatch.setattr(dry.DryRunner, "run", ran)
    monkeypatch.setattr(trial, "SLOWEST_BYTES_S", bytes_s)
    machine, s = lab(), spec(users="1000")
    sweep.run(machine, s)
    planned = plan.disk_bytes(s, plan.order(s))
    (only,) = trials(machine, s)["u01000.r01"]
    written = sum(f.bytes for f in only.manifest.files)
    assert limits["pack"] == (planned / times if times else 60)
    assert limits["validate"] == (max(120, written / times) if times else 120)


def test_limits_are_in_force_only_during_the_phases(lab, spec):
    machine, s = lab(), spec()
    sweep.run(machine, s)
    assert all(n["allowance"] == "" for n in machine.runner.world.state["nodes"].values())
    m = trials(machine, s)["u01000.r01"][0].manifest
    limits = next(x["t_s"] for x in m.steps if x["step"] == "limits" and x["event"] == "begin")
    stop = next(x["t_s"] for x in m.steps if x["step"] == "stop" and x["event"] == "begin")
    assert limits <= m.phases[0].start_s
    assert m.phases[2].end_s - 0.1 <= stop


def test_overhead_per_trial_stays_below_15_s(lab, spec):
    machine, s = lab(), spec()
    sweep.run(machine, s)
    overheads = [float(t.partition("(overhead ")[2].split()[0]) for t in machine.screen.said if "(overhead " in t]
    assert len(overheads) == 2
    assert max(overheads) < 15


@pytest.mark.parametrize(("run_s", "planned_s", "overhead_s"), [(26.9, 240.0, 10.0), (240.2, 240.0, 9.8)])
def test_work_that_is_done_before_its_time_has_no_negative_overhead(run_s, planned_s, overhead_s):
    run = Phase(name="run", planned_s=planned_s, start_s=1000.0, end_s=1000.0 + run_s)
    manifest = Manifest.model_construct(phases=[run], failure="")
    took_s = min(run_s, planned_s) + overhead_s
    assert sweep.overhead_s(manifest, took_s, planned_s) == pytest.approx(overhead_s)
    ended = Manifest.model_construct(phases=[run.model_copy(update={"end_s": None})], failure="")
    assert sweep.overhead_s(ended, took_s, planned_s) is None


def test_second_run_changes_nothing(lab, spec):
    s = spec()
    sweep.run(lab(), s)
    machine = lab()
    before = snapshot(machine.paths.results)
    assert sweep.run(machine, s) == 0
    assert snapshot(machine.paths.results) == before
    assert not any("terraform" in c or "run-jmeter" in c for c in machine.runner.ran)


def test_versions_are_those_of_what_runs(lab, spec):
    machine, s = lab(), spec()
    sweep.run(machine, s)
    versions = trials(machine, s)["u01000.r01"][0].manifest.versions
    assert versions["db.running.dbd"] == "1.0"
    assert versions["db.sysstat"] == "12.7.5"
    assert versions["db.kernel"] == "6.12.0"


def test_a_sweep_does_not_go_on_with_another_version(lab, spec):
    s = spec()
    first = lab(stop_at_s=None)
    sweep.run(first, spec(users="1000"))
    before = snapshot(first.paths.raw)
    machine = lab()
    machine.runner.world.node("db1")["version"] = "2.0"
    with pytest.raises(RequestError, match=r"db\.running\.dbd was 1\.0, is 2\.0"):
        sweep.run(machine, s)
    assert snapshot(machine.paths.raw) == before, "nothing was measured"
    machine.runner.world.node("db1")["version"] = "1.0"
    assert sweep.run(machine, s) == 0


def test_nodes_of_one_role_with_different_versions_are_all_named():
    assert versions._text({"9.7.4": ["db1", "db3"], "9.8.0": ["db2"]}) == "9.7.4 (db1 db3), 9.8.0 (db2)"


def snapshot(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_raw_is_read_only_and_hashes_hold(lab, spec):
    import hashlib

    machine, s = lab(), spec()
    sweep.run(machine, s)
    directory = machine.paths.raw / s.sweep / "u01000.r01"
    m = Manifest.read(directory)
    assert m.files
    assert all(hashlib.sha256((directory / f.path).read_bytes()).hexdigest() == f.sha256 for f in m.files)
    assert all(p.stat().st_mode & 0o222 == 0 for p in [directory, *directory.rglob("*")])


def test_more_users_extend_a_sweep(lab, spec):
    sweep.run(lab(), spec())
    machine = lab()
    assert sweep.run(machine, spec(users="1000,2000,3000")) == 0
    assert sum("run-jmeter" in c and "u02000" in c for c in machine.runner.ran) == 1
    assert not any("u01000" in c for c in machine.runner.ran)


def test_another_experiment_of_the_same_name_is_refused(lab, spec):
    sweep.run(lab(), spec(name="x"))
    with pytest.raises(RequestError, match=r"exists with other seed \(1 there\)"):
        sweep.run(lab(), spec(name="x", seed="2"))


def test_invalid_trials_are_tried_again_and_all_attempts_are_kept(lab, spec):
    s, machine = spec(users="1000"), lab(invalid=["host_busy", "host_busy"])
    assert sweep.run(machine, s) == 0
    made = trials(machine, s)["u01000.r01"]
    assert [a.outcome for a in made] == ["invalid", "invalid", "valid"]
    assert len({a.manifest.seeds["client1"] for a in made}) == 3, "the same draws might fail alike"


@pytest.mark.parametrize("seconds", [300, 10_000])
def test_after_stolen_time_the_next_attempt_waits_until_less_is_stolen(lab, spec, seconds):
    """But not for ever."""
    s, machine = spec(users="1000"), lab(invalid=["host_robbed"])
    machine.runner.world.state["robbed_until_s"] = dry.EPOCH_S + seconds
    assert sweep.run(machine, s) == 0
    first, second = (a.manifest for a in trials(machine, s)["u01000.r01"])
    ended_s = first.phases[-1].end_s
    least = min(dry.EPOCH_S + seconds - ended_s, stolen.LONGEST_S)
    assert least > stolen.LOOK_S, "the hypervisor stopped before the first attempt ended: nothing is tested"
    assert least <= second.phases[0].start_s - ended_s < least + 3 * stolen.LOOK_S
    (said,) = (text for text in machine.screen.said if "a hypervisor takes" in text)
    assert said.startswith("a hypervisor takes 5.0 % of the CPU time, 1 % are allowed: waiting until it takes less")


def test_with_one_attempt_nothing_waits_for_a_better_time(lab, spec):
    s, machine = spec(users="1000,2000"), lab(invalid=["host_robbed"])
    machine.runner.world.state["robbed_until_s"] = dry.EPOCH_S + 10_000
    assert sweep.run(machine, s, attempts=1) == 1
    assert not [text for text in machine.screen.said if "a hypervisor takes" in text]


def test_out_of_attempts_is_exit_code_1_and_stays_so(lab, spec):
    s, machine = spec(users="1000"), lab(invalid=["host_busy"] * 3)
    assert sweep.run(machine, s) == 1
    again = lab()
    assert sweep.run(again, s) == 1
    assert not any("run-jmeter" in c for c in again.runner.ran)
    assert sweep.run(lab(), s, attempts=4) == 0


def test_the_result_comes_last_and_begins_with_the_verdict(lab, spec):
    machine, s = lab(invalid=["host_busy", "", "host_busy", "host_busy"]), spec()
    assert sweep.run(machine, s) == 1
    result = machine.screen.said.index(f"Simulated: what limits {s.sweep}.")
    assert machine.screen.said[result + 1].startswith("report: ")
    assert machine.screen.said[result + 2 :] == [
        "warning: no valid attempt in 1 of 2 trials: u01000.r01 (3 attempts, the last one invalid: host_busy); "
        "two more: ATTEMPTS=5, in the file of a campaign `attempts: 5`"
    ]
    (shown,) = sweep_status(machine)["verdicts"].values()
    assert shown == f"Simulated: what limits {s.sweep}."


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (0, ""),
        (3, "; two more: ATTEMPTS=5,"),
        (19, "; one more: ATTEMPTS=20,"),
        (20, "; more than 20 attempts are not"),
    ],
)
def test_no_more_attempts_are_advised_than_are_allowed(made, says):
    assert sweep._more_attempts(made).startswith(says)
    (attempts,) = (option for option in experiments.sweep.params if option.name == "attempts")
    assert attempts.type.max == plan.ATTEMPTS_MOST


def test_with_json_the_result_is_a_line_of_data(lab, spec, capsys):
    machine = lab()
    machine.screen = Screen(as_json=True)
    sweep.run(machine, spec(users="1000"))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (result,) = (e for e in events if e["event"] == "result")
    assert result["sentence"].startswith("Simulated")


def sweep_status(machine):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        node_commands.status(machine, as_json=True)
    return json.loads(out.getvalue())


def test_secrets_are_private_and_not_in_results(lab, spec):
    machine, s = lab(), spec(users="1000")
    sweep.run(machine, s)
    file = machine.paths.secrets
    assert file.stat().st_mode & 0o077 == 0
    values = [line.split(": ")[1] for line in file.read_text().splitlines()]
    everything = b"".join(p.read_bytes() for p in machine.paths.results.rglob("*") if p.is_file())
    assert len(values) == 3
    assert not any(v.encode() in everything for v in values)


def test_deployment_is_skipped_when_it_is_in_force(lab, spec):
    sweep.run(lab(), spec(users="1000"))
    machine = lab()
    sweep.run(machine, spec(users="1000,2000"))
    assert not any(c.startswith("ansible-playbook") for c in machine.runner.ran)
    assert json.loads(machine.paths.in_force.read_text())["warm"]["interactions"] >= 300


def test_a_deployment_that_was_cut_short_restarts_what_it_may_owe(lab, spec, monkeypatch):
    """Ansible forgets the restarts that it owes when it ends before them, and the next run finds nothing to change."""
    machine, other = lab(), {"users": "1000", "set": ["app_pool_size=8"], "name": "other"}
    sweep.run(machine, spec(users="1000"))
    assert "ntier_restart" not in machine.paths.deployment.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(dry.DryRunner, "_ansible_playbook", lambda *_: (1, "ended"))
        with pytest.raises(WorkError):
            sweep.run(lab(), spec(**other))
    assert machine.paths.deploying.exists()
    played, play = [], dry.DryRunner._ansible_playbook

    def read(runner, argv, text):
        played.append("ntier_restart" in machine.paths.deployment.read_text())
        return play(runner, argv, text)

    with monkeypatch.context() as patch:
        patch.setattr(dry.DryRunner, "_ansible_playbook", read)
        sweep.run(lab(), spec(**other))
    assert played
    assert all(played)
    assert not machine.paths.deploying.exists()
    sweep.run(lab(), spec(users="1000,2000"))
    assert "ntier_restart" not in machine.paths.deployment.read_text()


@pytest.mark.parametrize(
    ("app", "middleware", "rounds"),
    [([0, 0.5], [0, 0.5], 2), ([0, 9, 9.5], [0, 0, 0], 2), ([0, 9, 9], [0, 9, 9.5], 2), ([9] * 3, [0, 9, 18, 18], 3)],
)
def test_the_warm_up_goes_on_until_application_and_middleware_are_compiled(lab, spec, app, middleware, rounds):
    """CPU seconds of the compilers; settled are 0.1 of 0.2 cores x 30 s = 0.6 s."""
    machine = lab()
    machine.runner.jit_cpu_s = {"app": list(app), "middleware": list(middleware)}
    sweep.run(machine, spec(users="1000", phases="short"))
    assert json.loads(machine.paths.in_force.read_text())["warm"]["seconds"] == 30 * rounds


def test_the_warm_up_ends_though_something_compiles_on_and_on(lab, spec):
    machine = lab()
    machine.runner.jit_cpu_s = {"app": list(range(0, 300, 3)), "middleware": []}
    sweep.run(machine, spec(users="1000", phases="short"))
    warm = json.loads(machine.paths.in_force.read_text())["warm"]
    assert warm["seconds"] == 300
    assert warm["jit_cores"] == {"app1": 0.1, "middleware1": 0.0}


def test_the_time_of_the_compilers_has_a_point_whatever_the_locale_of_a_node(tmp_path):
    awk = tmp_path / "awk"
    awk.write_text('#!/bin/sh\ncat >/dev/null\n[ "$LC_ALL" = C ] && echo 12.34 || echo 12,34\n')
    awk.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "de_DE.UTF-8"}
    done = subprocess.run(["sh", "-c", JIT_CPU], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "12.34\n"


def test_a_time_of_the_compilers_that_is_no_number_is_one_clear_error(lab, spec):
    machine = lab()
    machine.runner.jit_cpu_s = {"app": ["12,34"] * 9}
    with pytest.raises(WorkError, match="app1: CPU seconds of its compilers: '12,34' is not a number"):
        sweep.run(machine, spec(users="1000"))


def test_a_brief_sweep_warms_up_briefly_and_a_longer_one_again(lab, spec):
    for i, (phases, rounds) in enumerate([("1/5/1", 1), ("smoke", 1), ("short", 2), ("smoke", 2)]):
        machine = lab()
        sweep.run(machine, spec(users="1000", phases=phases, name=f"brief{i}"))
        assert json.loads(machine.paths.in_force.read_text())["warm"]["seconds"] == 30 * rounds


def test_what_all_rounds_of_a_warm_up_served_counts(lab, spec, monkeypatch):
    """Four pages a second are 120 in a round of 30 s; 300 are needed."""
    monkeypatch.setattr(dry, "SERVICE_S", 0.25)
    machine = lab()
    sweep.run(machine, spec(users="1000", phases="short"))
    warm = json.loads(machine.paths.in_force.read_text())["warm"]
    assert warm["seconds"] == 90
    assert 300 <= warm["interactions"] < 400


def test_a_system_that_serves_too_little_for_its_warm_up_is_told_so_at_once(lab, spec, root, monkeypatch):
    """One interaction in 10 s. Nothing is restarted or deployed again."""
    monkeypatch.setattr(dry, "SERVICE_S", 10.0)
    file = root / "systems/rubbos/system.yaml"
    file.write_text(re.sub(r"^  warm_up_s: .*$", "  warm_up_s: 20", file.read_text(), flags=re.MULTILINE))
    machine = lab()
    with pytest.raises(WorkError, match=r"only \d interactions served in 60 s.* load.warm_up_s in .*/system.yaml .*20"):
        sweep.run(machine, spec(users="1000"))
    assert sum(c.startswith("ansible-playbook") for c in machine.runner.ran) == 1
    assert not any("systemctl restart" in c for c in machine.runner.ran)


def test_work_may_be_little_in_a_warm_up(lab, spec, monkeypatch):
    s = spec(users="1000")
    sweep.run(lab(), s)
    load = s.system.definition.load.model_copy(update={"model": LoadModel.WORK})
    definition = s.system.definition.model_copy(update={"load": load})
    working = replace(s, system=replace(s.system, definition=definition))
    monkeypatch.setattr(deploy, "drive", lambda *_: (1, 0))
    machine = lab()
    machine.paths.in_force.write_text("{}")
    assert deploy.warm_up(machine, working)["interactions"] == 1


def test_a_system_without_a_warm_up_is_swept_too(lab, spec, root):
    file = root / "systems/rubbos/system.yaml"
    file.write_text(re.sub(r"^  warm_up_s: .*$", "  warm_up_s: 0", file.read_text(), flags=re.MULTILINE))
    machine, s = lab(), spec(users="1000")
    assert s.system.definition.load.warm_up_s == 0
    assert sweep.run(machine, s) == 0
    assert not any("warm-up" in step for step in plan_view.steps(machine, s))
    assert "warm_up" not in str(trials(machine, s)["u01000.r01"][0].manifest.steps)


def test_what_a_sweep_was_told_is_noted_for_deploy(lab, spec):
    machine = lab()
    sweep.run(machine, spec(users="1000"), 3, {"topo": "1/1/1/1M", "name": None, "hosts": ""})
    assert node_commands.noted(machine) == {"topo": "1/1/1/1M"}


def test_a_changed_role_is_deployed_again(lab, spec, root):
    sweep.run(lab(), spec(users="1000"))
    (root / "ansible" / "playbooks" / "deploy.yml").write_text("- hosts: web\n")
    machine = lab()
    sweep.run(machine, spec(users="1000,2000"))
    assert any(c.startswith("ansible-playbook") for c in machine.runner.ran)


def test_users_wait_for_a_jmeter_that_takes_long(lab, spec, monkeypatch):
    monkeypatch.setattr(dry, "JMETER_BOOT_S", 25.0)
    machine, s = lab(), spec(users="1000")
    assert sweep.run(machine, s) == 0
    (only,) = trials(machine, s)["u01000.r01"]
    begun = next(x["t_s"] for x in only.manifest.steps if x["step"] == "start")
    assert only.outcome == "valid"
    assert 25 < only.manifest.phases[0].start_s - begun < 28


def test_a_jmeter_that_never_comes_fails_the_attempt(lab, spec, monkeypatch):
    sweep.run(lab(), spec(users="2000"))
    monkeypatch.setattr(dry, "JMETER_BOOT_S", 100.0)
    machine, s = lab(), spec(users="1000,2000")
    assert sweep.run(machine, s) == 1
    for attempt in trials(machine, s)["u01000.r01"]:
        assert attempt.manifest.failure == "late_start: JMeter on client1 is not ready after 60 s"


def test_a_trial_whose_files_are_gone_is_run_again(lab, spec):
    s, machine = spec(users="1000"), lab()
    sweep.run(machine, s)
    folder = machine.paths.raw / s.sweep / "u01000.r01"
    lost = next(f for f in Manifest.read(folder).files if f.path.startswith("clients/"))
    (folder / lost.path).parent.chmod(0o755)
    (folder / lost.path).unlink()
    [attempt] = trials(machine, s)["u01000.r01"]
    assert (attempt.outcome, attempt.problem) == ("failed", f"{lost.path} is missing")
    assert plan_view.plan_data(lab(), s)["trials"][0]["state"] == "to run"
    assert sweep.run(lab(), s, attempts=1) == 0
    assert [a.outcome for a in trials(machine, s)["u01000.r01"]] == ["failed", "valid"]


def test_trials_that_are_done_are_not_in_the_time_left(lab, spec):
    sweep.run(lab(), spec(users="1000,3000"))
    machine, told = lab(), []
    machine.screen.trial = lambda *a, **_: told.append(a[-1])
    sweep.run(machine, spec(users="500,1000,3000"))
    [left_s] = told
    assert 32 < left_s < 2 * 32, "one trial of 32 s and what it takes beside its phases"
