"""What a system says to its driver: commands, files, what a plan maps, and the data."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ntier_harness.catalog import Phases
from ntier_harness.drivers import Entry, Run, of_system, split
from ntier_harness.errors import RequestError
from ntier_harness.systems import System, find
from ntier_harness.systems.definition import Driver as ProgramOfASystem

from .this_machine import node

HERE = Path(__file__).parent / "drivers"


def named(folder: Path, **driver: object) -> System:
    """A system of which only the driver matters."""
    load = SimpleNamespace(driver=ProgramOfASystem.model_validate(driver), mixes=None)
    return System(SimpleNamespace(load=load), folder)


def test_a_command_of_a_system_and_its_files_go_to_the_clients(tmp_path):
    (tmp_path / "shop/load").mkdir(parents=True)
    (tmp_path / "drivers").mkdir()
    for file in ("shop/load/requests.csv", "drivers/http_driver.py"):
        (tmp_path / file).touch()
    folder, workloads = tmp_path / "shop", tmp_path / "workloads"
    words, properties = ["python3", "../drivers/http_driver.py"], {"requests": "requests.csv", "n": 5}
    shop = named(folder, kind="command", command=words, files=["load/requests.csv"], properties=properties)
    assert {path.name for path in of_system.files(shop, workloads)} == {"requests.csv", "http_driver.py"}
    driver = of_system.make(shop, workloads, {"n": 7})
    assert driver.command() == ["python3", "/opt/ntier/load/http_driver.py"]
    run = Run("/run/ntier/x", 4, Phases("test", 1, 5, 1), 1, Entry("web", 80), parameters={"rate_per_s": 3})
    assert driver.configuration(run, split(4, 1)[0]) == {
        "parameters": {"requests": "requests.csv", "n": 7, "rate_per_s": 3}
    }
    with pytest.raises(RequestError, match=r"load.driver: .*missing.csv does not exist"):
        of_system.files(named(folder, kind="command", command=["x"], files=["missing.csv"]), workloads)
    (folder / "requests.csv").touch()
    with pytest.raises(RequestError, match=r"two files have the name requests.csv"):
        of_system.files(
            named(folder, kind="command", command=["x"], files=["requests.csv", "load/requests.csv"]), workloads
        )


def test_a_plan_of_a_system_is_told_what_the_system_maps(tmp_path):
    (tmp_path / "shop.jmx").touch()
    workloads = tmp_path / "workloads"
    shop = named(tmp_path, kind="jmeter", plan="shop.jmx", own_thread_group=True, properties={"users": "{workers}"})
    assert [path.name for path in of_system.files(shop, workloads)] == ["shop.jmx"]
    run = Run("/run/ntier/x", 2600, Phases("test", 1, 5, 1), 1, Entry("web", 80))
    told = of_system.make(shop, workloads, {"page": 3}).configuration(run, split(2600, 2)[1])["jmeter"]
    assert told["properties"] == {"users": "{workers}", "page": 3}
    assert (told["plan"], told["own_thread_group"]) == ("/opt/ntier/load/shop.jmx", True)
    assert of_system.files(shop, tmp_path) == [], "what is in workloads/ is on the clients already"
    assert of_system.make(shop, tmp_path).configuration(run, split(1, 1)[0])["jmeter"]["plan"] == (
        "/opt/ntier/workloads/shop.jmx"
    )
    assert told["heap"] == "504m", "256 MiB, and 200 kB for each of 1,300 users"


def test_users_are_told_of_the_data_what_the_system_says(tmp_path):
    rubbos = find(HERE.parents[2], "rubbos")
    nodes = [node("db1", "db").model_copy(update={"image": "mysql-small"}), node("web1", "web")]
    assert of_system.of_data(rubbos, tmp_path, nodes) == {}, "they were not generated here"
    (tmp_path / "mysql-small").mkdir()
    made = {"reference_time_s": 1795450520, "users": 500000, "authors": 50}
    (tmp_path / "mysql-small/data.json").write_text(json.dumps(made))
    assert of_system.of_data(rubbos, tmp_path, nodes) == {
        "ntier.database_users": "500000", "ntier.database_authors": "50", "ntier.today": "2026-11-23",
    }  # fmt: skip
    (tmp_path / "mysql-small/data.json").write_text(json.dumps({"users": 1}))
    with pytest.raises(RequestError, match=r"system.yaml: data.told: .authors. is unknown; allowed are users \("):
        of_system.of_data(rubbos, tmp_path, nodes)
