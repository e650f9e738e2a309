"""Generated data: when they are made anew, and how nodes and the middleware learn that they are others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from ntier_harness import tables
from ntier_harness.deploy import of_tiers
from ntier_harness.systems import find, sources

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "ansible/roles/shardingsphere"
IMAGES = ROOT / "setup/images"
OF_DATA = [
    "rubbos-app/schema/mysql_cluster/2_indexes.sql",
    "ansible/roles/ndbsql/tasks/load.yml",
    "ansible/roles/mysql/tasks/load.yml",
    "ansible/roles/postgresql/tasks/load.yml",
    "rubbos-app/src/main/java/io/ntier/rubbos/data/Stories.java",
]


@pytest.mark.parametrize("file", OF_DATA)
def test_data_are_made_anew_and_known_as_others_when_an_upgrade_changes_them(lab, spec, monkeypatch, file):
    machine, cluster, made = lab(), spec(topo="1/1/2/2C"), []
    run = machine.runner.run
    monkeypatch.setattr(machine.runner, "run", lambda argv, **more: made.append(argv[0]) or run(argv, **more))
    source = machine.paths.root / file
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("one")
    first = tables.for_roles(machine.runner, machine.paths, cluster)
    assert tables.for_roles(machine.runner, machine.paths, cluster) == first
    assert made.count("java") == 1
    source.write_text("another")
    second = tables.for_roles(machine.runner, machine.paths, cluster)
    assert made.count("java") == 2
    assert second["ntier_data_digest"] != first["ntier_data_digest"]
    assert second["ntier_data_source"] == first["ntier_data_source"]
    (Path(second["ntier_data_source"]) / tables.MADE_FROM).unlink()  # a version that did not note it
    assert tables.for_roles(machine.runner, machine.paths, cluster) == second
    assert made.count("java") == 3


def test_what_data_are_made_from_is_in_the_checkout():
    paths = sources(ROOT, find(ROOT, "rubbos").definition.data.generate)
    assert ROOT / "rubbos-app/src/main/java/io/ntier/rubbos/data" in paths
    assert {path for path in (ROOT / "rubbos-app/schema").iterdir() if path.is_dir()} <= set(paths)
    assert all(path.exists() for path in paths)
    assert sources(ROOT, ["python3", "systems/mediawiki/data/generate.py", "{profile}"]) == [
        ROOT / "systems/mediawiki/data/generate.py"
    ]


def test_images_do_not_depend_on_what_only_a_cluster_loads():
    """They would be made anew for nothing."""
    known = yaml.safe_load((IMAGES / "images.yml").read_text())
    of_images = {path for data in known["data"].values() for path in data["sources"]}
    assert not of_images & {path for role in known["loaded_by"].values() for path in role["sources"]}


def images_of_set_up() -> set[str]:
    """Names that set-up makes images under, as it lists them for a name that it does not know."""
    done = subprocess.run([sys.executable, str(IMAGES), "--images", "?"], capture_output=True, text=True, check=False)
    return set(done.stderr.rpartition("allowed: ")[2].strip().split(", "))


def test_roles_are_told_which_image_holds_the_data(lab, spec):
    machine, small = lab(), spec(topo="1/1/1/2M")
    assert {spec(topo=f"1/1/1/2{dbms}").image("db") for dbms in "MP"} <= images_of_set_up()
    file = machine.paths.state / "images.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    told = set()
    for fingerprint in ("aa", "bb"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known | {small.image("db"): fingerprint}))
        told.add(of_tiers(machine, small)["ntier_data_image"])
    assert told == {"aa", "bb"}
    assert "ntier_data_image" not in of_tiers(machine, spec(topo="1/1/2/2C"))


@pytest.mark.parametrize("name", ["ntier_data_profile", "ntier_data_image", "machine_data_digest"])
def test_a_proxy_that_counts_ids_is_started_anew_for_other_data(name):
    """Its configuration changes, and only then: ids of rows begin after those that the proxy saw when it began."""
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    known = {key: value for key, value in defaults.items() if "{{" not in str(value)} | {
        "ansible_managed": "", "index": 1, "groups": {"middleware": ["middleware1"]}, "middleware_db_password": "p",
        "shardingsphere_dbms": "mysql", "shardingsphere_databases": ["198.18.4.1"],
        "shardingsphere_database_port": 3306, "shardingsphere_pool_max": 90, "shardingsphere_pool_min": 25,
        "shardingsphere_writes": "all", "shardingsphere_policy": "least_pending", "shardingsphere_tie": "first",
    }  # fmt: skip
    environment.filters["to_json"] = json.dumps

    def configuration(**data: str) -> str:
        text = environment.from_string(defaults["shardingsphere_data"]).render(data)
        template = environment.from_string((ROLE / "templates/config-rw.yaml.j2").read_text())
        return template.render(known, shardingsphere_data=text)

    assert configuration(**{name: "one"}) == configuration(**{name: "one"}) != configuration(**{name: "another"})
