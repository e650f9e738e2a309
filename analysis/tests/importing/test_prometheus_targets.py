"""Several targets of one node, and the times of query_range: what is added up, and what a rate is divided by."""

import numpy as np
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.importing.prometheus import node_name
from prometheus_files import SECONDS, T0, cpu, dump, ranged, read, utilization

LONG = T0 + np.arange(0.0, 601.0)


def disk(labels: str, times: np.ndarray, busy: float = 0.5) -> dict[str, list[tuple[float, float]]]:
    return {f'node_disk_io_time_seconds_total{{device="vda",{labels}}}': [(t, 5 + busy * (t - T0)) for t in times]}


def relabelled(series: dict, labels: str) -> dict:
    return {name.replace("}", f",{labels}}}"): points for name, points in series.items()}


# ---- targets -------------------------------------------------------------------------------------------------------


def test_two_scrape_jobs_of_one_exporter_are_not_added_up(tmp_path):
    """Kubernetes' pods beside its endpoints: the labels differ in more than job and instance."""
    own = cpu("db1:9100", SECONDS) | disk('instance="db1:9100"', SECONDS)
    twin = disk('instance="db1:9100"', SECONDS + 0.3)
    series = relabelled(own, 'job="node"') | relabelled(twin, 'job="pods",pod="x"')
    with pytest.raises(
        DataError, match=r"node db1: node_disk_io.* of instance=db1:9100, job=node and .*job=pods are of"
    ):
        read(dump(tmp_path / "d", series))


@pytest.mark.parametrize("label", ["replica", "prometheus_replica", "prometheus", "receive_replica"])
def test_two_servers_that_scrape_one_target_are_not_added_up(tmp_path, label):
    own, twin = (cpu("db1:9100", times) for times in (SECONDS, SECONDS + 0.3))
    series = relabelled(own, f'{label}="a"') | relabelled(twin, f'{label}="b"')
    with pytest.raises(DataError, match=rf"of instance=db1:9100, {label}=a and .*{label}=b are of the same time"):
        read(dump(tmp_path / "d", series))


@pytest.mark.parametrize("label", ["replica", "prometheus_replica", "prometheus", "receive_replica"])
def test_a_server_that_alone_has_a_label_scrapes_the_same_target(tmp_path, label):
    own, twin = (cpu("db1:9100", times) for times in (SECONDS, SECONDS + 0.3))
    with pytest.raises(DataError, match=rf"of instance=db1:9100 and of instance=db1:9100, {label}=b are of the same"):
        read(dump(tmp_path / "d", own | relabelled(twin, f'{label}="b"')))


def test_a_server_that_got_a_label_is_a_renamed_one(tmp_path):
    first, then = cpu("db1:9100", SECONDS[:30]), cpu("db1:9100", SECONDS[30:])
    metrics = read(dump(tmp_path / "d", first | relabelled(then, 'replica="b"')))
    assert metrics.cores == {"db1": 1.0}
    assert utilization(metrics).tolist() == pytest.approx([25.0] * 60)
    assert any("instance=db1:9100 became instance=db1:9100, replica=b" in text for text in metrics.notices)


def test_a_replica_that_a_rule_names_is_a_thing_that_is_counted(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "exporters: {mine: {series: [{resource: pool, metric: connections, item: replica, value: [{gauge: busy}]}]}}"
    )
    series = {f'busy{{instance="db1:9999",replica="{n}"}}': [(t, n) for t in SECONDS] for n in (1, 2)}
    rows = read(dump(tmp_path / "d", series), mapping=tmp_path / "m.yaml").samples
    assert rows.groupby("item")["value"].mean().to_dict() == {"1": 1, "2": 2}


def test_a_scrape_job_that_took_over_is_a_renamed_one(tmp_path):
    first, then = (
        disk('instance="db1:9100",job="node"', SECONDS[:30]),
        disk('instance="db1:9100",job="pods"', SECONDS[30:]),
    )
    metrics = read(dump(tmp_path / "d", first | then))
    assert metrics.samples.query("metric == 'utilization_pct'")["value"].to_numpy() == pytest.approx(np.full(60, 50.0))
    assert any("job=node became instance=db1:9100, job=pods" in text for text in metrics.notices)


def started(instance: str, at: float = T0 - 900) -> dict[str, list[tuple[float, float]]]:
    return {f'process_start_time_seconds{{instance="{instance}"}}': [(t, at) for t in SECONDS]}


def mysql(instance: str) -> dict[str, list[tuple[float, float]]]:
    status = f'{{instance="{instance}"}}'
    return {
        "mysql_global_status_uptime" + status: [(t, 900 + t - T0) for t in SECONDS],
        "mysql_global_status_questions" + status: [(t, 500 * (t - T0)) for t in SECONDS],
    }


def test_exporters_of_one_machine_are_read_beside_each_other(tmp_path):
    """Each of them, and Prometheus, has a process_start_time_seconds; none of them is a JVM."""
    machine, database = cpu("10.0.0.7:9100", SECONDS), mysql("10.0.0.7:9104")
    times = [started(i, T0 - n) for n, i in enumerate(("10.0.0.7:9100", "10.0.0.7:9104", "prometheus:9090"))]
    metrics = read(dump(tmp_path / "d", machine | database | times[0] | times[1] | times[2]), "db1=10.0.0.7")
    assert utilization(metrics).tolist() == pytest.approx([25.0] * 60)
    assert metrics.samples.query("metric == 'questions_per_s'")["value"].to_numpy() == pytest.approx(np.full(60, 500.0))
    assert set(metrics.samples["source"]) == {"node_exporter", "mysqld_exporter"}
    assert metrics.notices == []


def test_a_jvm_beside_other_exporters_is_restarted_by_its_own_start(tmp_path):
    gc = {'jvm_gc_collection_seconds_sum{gc="G1",instance="app1:9404"}': [(t, 1 + 0.1 * (t - T0)) for t in SECONDS]}
    begun = started("app1:9404")
    begun[next(iter(begun))][30:] = [(t, T0 + 29.5) for t in SECONDS[30:]]
    metrics = read(dump(tmp_path / "d", cpu("app1:9100", SECONDS) | started("app1:9100") | gc | begun))
    values = metrics.samples.query("metric == 'gc_pct'").set_index("t_s")["value"]
    assert values.isna().sum() == 1
    assert np.isnan(values[T0 + 30])
    assert any("app1 (jmx_exporter) was restarted" in text for text in metrics.notices)


def test_a_restart_may_be_told_by_another_target_alone(tmp_path):
    """kube-state-metrics tells when a pod began, the pod its own numbers."""
    (tmp_path / "m.yaml").write_text(
        "nodes: [{node: app1, match: shop}]\nexporters: {mine: {node: pod, started: kube_pod_start_time, series: "
        "[{resource: query, metric: requests_per_s, value: [{rate: done}]}]}}"
    )
    series = {
        'done{pod="shop",instance="10.0.0.9:8080"}': [(t, 5 * (t - T0)) for t in SECONDS],
        'kube_pod_start_time{pod="shop",instance="state:8080"}': [
            (t, T0 - 9 if t < T0 + 30 else T0 + 29) for t in SECONDS
        ],
    }
    metrics = read(dump(tmp_path / "d", series), mapping=tmp_path / "m.yaml")
    assert metrics.samples["value"].isna().sum() == 1
    assert any("app1 (mine) was restarted" in text for text in metrics.notices)


@pytest.mark.parametrize("text", ["app server1=10.0.0.5:app", "datenb\u00e4nk=h:db"])
def test_a_name_that_no_node_may_have_is_an_error(text):
    name = text.partition("=")[0]
    with pytest.raises(DataError, match=rf"--node .*: node '{name}': expected letters, digits"):
        node_name(text)


# ---- query_range ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every_s", "step_s"), [(10, 15), (15, 10), (10, 12), (15, 4)])
def test_a_step_that_does_not_divide_the_scrape_interval_is_refused(tmp_path, every_s, step_s):
    scrapes = LONG[::every_s]
    series = cpu("db1:9100", scrapes, 0.72) | disk('instance="db1:9100"', scrapes, 0.72)
    with pytest.raises(
        DataError, match=r"d: db1: node_cpu_seconds_total grows by .* the step of query_range does not div"
    ):
        read(ranged(tmp_path / "d", series, step_s), end=T0 + 600)


@pytest.mark.parametrize(("every_s", "step_s"), [(10, 5), (10, 10), (10, 20), (15, 15), (15, 2.5)])
def test_a_step_that_fits_gives_the_rates_of_the_scrapes(tmp_path, every_s, step_s):
    scrapes = LONG[::every_s]
    series = cpu("db1:9100", scrapes, 0.72) | disk('instance="db1:9100"', scrapes, 0.72)
    metrics = read(ranged(tmp_path / "d", series, step_s), end=T0 + 600)
    assert metrics.samples.query("metric == 'utilization_pct'")["value"].to_numpy() == pytest.approx(72.0)
    assert metrics.notices == []
    assert not any("as far apart as their times" in text for text in metrics.unknown)


def test_uptime_in_whole_seconds_tells_the_step_too(tmp_path):
    scrapes = LONG[::10]
    status = '{instance="db1:9104"}'
    series = {
        "mysql_global_status_uptime" + status: [(t, np.floor(900.5 + t - T0)) for t in scrapes],
        "mysql_global_status_questions" + status: [(t, 500 * (t - T0)) for t in scrapes],
    }
    with pytest.raises(DataError, match=r"mysql_global_status_uptime grows by 0.6. to 1.3. s in each second"):
        read(ranged(tmp_path / "bad", series, 15), end=T0 + 600)
    rows = read(ranged(tmp_path / "good", series, 10), end=T0 + 600).samples.query("metric == 'questions_per_s'")
    assert rows["value"].to_numpy() == pytest.approx(500.0)


def test_an_exporter_without_a_counter_of_seconds_is_told(tmp_path):
    gc = {
        'jvm_gc_collection_seconds_sum{gc="G1",instance="app1:9404"}': [(t, 1 + 0.1 * (t - T0)) for t in SECONDS[::5]]
    }
    metrics = read(ranged(tmp_path / "d", gc, 5))
    assert any(
        "whether the scrapes of jmx_exporter are as far apart as their times" in text for text in metrics.unknown
    )
    assert not any("as far apart" in text for text in read(dump(tmp_path / "e", gc)).unknown)


def test_a_missing_scrape_is_no_uneven_step(tmp_path):
    scrapes = np.delete(LONG[::10], [7, 8, 30])
    metrics = read(ranged(tmp_path / "d", cpu("db1:9100", scrapes, 0.72), 10), end=T0 + 600)
    values = utilization(metrics)
    assert values.dropna().to_numpy() == pytest.approx(72.0)
    assert values.isna().sum() == 2
    assert any("3 scrapes of node_exporter missing" in text for text in metrics.notices)


# ---- modes of the CPU ----------------------------------------------------------------------------------------------


def varying(modes: str) -> dict[str, list[tuple[float, float]]]:
    """A CPU that is busy by turns, a quarter of it in the system; of these modes."""
    busy = np.cumsum(np.where(np.arange(601) % 100 < 50, 0.9, 0.1))
    seconds = {"idle": LONG - T0 - busy, "user": 0.75 * busy, "system": 0.25 * busy}
    return {
        f'node_cpu_seconds_total{{cpu="0",instance="db1:9100",mode="{mode}"}}': list(
            zip(LONG[::10], 1000 + seconds[mode][::10], strict=True)
        )
        for mode in modes.split(",")
    }


@pytest.mark.parametrize("kind", ["dump", "ranged"])
@pytest.mark.parametrize("modes", ["idle", "iowait,idle"])
def test_idle_time_alone_does_not_tell_how_busy_a_cpu_was(tmp_path, kind, modes):
    """Nothing of all is anything else: it would read 0 %."""
    series = varying("idle")
    if modes != "idle":
        series |= {name.replace("idle", "iowait"): [(t, 0.0) for t in LONG[::10]] for name in series}
    path = dump(tmp_path / "d", series) if kind == "dump" else ranged(tmp_path / "d", series, 10)
    told = " and ".join(sorted(modes.split(",")))
    with pytest.raises(DataError, match=rf"d: db1: node_cpu_seconds_total has only mode {told}; .* all modes"):
        read(path, end=T0 + 600)


def test_where_modes_are_missing_the_step_is_not_the_only_suspect(tmp_path):
    with pytest.raises(
        DataError, match=r"divide the scrape interval \(or modes of the CPU are missing, or scrapes were"
    ):
        read(ranged(tmp_path / "d", varying("idle,system"), 10), end=T0 + 600)
    assert len(utilization(read(ranged(tmp_path / "e", varying("idle,user,system"), 10), end=T0 + 600)))
