# ruff: noqa: E501 (tables: a line per case)
"""`import --prometheus`: what a Prometheus stored, from a known truth, asked over HTTP, and as it came out."""

from pathlib import Path

import numpy as np
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import DEFAULT, read_mapping
from ntier_analysis.importing.prometheus import scraped
from prometheus_files import CPU, SECONDS, T0, cpu, dump, read, utilization

DATA = Path(__file__).parent / "data" / "loadtests"


def test_rates_are_those_of_the_counters(tmp_path):
    metrics = read(dump(tmp_path / "d", cpu("db1:9100", SECONDS) | cpu("web1:9100", SECONDS, 0.5)))
    assert utilization(metrics).tolist() == pytest.approx([25.0] * 60)
    assert utilization(metrics, "web1").tolist() == pytest.approx([50.0] * 60)
    assert metrics.tiers == {"db1": "db", "web1": "web"}
    assert metrics.cores == {"db1": 1.0, "web1": 1.0}
    assert metrics.notices == []
    assert any("shorter than the scrape interval of 1 s" in text for text in metrics.unknown)


def test_a_counter_that_begins_anew_has_no_value_there(tmp_path):
    series = cpu("db1:9100", SECONDS)
    for points in series.values():
        points[30:] = [(t, v - points[30][1]) for t, v in points[30:]]
    metrics = read(dump(tmp_path / "d", series))
    values = utilization(metrics)
    assert values.isna().sum() == 1
    assert np.isnan(values[T0 + 30])
    assert values.dropna().tolist() == pytest.approx([25.0] * 59)
    assert any(f"db1: counter {CPU} began anew or ran backwards at 14:13:50" in text for text in metrics.notices)


def test_a_restart_is_seen_where_the_counter_is_beyond_its_old_value(tmp_path):
    """The machine booted between two scrapes, and its counters are already larger than before."""
    series = cpu("db1:9100", SECONDS)
    for points in series.values():
        points[30:] = [(t, v + 5000) for t, v in points[30:]]
    series['node_boot_time_seconds{instance="db1:9100"}'] = [
        (t, T0 - 5e5 if t < T0 + 30 else T0 - 3e5) for t in SECONDS
    ]
    metrics = read(dump(tmp_path / "d", series))
    assert np.isnan(utilization(metrics)[T0 + 30])
    assert any("db1 (node_exporter) was restarted, seen at 14:13:50" in text for text in metrics.notices)


def test_missing_scrapes_are_said_and_have_no_value(tmp_path):
    times = np.delete(SECONDS, slice(20, 25))
    metrics = read(dump(tmp_path / "d", cpu("db1:9100", times)))
    values = utilization(metrics)
    assert np.isnan(values[T0 + 25])
    assert values.dropna().tolist() == pytest.approx([25.0] * 54)
    assert any("db1: 5 scrapes of node_exporter missing (14:13:39 to 14:13:45; every 1 s" in t for t in metrics.notices)


def test_a_single_missing_scrape_is_no_long_interval(tmp_path):
    metrics = read(dump(tmp_path / "d", cpu("db1:9100", np.delete(SECONDS, 20))))
    assert np.isnan(utilization(metrics)[T0 + 21])
    assert any("1 scrape of node_exporter missing" in text for text in metrics.notices)


def test_a_renamed_instance_is_said_and_can_be_joined(tmp_path):
    series = cpu("db1:9100", SECONDS[:30]) | cpu("10.0.0.7:9100", SECONDS[30:])
    path = dump(tmp_path / "d", series)
    alone = read(path)
    assert any("left out, since no node is named for them: 10.0.0.7:9100" in text for text in alone.notices)
    assert any("samples only from 14:13:20 to 14:13:49; was its instance renamed?" in text for text in alone.notices)
    both = read(path, "db1=db1", "db1=10.0.0.7")
    assert utilization(both).tolist() == pytest.approx([25.0] * 60)
    assert any("db1: instance=db1:9100 became instance=10.0.0.7:9100 at 14:13:50" in text for text in both.notices)


def test_two_instances_of_one_node_at_the_same_time_are_refused(tmp_path):
    path = dump(tmp_path / "d", cpu("db1:9100", SECONDS) | cpu("10.0.0.7:9100", SECONDS))
    with pytest.raises(DataError, match=r"node db1: node_cpu_seconds_total of .*are of the same time"):
        read(path, "db1=db1", "db1=10.0.0.7")


def test_instances_without_a_tier_must_be_named(tmp_path):
    path = dump(tmp_path / "d", cpu("10.0.0.7:9100", SECONDS))
    with pytest.raises(DataError, match=r"which node of which tier is 10.0.0.7:9100\? give --node"):
        read(path)
    assert read(path, "pg=10.0.0.7:9100:postgres").tiers == {"pg": "postgres"}


def test_a_slow_scrape_interval_is_said(tmp_path):
    metrics = read(dump(tmp_path / "d", cpu("db1:9100", SECONDS[::15])))
    assert any("interval of 15 s" in text for text in metrics.unknown)
    assert utilization(metrics).tolist() == pytest.approx([25.0] * 4)


def late(path: Path, read_at: float, own: str = 'instance="db1:9100",job="n"'):
    """A CPU that is always busy; scrapes take 0.05 to 0.45 s, its counters are read at a share of that time."""
    took = np.random.default_rng(3).uniform(0.05, 0.45, len(SECONDS))
    seen = [(t, 1000 + t + read_at * d - T0) for t, d in zip(SECONDS, took, strict=True)]
    idle = [(t, 5.0) for t in SECONDS]
    labels = 'instance="db1:9100",job="n"'
    return dump(path, {
        f'{CPU}{{cpu="0",mode="user",{labels}}}': seen,
        f'{CPU}{{cpu="0",mode="idle",{labels}}}': idle,
        f"scrape_duration_seconds{{{own}}}": list(zip(SECONDS, took, strict=True)),
    })  # fmt: skip


def used(metrics) -> np.ndarray:
    return metrics.samples.query("metric == 'used_cores'")["value"].to_numpy()


def test_a_scrape_is_dated_in_its_middle(tmp_path):
    metrics = read(late(tmp_path / "d", read_at=0.5))
    assert used(metrics) == pytest.approx(np.ones(60))
    rows = metrics.samples.query("metric == 'used_cores'")
    middle = SECONDS + metrics.samples.query("metric == 'scrape_s'")["value"].to_numpy() / 2
    assert rows["t_s"].to_numpy() == pytest.approx(middle[1:])
    assert rows["interval_s"].to_numpy() == pytest.approx(np.diff(middle))
    assert "when in its scrape each counter of db1 was read (95 % of the scrapes took up to 0.5 s)" in metrics.unknown


@pytest.mark.parametrize("read_at", [0.0, 1.0])
def test_an_exporter_that_reads_at_an_end_of_its_scrape_is_wrong_by_what_is_told(tmp_path, read_at):
    metrics = read(late(tmp_path / "d", read_at))
    took = metrics.samples.query("metric == 'scrape_s'")["value"].to_numpy()
    assert np.abs(used(metrics) - 1).max() > 0.1
    busy = used(metrics) * np.diff(SECONDS + took / 2)
    assert (busy <= np.diff(SECONDS + took / 2) + (took[1:] + took[:-1]) / 2).all()


def test_without_the_duration_of_its_scrapes_dates_stay_and_that_is_said(tmp_path):
    metrics = read(late(tmp_path / "d", 0.0, own='instance="other:9100",job="n"'))
    assert used(metrics) == pytest.approx(np.ones(60))
    assert utilization(metrics).index.tolist() == SECONDS[1:].tolist()
    assert any("how long the scrapes of db1 took (scrape_duration_seconds)" in text for text in metrics.unknown)


def test_a_fast_scrape_is_not_worth_a_word(tmp_path):
    series = cpu("db1:9100", SECONDS) | {'scrape_duration_seconds{instance="db1:9100"}': [(t, 0.01) for t in SECONDS]}
    metrics = read(dump(tmp_path / "d", series))
    assert not [text for text in metrics.unknown if "in its scrape" in text or "scrapes of" in text]


def test_pools_disks_and_containers_by_the_default_mapping(tmp_path):
    def gauge(value):
        return [(t, value) for t in SECONDS]

    def counter(per_s):
        return [(t, 5 + per_s * (t - T0)) for t in SECONDS]

    disk, box = '{device="vda",instance="db1:9100"}', '{name="app1",instance="cadvisor:8080"}'
    series = {
        'mysql_global_status_threads_connected{instance="db1:9104"}': gauge(30.0),
        'mysql_global_variables_max_connections{instance="db1:9104"}': gauge(40.0),
        'mysql_global_status_uptime{instance="db1:9104"}': counter(1.0),
        "node_disk_io_time_seconds_total" + disk: counter(0.5),
        "node_disk_io_time_weighted_seconds_total" + disk: counter(2.0),
        "node_disk_reads_completed_total" + disk: counter(100.0),
        "node_disk_writes_completed_total" + disk: counter(100.0),
        "node_disk_read_time_seconds_total" + disk: counter(1.0),
        "node_disk_write_time_seconds_total" + disk: counter(1.0),
        "container_cpu_usage_seconds_total" + box: counter(1.5),
        "container_spec_cpu_quota" + box: gauge(200_000.0),
        "container_spec_cpu_period" + box: gauge(100_000.0),
        "container_cpu_cfs_throttled_periods_total" + box: counter(3.0),
        "container_cpu_cfs_periods_total" + box: counter(10.0),
        'container_cpu_usage_seconds_total{id="/",instance="cadvisor:8080"}': counter(7.0),
    }
    metrics = read(dump(tmp_path / "d", series))
    means = metrics.samples.groupby(["node", "resource", "item", "metric"])["value"].mean().round(6).to_dict()
    assert means["db1", "pool", "max_connections", "utilization_pct"] == 75
    assert means["db1", "disk", "vda", "utilization_pct"] == 50
    assert means["db1", "disk", "vda", "queue"] == 2
    assert means["db1", "disk", "vda", "wait_ms"] == 10
    assert means["app1", "cpu", "", "utilization_pct"] == 75
    assert means["app1", "cpu", "", "throttled_pct"] == 30
    assert metrics.cores == {"app1": 2.0}


BOX = '{name="app1",instance="cadvisor:8080"}'


def container(scrapes: np.ndarray, used: float = 1.5) -> dict[str, list[tuple[float, float]]]:
    """A container of 2 CPUs: cAdvisor dates its counters itself, 0.2 to 0.5 s before each scrape; what it was given, and
    when it began, have the time of the scrape."""
    own = scrapes - np.random.default_rng(5).uniform(0.2, 0.5, len(scrapes)).round(3)
    return {
        "container_cpu_usage_seconds_total" + BOX: [(t, 5 + used * (t - T0)) for t in own],
        "container_spec_cpu_quota" + BOX: [(t, 200_000.0) for t in scrapes],
        "container_spec_cpu_period" + BOX: [(t, 100_000.0) for t in scrapes],
        "container_start_time_seconds" + BOX: [(t, T0 - 900) for t in scrapes],
        f'scrape_duration_seconds{BOX}': [(t, 0.02) for t in scrapes],
    }  # fmt: skip


def test_counters_that_have_a_clock_of_their_own_have_rates(tmp_path):
    metrics = read(dump(tmp_path / "d", container(SECONDS)))
    assert utilization(metrics, "app1").tolist() == pytest.approx([75.0] * 60)
    assert used(metrics) == pytest.approx(np.full(60, 1.5))
    assert metrics.cores == {"app1": 2.0}
    assert metrics.notices == []
    assert "peaks shorter than the scrape interval of 1 s, which are averaged away" in metrics.unknown


def test_containers_of_a_pod_that_have_a_clock_each_are_added_up(tmp_path):
    """Each was read at another moment of the same scrape; the second one began later."""
    mapping = tmp_path / "m.yaml"
    mapping.write_text(DEFAULT.read_text().replace("node: name # of", "node: pod # of"))
    series: dict[str, list[tuple[float, float]]] = {}
    for number, (name, used_cores, from_) in enumerate((("web", 1.5, 0), ("log", 0.25, 30))):
        labels = BOX.replace('name="app1"', f'name="{name}",pod="app1"')
        own = SECONDS - np.random.default_rng(number).uniform(0.05, 0.35, len(SECONDS)).round(3)
        series["container_cpu_usage_seconds_total" + labels] = [(t, used_cores * (t - T0)) for t in own[from_:]]
    metrics = read(dump(tmp_path / "d", series), mapping=mapping)
    assert used(metrics)[:29] == pytest.approx(np.full(29, 1.5))
    assert np.isnan(used(metrics)[29])
    assert used(metrics)[30:] == pytest.approx(np.full(30, 1.75))
    assert metrics.notices == []


NONE = -1.0


def pod(containers: dict[str, tuple[float, float, float]]) -> dict[str, list[tuple[float, float]]]:
    """Pod app1 as the kubelet's cAdvisor shows it: container -> cores used, its quota in cores (0: none, NONE:
    told as -1), throttled periods per second."""
    series: dict[str, list[tuple[float, float]]] = {}
    for name, (cores, quota, throttled) in containers.items():
        labels = f'{{container="{name}",instance="kubelet:10250",name="k8s_{name}",pod="app1"}}'
        series["container_cpu_usage_seconds_total" + labels] = [(t, 5 + cores * (t - T0)) for t in SECONDS]
        series["container_spec_cpu_period" + labels] = [(t, 100_000.0) for t in SECONDS]
        if quota:
            counter = "container_cpu_cfs_throttled_periods_total"
            series["container_spec_cpu_quota" + labels] = [(t, 100_000 * quota if quota > 0 else -1.0) for t in SECONDS]
            series[counter + labels] = [(t, throttled * (t - T0)) for t in SECONDS]
    return series


@pytest.mark.parametrize(
    ("containers", "utilization_pct", "cores", "throttled_pct"),
    [
        ({"web": (0.5, 1.0, 3.0), "POD": (0.0, 0.0, 0.0)}, 50, 1, 30),  # the pause container of each pod has no quota
        ({"web": (0.5, 1.0, 3.0), "log": (0.25, 1.0, 0.0)}, 50, 2, 30),
        ({"web": (1.0, 1.0, 9.0), "proxy": (0.1, 2.0, 0.0)}, 100, 3, 90),  # full, though the pod has room
        ({"web": (0.5, 1.0, 3.0), "log": (0.9, 0.0, 0.0)}, 50, 1, 30),
        ({"web": (0.5, 1.0, 3.0), "log": (0.9, NONE, 0.0)}, 50, 1, 30),
    ],
)
def test_each_container_of_a_pod_has_its_own_quota(tmp_path, containers, utilization_pct, cores, throttled_pct):
    mapping = tmp_path / "m.yaml"
    mapping.write_text(DEFAULT.read_text().replace("node: name # of", "node: pod # of"))
    metrics = read(dump(tmp_path / "d", pod(containers)), mapping=mapping)
    assert utilization(metrics, "app1").tolist() == pytest.approx([utilization_pct] * 60)
    assert used(metrics) == pytest.approx(np.full(60, sum(c for c, *_ in containers.values())))
    assert metrics.cores == {"app1": cores}
    throttled = metrics.samples.query("metric == 'throttled_pct'")["value"]
    assert throttled.tolist() == pytest.approx([throttled_pct] * 60)


def test_a_pod_without_any_quota_has_no_cores_and_no_utilization_of_its_own(tmp_path):
    """A quota of -1 is none: no cores below 0, and what it used is known."""
    mapping = tmp_path / "m.yaml"
    mapping.write_text(DEFAULT.read_text().replace("node: name # of", "node: pod # of"))
    for quota in (0.0, NONE):
        metrics = read(dump(tmp_path / f"d{quota:g}", pod({"web": (0.5, quota, 0.0)})), mapping=mapping)
        assert metrics.cores == {}
        assert utilization(metrics, "app1").empty
        assert used(metrics) == pytest.approx(np.full(60, 0.5))


def test_a_quota_is_that_of_its_container_also_on_a_clock_of_its_own(tmp_path):
    """The second one began later, and each was read at another moment of the same scrape."""
    mapping = tmp_path / "m.yaml"
    mapping.write_text(DEFAULT.read_text().replace("node: name # of", "node: pod # of"))
    series = pod({"web": (0.5, 1.0, 0.0), "log": (0.9, 1.0, 0.0)})
    for number, (name, from_) in enumerate((("web", 0), ("log", 30))):
        key = next(k for k in series if k.startswith("container_cpu_usage") and f'"{name}"' in k)
        shift = np.random.default_rng(number).uniform(0.05, 0.35, len(SECONDS)).round(3)
        cores = {"web": 0.5, "log": 0.9}[name]
        series[key] = [(t, cores * (t - T0)) for t in (SECONDS - shift)[from_:]]
    values = utilization(read(dump(tmp_path / "d", series), mapping=mapping), "app1").to_numpy()
    assert len(values) == 60
    assert values[:29] == pytest.approx(np.full(29, 50.0))
    assert values[30:] == pytest.approx(np.full(30, 90.0))


def test_a_missing_scrape_is_none_also_beside_another_clock(tmp_path):
    metrics = read(dump(tmp_path / "d", container(np.delete(SECONDS, slice(20, 25)))))
    assert utilization(metrics, "app1").isna().sum() == 1
    assert utilization(metrics, "app1").dropna().tolist() == pytest.approx([75.0] * 54)
    assert any("app1: 5 scrapes of cadvisor missing (14:13:3" in text for text in metrics.notices)


def test_a_restart_beside_another_clock_is_within_two_intervals(tmp_path):
    """The counter is already larger than before."""
    series = container(SECONDS)
    used_s, begun = (f"container_{name}{BOX}" for name in ("cpu_usage_seconds_total", "start_time_seconds"))
    series[used_s][30:] = [(t, v + 5000) for t, v in series[used_s][30:]]
    series[begun][30:] = [(t, T0 + 29.3) for t, _ in series[begun][30:]]
    values = utilization(read(dump(tmp_path / "d", series)), "app1")
    assert values.isna().sum() == 2
    assert values.dropna().tolist() == pytest.approx([75.0] * 58)


def test_a_gauge_that_is_gone_holds_no_longer_than_a_scrape(tmp_path):
    series = container(SECONDS)
    for name in ("quota", "period"):
        del series[f"container_spec_cpu_{name}{BOX}"][30:]
    values = utilization(read(dump(tmp_path / "d", series)), "app1")
    assert values.notna().sum() == 30
    assert used(read(dump(tmp_path / "e", series))) == pytest.approx(np.full(60, 1.5))


def test_a_burst_is_not_throttled_all_the_time(tmp_path):
    """Two periods in ten of 100 ms had work, both more than the quota."""
    box = '{name="app1",instance="cadvisor:8080"}'
    busy = [(t, 5 + 2.0 * (t - T0)) for t in SECONDS]
    series = {
        "container_spec_cpu_period" + box: [(t, 100_000.0) for t in SECONDS],
        "container_cpu_cfs_throttled_periods_total" + box: busy,
        "container_cpu_cfs_periods_total" + box: busy,
    }
    rows = read(dump(tmp_path / "d", series)).samples.query("metric == 'throttled_pct'")
    assert rows["value"].to_numpy() == pytest.approx(np.full(60, 20.0))


def test_a_container_does_not_have_the_cores_of_its_host(tmp_path):
    known = read_mapping(None)
    path = dump(tmp_path / "d", cpu("db1:9100", SECONDS))
    with_, without = (scraped(str(path), known, T0, T0 + 60, containers=c, offset_s=0.0) for c in (True, False))
    assert without.cores == {"db1": 1.0}
    assert set(without.samples["metric"]) >= {"used_cores", "utilization_pct"}
    assert with_.cores == {}
    assert not {"used_cores", "utilization_pct"} & set(with_.samples["metric"])


def test_databases_and_jvms_by_the_default_mapping(tmp_path):
    """By the names that the exporters' users and examples have; made-up values."""

    def gauge(value):
        return [(t, value) for t in SECONDS]

    def counter(per_s):
        return [(t, 5 + per_s * (t - T0)) for t in SECONDS]

    def activity(state):
        return f'pg_stat_activity_count{{datname="rubbos",instance="db2:9187",state="{state}"}}'

    pg, my, jvm, spring = (f'instance="{i}"' for i in ("db2:9187", "db1:9104", "app1:9404", "app2:8080"))
    series = {
        activity("active"): gauge(30.0),
        activity("idle"): gauge(15.0),
        activity("idle in transaction"): gauge(5.0),
        f'pg_settings_max_connections{{{pg},server="db2:5432"}}': gauge(100.0),
        f'pg_postmaster_start_time_seconds{{{pg},server="db2:5432"}}': gauge(T0 - 900),
        f'pg_stat_database_xact_commit{{datid="5",datname="rubbos",{pg}}}': counter(40.0),
        f'pg_stat_database_blks_read{{datid="5",datname="rubbos",{pg}}}': counter(7.0),
        f'pg_stat_database_deadlocks{{datid="5",datname="rubbos",{pg}}}': counter(0.5),
        f"mysql_global_status_uptime{{{my}}}": counter(1.0),
        f"mysql_global_status_threads_running{{{my}}}": gauge(12.0),
        f"mysql_global_status_questions{{{my}}}": counter(500.0),
        f"mysql_global_status_innodb_row_lock_current_waits{{{my}}}": gauge(3.0),
        f"process_start_time_seconds{{{jvm}}}": gauge(T0 - 900),
        f'jvm_gc_collection_seconds_sum{{gc="G1 Young Generation",{jvm}}}': counter(0.02),
        f'jvm_memory_used_bytes{{area="heap",{jvm}}}': gauge(3e8),
        f'jvm_memory_max_bytes{{area="heap",{jvm}}}': gauge(4e8),
        f'jvm_memory_used_bytes{{area="nonheap",{jvm}}}': gauge(9e8),
        f'tomcat_threadpool_currentThreadsBusy{{port="8080",protocol="http-nio",{jvm}}}': gauge(45.0),
        f'tomcat_threadpool_maxThreads{{port="8080",protocol="http-nio",{jvm}}}': gauge(50.0),
        f'tomcat_threads_busy_threads{{name="http-nio-8080",{spring}}}': gauge(20.0),
        f'tomcat_threads_config_max_threads{{name="http-nio-8080",{spring}}}': gauge(200.0),
        f'hikaricp_connections_active{{pool="main",{spring}}}': gauge(9.0),
        f'hikaricp_connections_max{{pool="main",{spring}}}': gauge(10.0),
        f'hikaricp_connections_pending{{pool="main",{spring}}}': gauge(4.0),
    }
    metrics = read(dump(tmp_path / "d", series))
    means = metrics.samples.groupby(["node", "resource", "item", "metric"])["value"].mean().round(6).to_dict()
    assert means == {
        ("db2", "pool", "max_connections", "utilization_pct"): 50,
        ("db2", "pool", "", "connections"): 50,
        ("db2", "pool", "", "idle_in_transaction"): 5,
        ("db2", "queue", "", "threads_running"): 30,
        ("db2", "query", "", "xact_commit_per_s"): 40,
        ("db2", "memory", "", "blks_read_per_s"): 7,
        ("db2", "lock", "", "deadlocks_per_s"): 0.5,
        ("db1", "queue", "", "threads_running"): 12,
        ("db1", "query", "", "questions_per_s"): 500,
        ("db1", "lock", "", "row_lock_waiting"): 3,
        ("app1", "jvm", "", "gc_pct"): 2,
        ("app1", "memory", "", "heap_used_pct"): 75,
        ("app1", "pool", "8080", "utilization_pct"): 90,
        ("app1", "pool", "threads", "active"): 45,
        ("app2", "pool", "http-nio-8080", "utilization_pct"): 10,
        ("app2", "pool", "threads", "active"): 20,
        ("app2", "pool", "main", "utilization_pct"): 90,
        ("app2", "pool", "main", "waiting"): 4,
    }


@pytest.mark.parametrize(
    ("busy", "most", "labels", "items"),
    [
        ("threads_busy_threads", "threads_config_max_threads", 'name="{}"', ["http-nio-8080", "https-jsse-nio-8443"]),
        ("threadpool_currentthreadsbusy", "threadpool_maxthreads", 'name="{}"', ["http-nio-8080", "ajp-nio-8009"]),
        ("threadpool_currentThreadsBusy", "threadpool_maxThreads", 'port="{}",protocol="http-nio"', ["8080", "8443"]),
    ],
)
def test_a_full_connector_is_full_beside_an_empty_one(tmp_path, busy, most, labels, items):
    series = {}
    for item, value in zip(items, (200.0, 0.0), strict=True):
        own = "{" + labels.format(item) + ',instance="app1:9404"}'
        series |= {f"tomcat_{busy}{own}": [(t, value) for t in SECONDS]}
        series |= {f"tomcat_{most}{own}": [(t, 200.0) for t in SECONDS]}
    rows = read(dump(tmp_path / "d", series)).samples.groupby(["metric", "item"])["value"].mean()
    assert rows["utilization_pct"].to_dict() == {items[0]: 100, items[1]: 0}
    assert rows["active"].to_dict() == {"threads": 200}


def test_a_pool_that_has_no_name_is_that_of_the_threads(tmp_path):
    series = {
        'tomcat_threadpool_currentthreadsbusy{instance="app1:9404"}': [(t, 30.0) for t in SECONDS],
        'tomcat_threadpool_maxthreads{instance="app1:9404"}': [(t, 40.0) for t in SECONDS],
    }
    rows = read(dump(tmp_path / "d", series)).samples.query("metric == 'utilization_pct'")
    assert set(zip(rows["item"], rows["value"], strict=True)) == {("threads", 75.0)}


def test_the_cycles_of_a_concurrent_collector_stop_nothing(tmp_path):
    beans = {"ZGC Cycles": 0.6, "ZGC Major Cycles": 0.3, "Shenandoah Cycles": 0.6, "ZGC": 0.6, "ZGC Pauses": 0.001}
    series = {
        f'jvm_gc_collection_seconds_sum{{gc="{bean}",instance="app1:9404"}}': [(t, 1 + s * (t - T0)) for t in SECONDS]
        for bean, s in beans.items()
    }
    rows = read(dump(tmp_path / "d", series)).samples.query("metric == 'gc_pct'")
    assert rows["value"].to_numpy() == pytest.approx(np.full(60, 0.1))


def test_a_mapping_of_ones_own(tmp_path):
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "nodes: [{node: shop, match: 'shop-.*', tier: app}]\n"
        "exporters:\n  mine:\n    node: pod\n    series:\n"
        "      - {resource: pool, metric: utilization_pct, item: pool, factor: 100,\n"
        "         value: [{gauge: busy, where: {kind: web|api}}], of: [{gauge: size}]}\n"
    )
    series = {
        'busy{pod="shop-7f",kind="web",pool="a"}': [(t, 3.0) for t in SECONDS],
        'busy{pod="shop-7f",kind="job",pool="a"}': [(t, 9.0) for t in SECONDS],
        'size{pod="shop-7f",pool="a"}': [(t, 4.0) for t in SECONDS],
    }
    metrics = read(dump(tmp_path / "d", series), mapping=mapping)
    assert set(metrics.samples["value"]) == {75.0}
    assert metrics.samples[["node", "tier", "item", "source"]].drop_duplicates().values.tolist() == [
        ["shop", "app", "a", "mine"]
    ]


def test_a_rule_may_be_for_one_instance_as_for_a_container_with_a_quota(tmp_path):
    mapping, rules = tmp_path / "m.yaml", []
    for instance, cores in (("db1:9100", 0.5), ("web1:9100", 2)):
        value = f"{{rate: {CPU}, where: {{instance: '{instance}'}}, without: {{mode: idle}}}}"
        rules.append(f"{{resource: cpu, metric: utilization_pct, factor: {100 / cores}, value: [{value}]}}")
    mapping.write_text(f"exporters: {{node_exporter: {{node: instance, series: [{', '.join(rules)}]}}}}")
    metrics = read(dump(tmp_path / "d", cpu("db1:9100", SECONDS) | cpu("web1:9100", SECONDS)), mapping=mapping)
    assert utilization(metrics).tolist() == pytest.approx([50.0] * 60)
    assert utilization(metrics, "web1").tolist() == pytest.approx([12.5] * 60)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("exporters: {a: {series: []}}", r":1: exporters.a.series: List should have at least 1 item"),
        ("nodes:\n- {node: a, match: '('}", r":2: nodes.0.match: '\(' is no regular expression"),
        (
            "exporters:\n  a:\n    series:\n    - {resource: cpu, metric: x,\n       value: [{rate: a, gauge: b}]}",
            r":5: exporters.a.series.0.value.0: expected one of rate, gauge and count",
        ),
        ("exporters: {a: {series: [{resource: gpu, metric: x, value: [{rate: a}]}]}}", r"'gpu' is none of cpu, disk"),
        ("colours: 1", r":1: colours: Extra inputs"),
        ("[1]", r": expected the keys nodes, match, exporters"),
    ],
)
def test_a_bad_mapping_is_an_error_with_its_line(tmp_path, content, message):
    (tmp_path / "m.yaml").write_text(content)
    with pytest.raises(DataError, match="m.yaml" + (message if message.startswith(":") else ".*" + message)):
        read_mapping(tmp_path / "m.yaml")


def test_the_default_mapping_is_sound():
    mapping = read_mapping(None)
    assert list(mapping.exporters) == [
        "node_exporter",
        "cadvisor",
        "mysqld_exporter",
        "postgres_exporter",
        "jmx_exporter",
    ]
    keys = [(r.resource, r.metric, r.item or r.named) for e in mapping.exporters.values() for r in e.series]
    assert len(keys) > 40
    assert DEFAULT.name == "prometheus.yaml"
