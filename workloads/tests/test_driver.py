"""JMeter as a driver: by the contract's own checker, with a plan of the plug-in's users and with a stranger's plan."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from driver_runs import WORKLOADS, start_driver, told, wait_for_end
from ledger import rows
from ntier_harness.drivers import check

pytestmark = pytest.mark.whole

PLANS = Path(__file__).parent / "plans"
OWN = {
    "visitors": "{workers}",
    "server": "{address}",
    "port": "{port}",
    "seconds": "{total_s}",
    "think_ms": "{think_time_ms}",
}


@pytest.fixture
def environment(java, jmeter_home, monkeypatch):
    monkeypatch.setenv("JAVA", java)
    monkeypatch.setenv("JMETER_HOME", str(jmeter_home))


def dictionary(folder: Path) -> Path:
    (folder / "dictionary.txt").write_text("word\n")
    return folder / "dictionary.txt"


def settings(kind: str, folder: Path) -> dict[str, object]:
    if kind == "own":
        return {"plan": str(PLANS / "own.jmx"), "own_thread_group": True, "heap": "256m", "properties": OWN}
    properties = {
        "ntier.dictionary": str(dictionary(folder)),
        "ntier.mix": str(WORKLOADS / "mixes/browse_only.csv"),
    }
    return {"plan": str(WORKLOADS / "rubbos.jmx"), "heap": "256m", "properties": properties}


@pytest.mark.parametrize("kind", [pytest.param("plug-in", marks=pytest.mark.long), "own"])
def test_jmeter_keeps_the_contract(environment, measured, tmp_path, kind):
    command, more = [str(WORKLOADS / "bin/run-jmeter")], {"jmeter": settings(kind, tmp_path)}

    def examine() -> list[check.Finding]:
        return check.check(command, more, "closed", WORKLOADS / "bin/run-driver", lambda _: None)

    def broken(findings: list[check.Finding]) -> list[str]:
        return [finding.rule for finding in findings if finding.kept is False]

    cannot = ["the seed counts"] if kind == "own" else []  # it draws nothing, so that another seed changes nothing
    findings = measured(examine, lambda findings: broken(findings) == cannot and len(findings) == 13)
    assert broken(findings) == cannot, findings
    assert len(findings) == 13
    left = next(f.said for f in findings if f.rule == "lets users leave, or refuses")
    assert ("4 of 10 users left in time" if kind == "plug-in" else "own thread groups cannot leave") in left


def test_a_plan_of_its_own_thread_group_starts_and_ends_when_it_is_told(java, jmeter_home, board, tmp_path):
    plans, out = tmp_path / "plans", tmp_path / "trial"
    shutil.copytree(PLANS, plans)
    before = {file.name: file.read_bytes() for file in plans.iterdir()}
    out.mkdir()
    settings = told(out, {"plan": plans / "own.jmx"})
    settings |= {"workers": 5, "think_time_s": 0.3, "phases": {"ramp_up_s": 1, "run_s": 4, "ramp_down_s": 1}}
    settings["entry"] = {"addresses": ["127.0.0.1"], "port": board(), "path": ""}
    settings["jmeter"] |= {"own_thread_group": True, "properties": OWN | {"seconds": "600"}}
    (out / "driver.json").write_text(json.dumps(settings))
    start_driver(out, java, jmeter_home)
    start_s = int((out / "start").read_text()) / 1000
    wait_for_end(out)
    assert (out / "driver.rc").read_text().strip() == "0"
    assert 5 < time.time() - start_s < 60, "its own group would have gone on for ten minutes"
    records = rows(out / "interactions.jtl.csv")
    assert {r["label"] for r in records} == {"Home", "Product"}
    assert {r["URL"].rsplit("/", 1)[1] for r in records if r["label"] == "Product"} == {"chair", "table", "lamp"}
    assert {r["threadName"].rsplit("-", 1)[1] for r in records} == set("12345")
    assert min(int(r["timeStamp"]) for r in records) / 1000 >= start_s
    beats = rows(out / "progress.csv")
    assert max(int(b["users"]) for b in beats) == 5
    assert int(beats[-1]["completed"]) == len(records) > 20
    assert {b["started"] for b in beats} == {""}, "JMeter does not tell when a sample begins"
    assert {file.name: file.read_bytes() for file in plans.iterdir()} == before


LOGO_BYTES = 9724


def test_a_plan_of_its_own_thread_group_loads_what_it_loads_elsewhere(java, jmeter_home, board, tmp_path):
    """Style sheets too, if it asks for what a page embeds; a picture that is in the page itself is no request."""
    plan = (PLANS / "own.jmx").read_text().replace(">/product/${product}<", ">/rubbos/browse.html<")
    plan = plan.replace(">/<", ">/rubbos/browse.html<")
    asks = '<boolProp name="HTTPSampler.image_parser">true</boolProp>'
    plan = plan.replace("</HTTPSamplerProxy>", f"{asks}</HTTPSamplerProxy>")
    (tmp_path / "products.csv").write_text("one\n")
    (tmp_path / "own.jmx").write_text(plan)
    out = tmp_path / "trial"
    out.mkdir()
    settings = told(out, {"plan": tmp_path / "own.jmx"})
    settings |= {"workers": 1, "think_time_s": 0.2, "phases": {"ramp_up_s": 0, "run_s": 3, "ramp_down_s": 0}}
    sheet, inside = "/rubbos/style/RUBBoS_logo.jpg", "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    page = f'<link rel="stylesheet" type="text/css" href="{sheet}"><img src="{inside}">'
    settings["entry"] = {"addresses": ["127.0.0.1"], "port": board(f"insert={page}"), "path": ""}
    settings["jmeter"] |= {"own_thread_group": True, "properties": OWN}
    (out / "driver.json").write_text(json.dumps(settings))
    start_driver(out, java, jmeter_home)
    wait_for_end(out)
    records = rows(out / "interactions.jtl.csv")
    assert records
    assert all(int(r["bytes"]) > 2 * LOGO_BYTES for r in records), "the logo and the style sheet"
    assert all(r["success"] == "true" for r in records), records[0]


def test_a_name_that_cannot_be_filled_in_is_refused_with_those_that_can(java, jmeter_home, tmp_path):
    out = tmp_path / "trial"
    out.mkdir()
    (out / "driver.json").write_text(json.dumps(told(out, {"visitors": "{users}"})))
    start_driver(out, java, jmeter_home)
    assert (out / "driver.rc").read_text().strip() == "2"
    said = (out / "driver.out").read_text()
    assert said.startswith(
        "run-jmeter: properties: 'users' cannot be filled in; in braces are allowed address, addresses,"
    )


def test_the_archive_of_classes_is_made_when_told_to_and_only_read_by_runs(java_25, jmeter_home, tmp_path, monkeypatch):
    if java_25 is None:
        pytest.skip("only the JVM of the client node, Java 25, keeps an archive")
    home = tmp_path / "jmeter"
    home.symlink_to(jmeter_home)
    started, java = tmp_path / "started.txt", tmp_path / "java"
    java.write_text(f'#!/bin/sh\necho "$@" >>{started}\nexec {java_25} "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA", str(java))
    monkeypatch.setenv("JMETER_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    keep = [WORKLOADS / "bin/run-jmeter", "--keep-classes", WORKLOADS / "rubbos.jmx"]
    done = subprocess.run(keep, capture_output=True, text=True, timeout=120, check=False)
    archive = tmp_path / "jmeter.jsa"
    assert done.returncode == 0, done.stdout + done.stderr
    made = archive.stat()
    out, loaded = tmp_path / "trial", tmp_path / "loaded.txt"
    out.mkdir()
    settings = told(out, {"dictionary": dictionary(tmp_path)})
    settings |= {"phases": {"ramp_up_s": 0, "run_s": 2, "ramp_down_s": 0}}
    settings["jmeter"]["jvm_options"] = f"-Xlog:class+load:file={loaded}"
    (out / "driver.json").write_text(json.dumps(settings))
    started.unlink()
    start_driver(out, str(java), home)
    wait_for_end(out)
    assert len(started.read_text().splitlines()) == 1, "a JVM that made the archive is not asked what it can"
    assert not (tmp_path / "home").exists(), "nothing of JMeter's window is kept"
    classes = [line for line in loaded.read_text().splitlines() if "org.apache.jmeter" in line or "io.ntier" in line]
    kept = [line for line in classes if "shared objects file (top)" in line]
    assert len(kept) > 0.9 * len(classes) > 100
    assert (archive.stat().st_mtime_ns, archive.stat().st_size) == (made.st_mtime_ns, made.st_size)
    (tmp_path / "jmeter.jsa.java").write_text("/another/java")
    java.write_text(f'#!/bin/sh\necho "$@" >>{started}\n')  # what it is asked is enough
    shutil.rmtree(out)
    out.mkdir()
    (out / "driver.json").write_text(json.dumps(settings))
    start_driver(out, str(java), home)
    wait_for_end(out)
    asked, run = started.read_text().splitlines()[1:]
    assert asked.endswith("-version"), "another JVM is asked first what it can"
    assert f"-XX:SharedArchiveFile={archive}" in run or f"-XX:SharedArchiveFile={home}.jsa" in run
