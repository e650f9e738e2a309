"""Campaigns: the file, the order, and whole runs on the dry twin."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from ntier_harness import campaign, campaign_ledger, campaign_spec, cli, ledger, node_commands, plan
from ntier_harness.errors import Interrupted, RequestError, WorkError

from . import promises
from .dry import DryTarget

TWO = "topologies: [1/1/1/1M, 1/1/1/2M]\nusers: [1000, 3000]\nphases: smoke\n"
EXAMPLES = Path(__file__).resolve().parents[2] / "workloads" / "campaigns"


@pytest.fixture
def parse(root):
    return lambda text, cores=2: campaign_spec.parse(text, "c.yaml", root, cores)


def states(lab, parsed):
    return campaign_ledger.data(lab, parsed)["states"]


# ---- the file ------------------------------------------------------------------------------------------------------


def test_lists_are_crossed(parse):
    parsed = parse("topologies: [1/1/1/1M, 1/2/1/2M]\nmixes: [browse_only, read_write]\nname: x\nreps: 2\n")
    assert parsed.name == "x"
    mixes = ("browse_only", "read_write")
    pairs = [(topology, mix) for topology in ("1/1/1/1M", "1/2/1/2M") for mix in mixes]
    assert [(str(s.topology), s.mix.name) for s in parsed.sweeps] == pairs
    assert {s.reps for s in parsed.sweeps} == {2}


def test_entries_may_be_left_out_and_added(parse):
    parsed = parse(
        "topologies: [1/1/1/1M, 1/1/1/2M]\nmixes: [browse_only, read_write]\nusers: 1000\n"
        "exclude: [{topology: 1/1/1/2M, mix: read_write}]\n"
        "include: [{topology: 1/1/1/1M, set: {web_max_workers: 60}, users: [500, 1000]}]\n"
    )
    assert len(parsed.sweeps) == 4
    assert (parsed.sweeps[-1].users, parsed.sweeps[-1].settings) == ((500, 1000), {"web_max_workers": 60})


def test_no_settings_are_settings_too(parse):
    """A campaign may compare with the usual ones."""
    parsed = parse("include: [{topology: 1/1/1/1M, set: {}}, {topology: 1/1/1/1M, set: {web_max_workers: 60}}]\n")
    assert [s.settings for s in parsed.sweeps] == [{}, {"web_max_workers": 60}]


def test_without_middlewares_each_topology_has_the_one_that_a_sweep_has(parse):
    """The default one does not speak with MySQL Cluster."""
    parsed = parse("topologies: [1/1/1/1M, 1/1/1/2C]\nusers: 1000\n", cores=8)
    usual, cluster = (s.middleware for s in parsed.sweeps)
    assert usual == "shardingsphere" != cluster
    text = "topologies: [1/1/1/1M, 1/1/1/2C]\nusers: 1000\nexclude: [{middleware: %s}]\n"
    assert [str(s.topology) for s in parse(text % cluster, cores=8).sweeps] == ["1/1/1/1M"]
    assert [str(s.topology) for s in parse(text % usual, cores=8).sweeps] == ["1/1/1/2C"]
    with pytest.raises(RequestError, match="exclude: matches no sweep"):
        parse(text % "pgpool", cores=8)


def test_values_are_texts_as_typed(parse):
    """YAML 1.1 reads 100:50 as a number in base 60."""
    assert parse("topologies: [1/1/1/1M]\nusers: 10:50:10\n").sweeps[0].users == (10, 20, 30, 40, 50)


def test_one_scale_for_all(parse):
    parsed = parse("topologies: [1/1/1/1M, 1/2/1/9M]\n")
    assert {s.scale for s in parsed.sweeps} == {0.1}
    assert [s.name for s in parsed.sweeps] == ["s0_1", ""], "a sweep of the scale it has by itself keeps its trials"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TWO + "topologys: [1/1/1/1M]\n", "c.yaml, line 4: key: 'topologys' is unknown (did you mean 'topologies'?)"),
        ("users: 1000\ntopologies:\n  - 1/1/1/1M\n  - 1/0/1/1M\n", "c.yaml, line 4: topologies: topology '1/0/1/1M'"),
        (TWO + "reps: many\n", "c.yaml, line 4: reps: 'many' is not a whole number"),
        ("topologies: [1/1/1/1M]\nmixes: [browse_onyl]\n", "line 2: mixes: 'browse_onyl' is unknown (did you mean"),
        ("topologies: 1/1/1/1M\n", "line 1: topologies: '1/1/1/1M': expected a list"),
        ("topologies: [1/1/1/1M, 1/1/1/1M]\n", "line 1: 1-1-1-1M.browse_only.shardingsphere is asked for twice"),
        (TWO + "target: hosts\n", "line 4: target: hosts needs the machines' inventory too; give hosts: FILE.yaml"),
        (
            TWO + "target: hosts\nhosts: ~nobody-here/lab.yaml\n",
            "line 5: hosts: ~nobody-here/lab.yaml: ~nobody-here is",
        ),
        (TWO + "hosts: lab.yaml\n", "line 4: hosts: of no use to target local; give target: hosts"),
        (
            "include: [{topology: 1/1/1/1M}]\nmixes: [read_write]\n",
            "line 2: mixes: there are no topologies: to combine with; say it in the entries of include:",
        ),
        (TWO + "target: nope\n", "line 4: target: 'nope' is unknown"),
        (TWO + "target: [local, hosts]\n", "line 4: target: ['local', 'hosts']: expected a text"),
        (TWO + "targets: [local, hosts]\n", "line 4: key: 'targets' is unknown (did you mean 'target'?)"),
        (
            TWO + "include: [{topology: 1/1/1/1P, target: hosts}]\n",
            "line 4: include: target is the same for the whole campaign; give it beside include:",
        ),
        (TWO + "exclude: [{topology: 1/9/1/1M}]\n", "line 4: exclude: matches no sweep"),
        (TWO + "include: [{topo: 1/9/1/1M}]\n", "line 4: include: 'topo' is unknown (did you mean 'topology'?)"),
        *(
            (f"{TWO}{key}: {empty}\n", f"line 4: {key}: has no value; give one, or leave {key} out")
            for key in ("scale", "attempts", "include", "exclude", "search", "name", "target", "mixes")
            for empty in ("", "[]", "''", "{}")
        ),
        (
            TWO + "include: [{topology: 1/1/1/1P, users: []}]\n",
            "line 4: users: has no value; give one, or leave users out",
        ),
        (TWO + "attempts: 0\n", "line 4: attempts: 0 is out of range"),
        (TWO + "attempts: 21\n", "line 4: attempts: 21 is out of range"),
        (TWO + "name: My Campaign\n", "line 4: name: 'My Campaign'"),
        (TWO + "users: 1000\n", "line 4: key 'users' is there twice"),
        ("topologies: [1/1/1/1M\n", "not YAML"),
        ("- 1/1/1/1M\n", "expected keys with values"),
        ("users: 1000\n", "no sweep; give topologies"),
        ("topologies: [1/1/1/1M, 9/9/9/9M]\n", "line 1: topologies: 9/9/9/9M: scale: 2 cores cannot carry"),
    ],
)
def test_a_wrong_file_is_one_clear_error(parse, text, says):
    with pytest.raises(RequestError) as error:
        parse(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@cache
def example(file: Path) -> campaign_spec.Campaign:
    return campaign_spec.parse(file.read_text(), str(file), EXAMPLES.parents[1], 2)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda f: f.stem)
def test_examples_can_be_run(file):
    assert example(file).sweeps


def test_images_are_those_of_the_sweeps():
    """What set-up makes; HAProxy's image was left out, and nobody found out before Terraform did."""
    named = {}
    for file in EXAMPLES.glob("*.yaml"):
        parsed = example(file)
        named[file.stem] = {image for spec in parsed.sweeps for image in spec.images}
    assert named["identical-pair"] == {"web", "app", "haproxy", "mysql-small", "client"}
    assert named["paper-mesh"] == {"web", "app", "shardingsphere", "mysql-small", "postgresql-small", "client"}


def test_a_campaign_on_hosts_has_its_laboratory_there(root, monkeypatch):
    """Target, inventory and scale come from the file; what this machine could carry is no matter."""
    text = TWO.replace("1/1/1/2M", "1/9/9/9M") + "target: hosts\nhosts: lab.yaml\n"
    parsed = campaign_spec.parse(text, str(root / "c.yaml"), root, 2)
    assert (parsed.target, parsed.hosts) == ("hosts", str(root / "lab.yaml"))
    assert {(s.target, s.scale, s.images) for s in parsed.sweeps} == {("hosts", 1.0, ())}
    (root / "c.yaml").write_text(text)
    (root / "lab.yaml").write_text("hosts:\n" + "".join(f"- address: 10.0.0.{i}\n" for i in range(1, 30)))
    monkeypatch.setenv("NTIER_ROOT", str(root))
    monkeypatch.setenv("NTIER_STATE", str(root / "state"))
    monkeypatch.setattr("ntier_harness.runner.Runner.has", lambda self, name: True)
    used = []
    monkeypatch.setattr(campaign, "run", lambda lab, parsed, file: used.append(lab) or 0)
    with pytest.raises(SystemExit, match="0"):
        cli.cli.main(["campaign", "--spec", str(root / "c.yaml")], standalone_mode=False)
    (machine,) = used
    assert (machine.target.name, machine.paths.target) == ("hosts", "hosts")
    campaign.check(machine, parsed)
    assert set(machine.target.assignment(parsed.sweeps[0])) == {"web1", "app1", "middleware1", "db1", "client1"}
    monkeypatch.setattr("ntier_harness.runner.Runner.has", lambda self, name: name != "mvn")
    with pytest.raises(RequestError, match="hosts: mvn is missing here; apt-get install maven"):
        campaign.check(machine, parsed)
    (root / "lab.yaml").write_text("hosts:\n- address: 10.0.0.1\n")
    with pytest.raises(RequestError, match="app needs 1"):
        campaign.check(machine, parsed)


# ---- order ---------------------------------------------------------------------------------------------------------


def test_blocks_are_complete_and_the_first_covers_the_range_early(parse):
    topologies = [f"1/1/1/{n}M" for n in range(1, 9)]
    parsed = parse(f"topologies: [{', '.join(topologies)}]\nreps: 3\n", cores=16)
    made = [[s.topology.counts["db"] for s in block] for block in campaign_spec.blocks(parsed)]
    assert all(sorted(b) == list(range(1, 9)) for b in made)
    assert made[0][:4] == [1, 5, 3, 7]
    assert made[1] == [8, 7, 6, 5, 4, 3, 2, 1], "neighbours share nodes"
    assert made[2] == made[1][::-1], "time does not go along with size"
    assert [[s.reps for s in b] for b in campaign_spec.blocks(parsed)] == [[r] * 8 for r in (1, 2, 3)]


def test_sweeps_of_one_topology_are_run_in_turns(parse):
    parsed = parse(
        "users: [1000]\nreps: 4\ninclude: [{topology: 1/1/1/1M, name: left}, {topology: 1/1/1/1M, name: right}]\n"
    )
    assert [s.sweep.rpartition(".")[2] for s in parsed.sweeps] == ["left", "right"]
    assert "".join(s.name[0] for block in campaign_spec.blocks(parsed) for s in block) == "lrrllrrl"


def test_what_a_switch_costs(parse):
    a, b, c = parse("topologies: [1/1/1/1M, 1/1/1/2M, 1/1/1/2P]\nusers: 1000\n").sweeps
    assert campaign_spec.new_nodes(a.topology, b.topology) == 1
    assert campaign_spec.new_nodes(b.topology, a.topology) == 0
    assert campaign_spec.new_nodes(b.topology, c.topology) == 2
    assert campaign_spec.switch_s(a, a) == 0 < campaign_spec.switch_s(b, a) < campaign_spec.switch_s(a, b)


def test_a_switch_to_bare_machines_installs_them(parse):
    a, b = parse("topologies: [1/1/1/1M, 1/1/1/2M]\nusers: 1000\ntarget: hosts\nhosts: lab.yaml\n").sweeps
    deployed_s = plan.UP_S + plan.DEPLOY_S + plan.warm_up_s(a)
    more_s = plan.INSTALL_S - plan.UP_S - plan.DEPLOY_S
    assert campaign_spec.switch_s(None, a) == campaign_spec.switch_s(a, b) - plan.NODE_S == deployed_s + more_s
    assert campaign_spec.switch_s(None, a, up=True) == campaign_spec.switch_s(b, a) == deployed_s


@pytest.mark.parametrize("option", ["data: tiny", "clients: 2", "trace: 100"])
def test_another_deployment_of_the_same_topology_is_a_switch(parse, option):
    a, b = parse(f"include: [{{topology: 1/1/1/1M}}, {{topology: 1/1/1/1M, {option}}}]\nusers: 1000\n").sweeps
    assert campaign_spec.switch_s(a, b) == plan.from_nothing_s(b)


@pytest.mark.parametrize(("phases", "seconds"), [("2/5/1", 38), ("smoke", 76), ("short", 114), ("standard", 114)])
def test_a_warm_up_is_as_long_as_its_runs_need(parse, phases, seconds):
    (spec,) = parse(f"topologies: [1/1/1/1M]\nusers: 1000\nphases: {phases}\n").sweeps
    assert plan.warm_up_s(spec) == seconds


def test_a_system_without_jvms_is_warm_after_the_fewest_rounds():
    text = "system: mediawiki\ntopologies: [1/1/1P]\nusers: 1000\n"
    (spec,) = campaign_spec.parse(text, "c.yaml", EXAMPLES.parents[1], 2).sweeps
    assert plan.warm_up_s(spec) == 2 * (30 + plan.WARM_START_S)


def test_a_system_without_a_warm_up_takes_no_time_for_one():
    text = "system: toy\ntopologies: [1/1]\nusers: 10\n"
    (spec,) = campaign_spec.parse(text, "c.yaml", EXAMPLES.parents[1], 2).sweeps
    assert plan.warm_up_s(spec) == 0
    assert plan.from_nothing_s(spec) == 65


# ---- runs ----------------------------------------------------------------------------------------------------------


def test_a_campaign_runs_all_and_again_nothing(lab, parse):
    machine, parsed = lab(), parse(TWO + "reps: 2\n")
    assert states(machine, parsed) == {"planned": 8, "running": 0, "done": 0, "invalid": 0, "failed": 0}
    assert campaign.run(machine, parsed, "c.yaml") == 0
    assert states(machine, parsed) == {"planned": 0, "running": 0, "done": 8, "invalid": 0, "failed": 0}
    began = [m["steps"][0]["t_s"] for s in parsed.sweeps for m in manifests(machine, s)]
    assert [r for _, r in sorted(zip(began, [1, 1, 2, 2] * 2, strict=True))] == [1] * 4 + [2] * 4
    before = promises.digests(machine.paths.results)
    again = lab()
    assert campaign.run(again, parsed, "c.yaml") == 0
    assert promises.digests(again.paths.results) == before
    assert not any("run-jmeter" in c for c in again.runner.ran)


def test_the_ledger_reads_each_record_once(lab, parse, monkeypatch):
    """However many blocks are left: a campaign asks for its end before each of them."""
    machine, parsed = lab(), parse(TWO)
    assert campaign.run(machine, parsed, "c.yaml") == 0
    read, more = [], parse(TWO + "reps: 9\n")
    of_manifest = ledger.Manifest.read
    monkeypatch.setattr(ledger.Manifest, "read", lambda folder: read.append(folder) or of_manifest(folder))
    for ask in (campaign_ledger.data, campaign_ledger.ends):
        read.clear()
        ask(machine, more)
        assert sorted(read) == sorted({*read}), ask.__name__
        assert len(read) == 4
    with ledger.read_once():
        before = ledger.attempts(machine.paths.raw / parsed.sweeps[0].sweep)
    assert ledger.attempts(machine.paths.raw / parsed.sweeps[0].sweep) is not before, "and anew the next time"


def manifests(machine, spec):
    """By repetition, then by load."""
    records = [a.manifest.model_dump() for v in ledger.attempts(machine.paths.raw / spec.sweep).values() for a in v]
    return sorted(records, key=lambda m: (m["rep"], m["users"]))


def test_an_interrupted_campaign_goes_on(lab, parse):
    machine, parsed = lab(), parse(TWO)
    machine.runner.stop_at_s = machine.runner.now() + 200
    with pytest.raises(Interrupted):
        campaign.run(machine, parsed, "c.yaml")
    done = states(machine, parsed)["done"]
    assert 0 < done < 4
    sealed = promises.sealed_valid(machine.paths.raw)
    again = lab()
    assert campaign.run(again, parsed, "c.yaml") == 0
    assert promises.sealed_valid(again.paths.raw).items() >= sealed.items()
    assert sum("run-jmeter" in c for c in again.runner.ran if "warm-up" not in c) == 4 - done


def test_a_sweep_that_cannot_go_on_is_recorded_and_the_next_one_runs(lab, parse):
    machine, parsed = lab(), parse(TWO + "search: capacity\n")
    folder = machine.paths.raw / parsed.sweeps[0].sweep
    folder.mkdir(parents=True)
    (folder / "search.json").write_text("{")
    assert campaign.run(machine, parsed, "c.yaml") == 1
    row, other = campaign_ledger.data(machine, parsed)["sweeps"]
    assert "not the record of a search" in row["error"]
    assert (other["done"], other["error"]) == (3, "")
    (folder / "search.json").unlink()
    assert campaign.run(lab(), parsed, "c.yaml") == 0
    assert [r["error"] for r in campaign_ledger.data(machine, parsed)["sweeps"]] == ["", ""]


def test_a_daemon_that_does_not_run_ends_the_campaign_and_is_no_fault_of_a_sweep(lab, parse):
    machine, parsed = lab(), parse(TWO)
    machine.runner.world.state["no_incus"] = True
    with pytest.raises(RequestError, match=r"Incus does not answer .* start it with: make setup"):
        campaign.run(machine, parsed, "c.yaml")
    assert [r["error"] for r in campaign_ledger.data(machine, parsed)["sweeps"]] == ["", ""]
    assert not any("terraform" in c for c in machine.runner.ran)
    machine.runner.world.state["no_incus"] = False
    assert campaign.run(machine, parsed, "c.yaml") == 0


def test_nodes_that_cannot_be_made_for_two_sweeps_end_the_campaign(lab, parse, monkeypatch):
    parsed = parse("topologies: [1/1/1/1M, 1/1/1/2M, 1/2/1/1M, 1/2/1/2M]\nusers: 1000\nphases: smoke\n")
    machine, tried = lab(), []

    def no_nodes(_self, spec, _log):
        tried.append(spec.sweep)
        raise WorkError("terraform: no answer")

    monkeypatch.setattr(DryTarget, "up", no_nodes)
    assert campaign.run(machine, parsed, "c.yaml") == 1
    assert len(tried) == 2
    why = "warning: two sweeps in a row had no nodes for the same reason: the campaign ends here; 2 sweeps not tried"
    assert why in machine.screen.said
    assert any("4 of 4 sweeps are not complete: " in s for s in machine.screen.said)
    errors = [r["error"] for r in campaign_ledger.data(machine, parsed)["sweeps"]]
    assert sorted(errors) == ["", "", "terraform: no answer", "terraform: no answer"]


def test_nodes_that_cannot_be_made_for_other_reasons_end_one_sweep_each(lab, parse, monkeypatch):
    parsed, tried = parse("topologies: [1/1/1/1M, 1/1/1/2M, 1/2/1/1M]\nusers: 1000\nphases: smoke\n"), []

    def no_nodes(_self, spec, _log):
        tried.append(spec.sweep)
        raise WorkError(f"no room for {spec.topology}")

    monkeypatch.setattr(DryTarget, "up", no_nodes)
    assert campaign.run(lab(), parsed, "c.yaml") == 1
    assert len(tried) == 3


def test_out_of_attempts_is_kept_as_what_it_is(lab, parse):
    machine, parsed = lab(invalid=["host_busy", "", "host_busy"]), parse(TWO + "attempts: 2\n")
    assert campaign.run(machine, parsed, "c.yaml") == 1
    assert states(machine, parsed) == {"planned": 0, "running": 0, "done": 3, "invalid": 1, "failed": 0}
    assert campaign.run(lab(), parse(TWO + "attempts: 3\n"), "c.yaml") == 0


def test_a_campaign_may_grow_and_nothing_else(lab, parse):
    campaign.run(lab(), parse(TWO), "c.yaml")
    bigger = parse(TWO.replace("1/1/1/2M]", "1/1/1/2M, 1/2/1/1M]").replace("3000]", "3000, 4000]"))
    with pytest.raises(RequestError, match=r"had sweep 1-1-1-1M\.browse_only\.shardingsphere\.smoke, which"):
        campaign.run(lab(), parse(TWO.replace("1/1/1/1M, ", "")), "c.yaml")
    with pytest.raises(RequestError, match=r"exists with other users \(was \[1000, 3000\]\)"):
        campaign.run(lab(), parse(TWO.replace("3000", "2000")), "c.yaml")
    with pytest.raises(RequestError, match=r"has scale 0\.2, and the file now gives 0\.1"):
        campaign.run(lab(), parse(TWO.replace("1/1/1/2M]", "1/1/1/2M, 1/2/1/9M]")), "c.yaml")
    machine = lab()
    assert campaign.run(machine, bigger, "c.yaml") == 0
    assert states(machine, bigger)["done"] == 9


def test_the_ledger_of_a_running_campaign(lab, parse, capsys):
    machine, parsed = lab(), parse(TWO)
    planned = campaign_ledger.data(machine, parsed)
    assert planned["left_s"] == pytest.approx(2 * (32 + 6) + 2 * (32 + 6.5) + 2 * (20 + 45 + 76 + 15) + 1, abs=1)
    machine.runner.stop_at_s = machine.runner.now() + 200
    with pytest.raises(Interrupted):
        campaign.run(machine, parsed, "c.yaml")
    machine = lab()
    node_commands.status(machine, as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)["campaigns"]
    assert shown["campaign"] == "c"
    assert shown["states"]["done"] + shown["states"]["planned"] == 4
    assert 0 < shown["left_s"] < planned["left_s"]
    measured = {sweep: shown["trial_s"][sweep] - planned["trial_s"][sweep] for sweep in planned["trial_s"]}
    assert len(measured) == 2
    assert all(measured.values()), "durations are measured"
    assert set(campaign_ledger.rounds(machine, parsed).values()) == {1.0}, "warm-ups too"
    node_commands.status(machine, as_json=False)
    out = capsys.readouterr().out
    assert "campaign c: scale 0.2, 3 attempts per trial" in out
    assert "expected end 20" in out
    assert "retries and long warm-ups not" in out
    machine = lab()
    campaign.run(machine, parsed, "c.yaml")
    assert any(s.endswith(", without retries and long warm-ups") for s in machine.screen.said)


def test_each_topology_has_its_own_duration(lab, root):
    parsed = campaign_spec.parse("topologies: [1/9/9/9M, 1/1/1/1M]\nusers: 1000\n", "c.yaml", root, 64)
    large, small = campaign_ledger.rows(lab(), parsed)
    assert large.left_s == plan.trial_duration_s(large.spec) > small.left_s == plan.trial_duration_s(small.spec)


def test_values_of_a_factor_do_not_go():
    def parsed(values: str) -> campaign_spec.Campaign:
        text = f"system: two-phase-commit\ntopologies: ['2']\nfactor: sleep_s={values}\n"
        return campaign_spec.parse(text, "c.yaml", EXAMPLES.parents[1], 2)

    before = {"sweeps": {s.sweep: campaign.fingerprint(s) for s in parsed("0.1,0.5").sweeps}}
    campaign.check_additions(before, parsed("0.1,0.5,1"))
    with pytest.raises(RequestError, match=r"other values \(was \[0.1, 0.5\]\)"):
        campaign.check_additions(before, parsed("1,2"))
