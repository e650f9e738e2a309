"""The plug-in as others would install it: its jar, its descriptor, its example plan."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from ledger import rows

pytestmark = pytest.mark.whole

PLUGIN = Path(__file__).parents[1] / "jmeter-plugin"
VERSION = ET.parse(PLUGIN / "pom.xml").find("{*}version").text
JAR = PLUGIN / "target" / f"ntier-jmeter-sessions-{VERSION}.jar"


def test_the_jar_holds_our_classes_alone():
    names = [n for n in zipfile.ZipFile(JAR).namelist() if n.endswith(".class")]
    assert names
    assert all(n.startswith("io/ntier/jmeter/") for n in names)


def test_the_descriptor_has_the_form_of_jmeters_plugin_repositories():
    """Fields as the plug-ins manager's documentation lists them; it finds installed plug-ins by their marker class."""
    (plugin,) = json.loads((PLUGIN / "plugin-repo.json").read_text())
    texts = ("id", "name", "description", "screenshotUrl", "helpUrl", "vendor", "markerClass")
    assert all(isinstance(plugin[field], str) for field in texts)
    classes = {n.removesuffix(".class").replace("/", ".") for n in zipfile.ZipFile(JAR).namelist()}
    assert {plugin["markerClass"], *plugin["componentClasses"]} <= classes
    version = plugin["versions"][VERSION]
    assert version["downloadUrl"].endswith(f"/{JAR.name}")
    assert set(version) >= {"changes", "libs", "depends"}


def test_the_example_plan_needs_no_server(run_jmeter, bare_jmeter_home):
    """Nor the archive of classes that a client node has."""
    trial = run_jmeter(home=bare_jmeter_home, plan=PLUGIN / "examples/shop.jmx", users=60, run_s=6)
    assert (trial / "driver.rc").read_text().strip() == "0"
    records = rows(trial / "interactions.jtl.csv")
    assert {"Home", "List", "Item"} <= {r["label"] for r in records} <= {"Home", "List", "Item", "Order"}
    assert all(r["success"] == "true" for r in records), "requests that the end aborted belong to users.csv"
    thinks = rows(trial / "thinks.csv")
    assert {"Back", "EndOfSession"} & {r["state"] for r in thinks}
    assert sum(int(r["interactions"]) for r in rows(trial / "users.csv")) == len(records)
