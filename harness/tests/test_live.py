"""The metrics of a sweep that runs: a real server, asked while the dry twin runs. Prometheus' own parser reads them."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import Phase
from ntier_harness import live, plan, sweep
from ntier_harness.drivers.heartbeat import Beat
from ntier_harness.errors import RequestError
from ntier_harness.live import Live, parse, served
from ntier_harness.load import merged
from ntier_harness.targets import Reading
from prometheus_client.openmetrics.parser import text_string_to_metric_families

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana" / "ntier-sweep.json"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def free_port():
    with socket.socket() as probe:
        probe.bind((live.LOOPBACK, 0))
        return probe.getsockname()[1]


def scrape(port):
    """Families by name, and samples as {(name, label value, ...): value}."""
    request = urllib.request.Request(f"http://{live.LOOPBACK}:{port}/metrics", headers={"Accept": OPENMETRICS})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        families = {f.name: f for f in text_string_to_metric_families(answer.read().decode())}
    return families, {
        (s.name, *(v for _, v in sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples
    }


@pytest.fixture
def watched(lab, spec):
    """Runs a sweep; returns what a scrape at each look at a trial gave: [(phase, families, samples)], and the last."""

    def run(**options):
        machine, port, scrapes = lab(), free_port(), []
        tick = machine.screen.tick

        def scrape_too(phase, *rest):
            scrapes.append((phase.name, *scrape(port)))
            tick(phase, *rest)

        machine.screen.tick = scrape_too
        with served(machine.live, (live.LOOPBACK, port)):
            assert sweep.run(machine, spec(**options)) == 0
            return scrapes, scrape(port)

    return run


def test_each_scrape_tells_what_the_sweep_does(watched, spec):
    scrapes, _ = watched(users="100,3000")
    phases = {name: samples for name, _, samples in scrapes}  # the last scrape of each phase, of the second trial
    assert set(phases) == set(live.PHASES)
    last = phases["run"]
    assert {name: last["ntier_phase", name] for name in live.PHASES} == {"ramp_up": 0, "run": 1, "ramp_down": 0}
    assert last["ntier_sweep_info", "browse_only", spec(users="100,3000").sweep, "1/1/1/1M"] == 1
    assert last["ntier_trial_info", "u03000.r01"] == 1
    assert [last[f"ntier_{n}",] for n in ("trial_number", "trials", "attempt")] == [2, 2, 1]
    assert [last[f"ntier_users_{n}",] for n in ("nominal", "real", "running")] == [3000, 600, 600]
    assert last["ntier_throughput_per_second",] == pytest.approx(20, rel=0.1)
    assert last["ntier_response_time_mean_seconds",] == pytest.approx(0.1)
    assert last["ntier_interactions_in_flight",] == 0
    assert 0 <= last["ntier_phase_left_seconds",] <= 2


def test_saturation_is_the_share_of_the_run_phase_so_far(watched):
    scrapes, _ = watched(users="100,3000")
    by_trial = {}
    for phase, _, samples in scrapes:
        trial = next(key[1] for key in samples if key[0] == "ntier_trial_info")
        by_trial.setdefault((trial, phase), []).append(samples)
    assert not any(("ntier_node_cpu_saturation_ratio", "db1") in s for s in by_trial["u03000.r01", "ramp_up"])
    for users, full in ((100, 0), (3000, 1)):
        run = by_trial[f"u{users:05d}.r01", "run"]
        assert run[-1]["ntier_node_cpu_saturation_ratio", "db1"] == full
        assert run[-1]["ntier_node_cpu_saturation_ratio", "web1"] == 0
        counts = [s["ntier_node_cpu_samples", "db1"] for s in run]
        assert counts == sorted(counts)
        assert 17 <= counts[-1] <= 20, "one a second"
    assert run[-1]["ntier_node_cpu_utilization_ratio", "db1"] == 1
    assert run[-1]["ntier_node_cpu_utilization_ratio", "web1"] == 0.5


def test_counters_never_fall_and_nothing_is_said_of_a_trial_that_ended(watched):
    scrapes, (families, after) = watched(users="100,3000")
    done = [samples["ntier_interactions_completed_total",] for _, _, samples in scrapes]
    assert done == sorted(done)
    assert after["ntier_interactions_completed_total",] >= done[-1] > 600
    assert after["ntier_attempts_total", "valid"] == 2
    assert not any(after["ntier_phase", name] for name in live.PHASES)
    quiet = {"ntier_trial", "ntier_users_running", "ntier_node_cpu_utilization_ratio", "ntier_throughput_per_second"}
    assert quiet <= set(families)
    assert not any(families[name].samples for name in quiet)


def test_a_reading_counts_once_and_only_if_it_began_in_the_run_phase():
    nodes, run = {}, Phase(name="run", planned_s=10, start_s=100, end_s=110)
    ramp = Phase(name="ramp_up", planned_s=10, start_s=90, end_s=100)
    for phase, t_s, share in ((ramp, 99.5, 1), (run, 99.5, 1), (run, 100.5, 1), (run, 101.5, 0.94), (run, 101.5, 0.94),
                              (run, 102.5, 0.95)):  # fmt: skip
        live.add(nodes, "db1", Reading(t_s, share), phase)
    assert (nodes["db1"].samples, nodes["db1"].full, nodes["db1"].share) == (2, 1, 0.95)


def test_what_a_driver_does_not_know_has_no_sample(spec):
    beats = [Beat(5, 3, 7, 0, math.nan, in_flight=2), Beat(5, 3, 7, 0, math.nan, in_flight=None)]
    assert merged([(beats[0], None), (beats[0], None)]).in_flight == 4
    progress = merged([(beat, None) for beat in beats])
    told, s = Live(), spec(users="1000")
    told.trial(plan.order(s)[0], 1, 1, 1, 200)
    told.tick(Phase(name="run", planned_s=10, start_s=0, end_s=10), progress, {}, 5)
    port = free_port()
    with served(told, (live.LOOPBACK, port)):
        families, samples = scrape(port)
    assert not families["ntier_interactions_in_flight"].samples
    assert not families["ntier_response_time_mean_seconds"].samples
    assert samples["ntier_users_running",] == 6
    assert samples["ntier_phase_left_seconds",] == 5


def test_by_default_only_this_machine_may_ask():
    assert parse("9464") == ("127.0.0.1", 9464)
    assert parse("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert parse("[::1]:9464") == ("::1", 9464)
    assert parse(None) is None
    with served(Live(), None):
        pass


@pytest.mark.parametrize("text", ["", "http", ":9464", "localhost:", "0", "65536", "-1", "a:b", "٩"])
def test_a_place_that_is_none_is_refused(text):
    with pytest.raises(RequestError, match=r"^metrics: .*: expected a port of this machine \(94"):
        parse(text)


@pytest.mark.parametrize("command", [
    ["sweep", "--topo", "1/1/1/1M", "--users", "1000"],
    ["campaign", "--spec", "workloads/campaigns/smoke.yaml"],
], ids=lambda words: words[0])  # fmt: skip
def test_a_port_in_use_is_an_error_before_anything_is_touched(command, tmp_path):
    with socket.socket() as other:
        other.bind((live.LOOPBACK, 0))
        other.listen()
        port = other.getsockname()[1]
        ntier = str(Path(sys.executable).with_name("ntier"))
        words = [ntier, *command, "--results", str(tmp_path / "results"), "--metrics", str(port)]
        done = subprocess.run(words, cwd=DASHBOARD.parents[2], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"error: metrics: 127.0.0.1 port {port} cannot be served (Address already in use)\n"
    assert not (tmp_path / "results").exists()


def test_an_address_that_is_not_ours_is_refused():
    with (
        pytest.raises(RequestError, match=r"^metrics: 192\.0\.2\.1 port 9464 cannot be served"),
        served(Live(), ("192.0.2.1", 9464)),
    ):
        pass


# ---- the dashboard for Grafana --------------------------------------------------------------------------------------


def expressions(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_the_dashboard_shows_what_is_served_and_nothing_else(watched):
    scrapes, _ = watched(users="3000")
    _, _, samples = scrapes[-1]
    served_names = {key[0] for key in samples}
    asked = {name for e in expressions(json.loads(DASHBOARD.read_text())) for name in re.findall(r"\bntier_\w+", e)}
    assert asked == served_names


def test_panels_of_the_dashboard_do_not_cover_each_other():
    dashboard = json.loads(DASHBOARD.read_text())
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}", "no data source of somebody's Grafana"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
