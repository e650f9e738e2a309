"""Sweeps of users who write on the dry twin: each trial begins with the same data."""

from __future__ import annotations

import json

import pytest
from ntier_harness import sweep

from . import dry
from .promises import trials


@pytest.fixture
def writing(root):
    rows = "StoriesOfTheDay,StoreComment,1\nStoreComment,StoriesOfTheDay,1\n"
    (root / "workloads/mixes/read_write.csv").write_text(f"from,to,probability\n{rows}")


def rows_before(machine, s) -> set[int]:
    folders = (machine.paths.raw / s.sweep).glob("u*/nodes/db1/data_before.json")
    return {json.loads(file.read_text())["stories"]["rows"] for file in folders}


def test_each_trial_of_users_who_write_begins_with_the_same_data(lab, spec, writing):
    machine, s = lab(), spec(users="1000,2000,3000", mix="read_write")
    assert sweep.run(machine, s) == 0
    assert rows_before(machine, s) == {101}, "with what the warm-up wrote, whose users' situations trials begin in"
    assert sum("warm-up:" in text for text in machine.screen.said) == 1, "restored databases need no new warm-up"


def test_data_that_cannot_be_restored_fail_the_trial(lab, spec, writing, monkeypatch):
    monkeypatch.setattr("ntier_harness.trial.restore", lambda lab, spec, name: None)
    machine, s = lab(), spec(users="1000,2000", mix="read_write")
    assert sweep.run(machine, s, attempts=1) == 1
    [attempt] = trials(machine, s)["u02000.r01"]
    assert "differ from those kept after the warm-up" in attempt.manifest.failure


def test_data_that_users_changed_are_restored_for_the_next_sweep(lab, spec, writing):
    for users in ("1000", "1000,2000"):  # the second goes on with the first, without a warm-up of its own
        sweep.run(lab(), spec(users=users, mix="read_write"))
    machine = lab()
    assert machine.paths.written.exists()
    sweep.run(machine, spec(users="1000"))
    assert machine.runner.world.state["nodes"]["db1"]["rows"] == 100
    assert not machine.paths.written.exists()


def test_a_machine_that_joins_has_nothing_to_restore(lab, spec, writing, monkeypatch):
    """On target hosts, where it has no program before it is deployed either."""
    on_node, play = dry.DryRunner._on_node, dry.DryRunner._ansible_playbook

    def without_the_program(self, node, command, words, given):
        missing = "ntier-restore" in command and not node.get("installed")
        return (127, "ntier-restore: not found") if missing else on_node(self, node, command, words, given)

    def installs(self, argv, given):
        for node in self.world.state["nodes"].values():
            node["installed"] = True
        return play(self, argv, given)

    monkeypatch.setattr(dry.DryRunner, "_on_node", without_the_program)
    monkeypatch.setattr(dry.DryRunner, "_ansible_playbook", installs)
    assert sweep.run(lab(), spec(users="1000", mix="read_write")) == 0
    assert sweep.run(lab(), spec(topo="1/1/1/2M", users="1000", mix="read_write")) == 0
