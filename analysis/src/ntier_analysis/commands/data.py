"""The store: what is read into it, made of it for all its sweeps, and written out of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.commands.options import (
    NO_SWEEP,
    STORE,
    Anywhere,
    AsJson,
    Cluster,
    Jobs,
    PlacedAnywhere,
    Store,
    StoreAndSweeps,
    Sweeps,
    placed,
)
from ntier_analysis.wording import counted

app = typer.Typer(rich_markup_mode=None)


@app.command()
def validate(trial: Annotated[Path, typer.Argument(help="Folder of a raw trial.")], json: AsJson = False) -> None:
    """Checks whether a raw trial is valid.

    docs/validity.md lists the checks. The exit code is 0 also for an invalid trial."""
    from ntier_analysis.trial import RawTrial
    from ntier_analysis.validity.registry import validate as run

    checks = run(RawTrial(trial))
    if json:
        print(checks.model_dump_json(indent=1))
        return
    from ntier_analysis.texts import checks_text

    print(checks_text(checks))


@app.command()
def ingest(
    sweeps: Sweeps = None,
    raw: Annotated[str, typer.Option(help="Folder of the raw results, or a URL of fsspec.")] = "results/raw",
    store: Anywhere = str(STORE),
    force: Annotated[bool, typer.Option("--force", help="Also rebuild sweeps that did not change.")] = False,
    revalidate: Annotated[
        bool,
        typer.Option("--revalidate", help="Run the validity checks again, even if the manifest has their outcome."),
    ] = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Reads raw trials into the store.

    Exit code 1 if a file could not be read; the other trials are stored."""
    from functools import partial

    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import ingest as run
    from ntier_analysis.many import names_of
    from ntier_analysis.places import Place

    source, target = (Place.of(text, absolute=cluster is not None) for text in (raw, store))
    if target.local is not None:
        check_folder(Path(store), "--store")
    problems = 0
    names = names_of(source, sweeps or [])
    work = partial(run, raw=source, store=target, force=force, revalidate=revalidate)
    for done in shown(spread(work, names, jobs=jobs, cluster=cluster), len(names), "ingest"):
        same = "unchanged, judged again by newer rules" if done.judged_again else "unchanged"
        state = same if done.unchanged else f"{counted(done.trials, 'trial')}, {done.valid} valid"
        print(f"{done.sweep}: {state}")
        for problem in done.problems:
            print(f"error: {problem}", file=sys.stderr)
        problems += len(done.problems)
    if problems:
        raise typer.Exit(1)


@app.command()
def judge(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Judges stored sweeps again by this program's rules.

    Writes the verdicts into the store."""
    from functools import partial

    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import judge as run
    from ntier_analysis.many import stored_names
    from ntier_analysis.places import Place

    text, asked = placed(store, arguments)
    place = Place.of(text, absolute=cluster is not None)
    names = stored_names(place, asked)
    for done in shown(spread(partial(run, store=place), names, jobs=jobs, cluster=cluster), len(names), "judge"):
        print(f"{done.sweep}: {done.verdict}, judged by the rules of {done.rules} (before: {done.before})")
    if not names:
        print(NO_SWEEP)


@app.command("densities")
def all_densities(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    out: Annotated[str, typer.Option(help="Folder for a Parquet file per sweep, or a URL of fsspec.")] = "densities",
    bandwidth: Annotated[float, typer.Option(min=0.5, max=100, help="Of the kernel, in percentage points.")] = 2.0,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Writes the density of every utilization of every trial.

    They are for display: a verdict never rests on them.

    A row has the keys of one resource of one node, and 401 points from 0 to 100 %."""
    from functools import partial

    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import density as run
    from ntier_analysis.many import stored_names
    from ntier_analysis.places import Place

    text, asked = placed(store, arguments)
    place, target = (Place.of(where, absolute=cluster is not None) for where in (text, out))
    if target.local is not None:
        check_folder(Path(out), "--out")
    names = stored_names(place, asked)
    work = partial(run, store=place, out=target, bandwidth_pct=bandwidth)
    made = shown(spread(work, names, jobs=jobs, cluster=cluster), len(names), "densities")
    for name, number in zip(names, made, strict=True):
        print(f"{name}: {counted(number, 'density')}")
    if not names:
        print(NO_SWEEP)


@app.command("import")
def import_(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder with trials.csv, samples.csv and, if you have it, interactions.csv.")
    ] = None,
    jtl: Annotated[list[Path] | None, typer.Option(help="JMeter's CSV JTL of a run; one per client.")] = None,
    sa: Annotated[
        list[str] | None, typer.Option(metavar="NODE=FILE[:TIER]", help="A node's sysstat file (binary or JSON).")
    ] = None,
    k6: Annotated[list[Path] | None, typer.Option(help="k6's points, CSV or JSON lines; one per client.")] = None,
    locust: Annotated[
        list[Path] | None, typer.Option(help="Locust's *_stats_history.csv, a table with a line per request, or both.")
    ] = None,
    gatling: Annotated[list[Path] | None, typer.Option(help="Gatling's simulation.log; one per client.")] = None,
    prometheus: Annotated[
        str,
        typer.Option(metavar="URL|FILE", help="Samples of the nodes: a Prometheus server, or a file saved from it."),
    ] = "",
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=INSTANCE[:TIER]", help="Node to which an instance of Prometheus belongs."),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="YAML file that maps metrics to resources; default: that of the usual exporters."),
    ] = None,
    loads: Annotated[
        Path | None,
        typer.Option(help="CSV with a line per trial: start, end, users; default: plateaus of the users."),
    ] = None,
    load_model: Annotated[str, typer.Option(help="closed (users), open (arrivals at a rate) or work.")] = "",
    runs: Annotated[Path | None, typer.Option(help="CSV with a line per run: jtl, sa, users, ...")] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, help="Concurrent users; default: those of each plateau, or the threads in the JTL."),
    ] = None,
    topology: Annotated[str, typer.Option(help="Nodes per tier, for example 1/2/1/2M.")] = "",
    sweep: Annotated[str, typer.Option(help="Sweep that the run belongs to.")] = "",
    rep: Annotated[int, typer.Option(min=1, help="Repetition of this load.")] = 1,
    ramp_up: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds to leave out at the start; default: until all threads run (plateaus: a tenth, at most 10 s).",
        ),
    ] = None,
    ramp_down: Annotated[float | None, typer.Option(min=0, help="Seconds to leave out at the end.")] = None,
    think_time: Annotated[
        float | None,
        typer.Option(min=0, help="Mean think time in s; default: that of the data if they tell it, else 7."),
    ] = None,
    slo_ms: Annotated[float | None, typer.Option(min=0, help="Response-time objective of the goodput, ms.")] = None,
    clock_offset: Annotated[
        list[str] | None, typer.Option(metavar="NODE=SECONDS", help="How far the node's clock is ahead of JMeter's.")
    ] = None,
    stamp: Annotated[str, typer.Option(help="What timeStamp means: start or end of a sample.")] = "start",
    containers: Annotated[
        bool,
        typer.Option("--containers", help="The nodes are containers: their sysstat shows the host's CPU and disk."),
    ] = False,
    tiers: Annotated[str, typer.Option(help="Tiers from the client inwards: frontend,backend,postgres.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs of the same name that have other contents.")
    ] = False,
    store: Store = STORE,
) -> None:
    """Adds measurements of another system to the store.

    Takes CSV tables, or files of JMeter, k6, Locust or Gatling with those of sysstat or Prometheus
    (docs/how-to/imports.md).

    ntier-analysis import --jtl run.jtl --sa web1=web1.sa --sa db1=db1.sa --topology 1/0/0/1 --users 400"""
    from ntier_analysis.importing.command import run

    options = {
        "jtl": jtl or [], "k6": k6 or [], "locust": locust or [], "gatling": gatling or [], "sa": sa or [],
        "prometheus": prometheus, "node": node or [], "mapping": mapping, "loads": loads, "load_model": load_model,
        "users": users, "topology": topology, "sweep": sweep, "rep": rep,
        "ramp_up_s": ramp_up, "ramp_down_s": ramp_down, "think_time_s": think_time, "slo_ms": slo_ms, "stamp": stamp,
        "containers": containers, "clock_offset": clock_offset or [], "tiers": tiers, "replace": replace,
    }  # fmt: skip
    for line in run(folder, runs, options, store):
        print(line)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL. Each table of the store is a view of the same name.")],
    store: Store = STORE,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    json: AsJson = False,
) -> None:
    """Runs SQL (DuckDB) on the store, read-only.

    ntier-analysis sql "SELECT sweep, count(*) FROM trials WHERE valid GROUP BY ALL" """
    from ntier_analysis.store.query import formatted, run

    print(formatted(run(store, query), "csv" if csv else "json" if json else "table"), end="")


@app.command()
def export(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    openmetrics: Annotated[bool, typer.Option("--openmetrics", help="Verdict and key figures as OpenMetrics.")] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Checks and expectations as JUnit's test cases.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The whole sweep; docs/schema/export.schema.json.")] = False,
    out: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    expect: Annotated[
        list[str] | None, typer.Option(help="With --junit: an expectation, as of check; may be repeated.")
    ] = None,
    expected: Annotated[Path | None, typer.Option(help="With --junit: a file of expectations, as of check.")] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="With --junit: skip expectations that the data cannot decide.")
    ] = False,
    store: Store = STORE,
) -> None:
    """Writes a sweep for other programs.

    ntier-analysis export SWEEP --junit --expect "max_throughput >= 100" --out ntier.xml"""
    from ntier_analysis.exporting.command import run

    kinds = {"openmetrics": openmetrics, "junit": junit, "json": json}
    print(
        run(store, sweep, [k for k, v in kinds.items() if v], out, expect or [], expected, allow=allow_undecided),
        end="",
    )


store_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(store_app, name="store", help="Contents and size of a store.")


@store_app.command()
def info(store: Store = STORE, json: AsJson = False) -> None:
    """Lists tables, files, rows, bytes, and the schema's version.

    Reads the files' footers only. Exit code 1 if a file could not be read."""
    from ntier_analysis.store.info import examine

    found = examine(store)
    if json:
        import orjson

        print(orjson.dumps(found.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(found.text())
    for problem in found.unreadable:
        print(f"error: {problem}", file=sys.stderr)
    if found.unreadable:
        raise typer.Exit(1)


@store_app.command()
def migrate(store: Store = STORE) -> None:
    """Writes files of earlier versions anew.

    The tables stay the same and take fewer bytes. Earlier versions are read as they are, too."""
    from ntier_analysis.jobs import shown
    from ntier_analysis.places import as_given
    from ntier_analysis.store.tables import locked, sweeps
    from ntier_analysis.store.tables import migrate as run

    names = sweeps(store)
    with locked(store):
        files = sum(shown((run(store, name) for name in names), len(names), "migrate"))
    print(f"{as_given(store)}: {counted(files, 'file')} of {counted(len(names), 'sweep')} written anew")
