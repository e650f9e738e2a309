"""What is refused before anything is touched: `plan`, the check before set-up and the sweep say the same."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ntier_harness import campaign, campaign_spec, cli, machine, node_commands, preflight, sweep
from ntier_harness.errors import RequestError

SMALL = ["--topo", "1/1/1/1M", "--users", "1000", "--phases", "smoke"]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What a command says to a request, on a machine with Terraform and memory enough, and a state of its own."""
    monkeypatch.setenv("NTIER_STATE", str(tmp_path / "own-state"))
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemAvailable": 64 * 10**9})
    monkeypatch.setattr("ntier_harness.runner.Runner.has", lambda self, name: True)

    def ask(command: list[str], *options: str) -> str:
        with pytest.raises(RequestError) as error:
            cli.cli.main([*command, *SMALL, "--results", str(tmp_path / "r"), *options], standalone_mode=False)
        assert not (tmp_path / "own-state").exists()
        return str(error.value)

    return ask


@pytest.fixture
def measured(lab, spec):
    """Puts a sweep into a folder."""

    def measure(place: Path) -> None:
        dry = lab()
        sweep.run(dry, spec(users="1000", name="old", scale="0.2"))
        shutil.move(dry.paths.results, place)

    return measure


def a_file_as_results(place: Path, monkeypatch, measured) -> list[str]:
    place.write_text("")
    return []


def a_file_as_store(place: Path, monkeypatch, measured) -> list[str]:
    place.mkdir()
    (place / "store").write_text("")
    return []


def an_old_name_with_another_seed(place: Path, monkeypatch, measured) -> list[str]:
    measured(place)
    return ["--name", "old", "--scale", "0.2", "--seed", "2"]


def more_than_the_disk_has(place: Path, monkeypatch, measured) -> list[str]:
    monkeypatch.setattr(preflight, "disk_free", lambda paths: 70 * 10**9)
    return ["--users", "1000:50000:1000", "--phases", "86400/86400/86400", "--reps", "99"]


def too_little_memory(place: Path, monkeypatch, measured) -> list[str]:
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemAvailable": 10**9})
    return []


def no_terraform(place: Path, monkeypatch, measured) -> list[str]:
    monkeypatch.setattr("ntier_harness.runner.Runner.has", lambda self, name: name not in ("terraform", "tofu"))
    monkeypatch.setenv("TERRAFORM", "")
    return []


def a_container_without_powers(place: Path, monkeypatch, measured) -> list[str]:
    monkeypatch.setattr("ntier_harness.runner.Runner.has", lambda self, name: name != "incus")
    monkeypatch.setattr(
        machine, "obstacle", lambda: machine.judge("Linux", "CapEff:\t00000000a80425fb", can_have_incus=True)
    )
    return []


@pytest.mark.parametrize(
    ("situation", "says"),
    [
        (a_file_as_results, "results: {r} is not a folder"),
        (a_file_as_store, "results: {r}/store is not a folder"),
        (an_old_name_with_another_seed, "exists with other seed (1 there)"),
        (more_than_the_disk_has, " TB are needed in {r}"),
        (too_little_memory, "memory: the nodes need about 2.8 GB, 1.0 GB are available"),
        (no_terraform, "terraform: neither Terraform nor OpenTofu is here"),
        (a_container_without_powers, "root lacks CAP_SYS_ADMIN"),
    ],
    ids=lambda value: getattr(value, "__name__", "says"),
)
def test_the_plan_refuses_what_the_sweep_refuses(asked, tmp_path, monkeypatch, measured, situation, says):
    options = situation(tmp_path / "r", monkeypatch, measured)
    before = sorted(tmp_path.rglob("*"))
    said = asked(["plan"], *options)
    assert says.format(r=tmp_path / "r") in said
    assert asked(["sweep", "--needs"], *options) == said
    assert sorted(tmp_path.rglob("*")) == before


def test_no_images_are_built_beside_a_sweep_that_runs(asked, lab, root, monkeypatch):
    monkeypatch.setenv("NTIER_STATE", str(root / "state"))
    with sweep.locked(lab()):
        assert asked(["sweep", "--needs"]).startswith("another ntier is at work: pid ")


def test_a_sweep_that_was_not_planned_is_refused_too(lab, spec, root):
    (root / "results").mkdir()
    (root / "results" / "raw").write_text("a file in the way")
    dry = lab()
    with pytest.raises(RequestError, match="raw is not a folder"):
        sweep.run(dry, spec())
    assert not dry.runner.ran


def test_a_place_that_only_trying_shows_to_be_wrong(lab, spec):
    dry = lab()
    dry.paths = replace(dry.paths, results=dry.paths.results / ("x" * 300))
    with pytest.raises(RequestError, match=r"cannot be made \(File name too long\)"):
        sweep.run(dry, spec())
    assert not any("terraform" in command for command in dry.runner.ran)


def test_what_is_finished_needs_neither_disk_nor_memory(lab, spec, monkeypatch):
    sweep.run(lab(), spec(users="1000"))
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemAvailable": 0})
    monkeypatch.setattr(preflight, "disk_free", lambda paths: 0)
    preflight.check(lab(), spec(users="1000"), 3)
    with pytest.raises(RequestError, match=r"results: .* are needed"):
        preflight.check(lab(), spec(users="1000,2000"), 3)


def test_nodes_that_are_up_need_memory_for_more_of_them_only(lab, spec, monkeypatch):
    sweep.run(lab(), spec(users="1000"))
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemAvailable": 10**9})
    preflight.check(lab(), spec(users="1000,2000"), 3)
    preflight.check(lab(), spec(topo="1/1/1/2M"), 3)
    with pytest.raises(RequestError, match=r"memory: the nodes need about .*, 1.0 GB are available"):
        preflight.check(lab(), spec(topo="1/1/1/4M"), 3)


def test_a_client_of_incus_elsewhere_makes_no_nodes_here(lab, spec, monkeypatch):
    """As on macOS, where there is no /proc."""
    monkeypatch.setattr(machine, "is_linux", lambda: False)
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(machine, "memory_info", lambda: {"MemTotal": 64 * 10**9})
    with pytest.raises(RequestError, match="target: local needs Linux, and this is Darwin"):
        preflight.check(lab(), spec(), 3)


def test_laboratory_and_request_are_of_one_target(lab, spec):
    on_hosts = spec(target="hosts")
    for refuse in (lambda: sweep.run(lab(), on_hosts), lambda: node_commands.up(lab(), on_hosts, {})):
        with pytest.raises(RequestError, match=r"smoke-hosts is for target hosts, not local"):
            refuse()


def test_a_campaign_is_refused_as_a_whole(lab, root, monkeypatch):
    text = "topologies: [1/1/1/1M, 1/1/1/2M]\nusers: [1000]\nphases: smoke\n"
    monkeypatch.setattr(preflight, "disk_free", lambda paths: 102 * 10**6)  # enough for one of the two
    dry, parsed = lab(), campaign_spec.parse(text, "c.yaml", root, 2)
    preflight.check(dry, parsed.sweeps[0], 3)
    with pytest.raises(RequestError, match="are needed in"):
        campaign.run(dry, parsed, "c.yaml")
    assert not dry.runner.ran
    assert not dry.paths.results.exists()


@pytest.mark.parametrize(
    ("system", "powers", "can_have_incus", "says"),
    [
        ("Linux", "CapEff:\t000001ffffffffff", True, ""),
        ("Linux", "", True, ""),
        ("Linux", "CapEff:\t00000000a80425fb", True, "lacks CAP_SYS_ADMIN"),
        ("Linux", "", False, "installs by apt only"),
        ("Darwin", "", False, "this is Darwin"),
    ],
)
def test_a_machine_that_cannot_make_nodes_is_told_what_to_do_instead(system, powers, can_have_incus, says):
    problem = machine.judge(system, powers, can_have_incus=can_have_incus)
    assert says in problem
    assert bool(problem) == bool(says)
    assert not problem or all(
        way in problem for way in ("Docker is no substitute", "TARGET=hosts", "ntier-analysis demo")
    )
