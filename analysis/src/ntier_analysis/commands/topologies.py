"""Several sweeps beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.commands.options import STORE, AsJson, Mix, PricesFile, Slo, Store, Sweeps
from ntier_analysis.errors import DataError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="SWEEP of the store, or STORE:SWEEP.")],
    b: Annotated[str, typer.Argument(help="The other sweep, given like A. Ratios are B/A.")],
    store: Store = STORE,
    margin: Annotated[float, typer.Option(help="Difference in per cent that still counts as the same.")] = 5.0,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare even if scale, data, mix or think time differ.")
    ] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out the single loads.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the figure and the table.")] = None,
    json: AsJson = False,
) -> None:
    """Compares two sweeps: same, different or undecided.

    Prints ratios with 95 % intervals."""
    from ntier_analysis.comparison.command import run

    if not 0 < margin < 100:
        raise DataError(f"--margin is {margin:g}, allowed are per cent between 0 and 100")
    print(run(a, b, store, margin / 100, anyway=anyway, loads=not brief, out=out, json=json))


@app.command()
def policies(
    sweeps: Annotated[list[str], typer.Argument(help="Names of sweeps that differ in their balancing policy.")],
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the comparison.")] = Path("results/reports/policies"),
) -> None:
    """Compares balancing policies.

    Shows shares of the replicas, throughput and response time, and the regret if there is a trace."""
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.report.replicas import write_comparison

    check_folder(out, "--out")
    text, folder = write_comparison(store, sweeps, out)
    print(text)
    print(folder)


@app.command("map")
def map_(
    sweeps: Sweeps = None,
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the page.")] = Path("results/map"),
    mix: Mix = None,
    prices: PricesFile = None,
    slo_ms: Slo = None,
    join_names: Annotated[
        bool, typer.Option("--join-names", help="Put sweeps with different names into one map.")
    ] = False,
) -> None:
    """Writes a page of maps over topologies.

    It shows bottlenecks, throughput surfaces, ratios, scale-out and costs (docs/maps.md)."""
    from ntier_analysis.campaign.costs import read_prices
    from ntier_analysis.campaign.store import read_campaign
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.report.maps import write_map

    check_folder(out, "--out")
    table = read_prices(prices)
    print(write_map(read_campaign(store, sweeps, mix, join_names=join_names), table, slo_ms, out))


@app.command()
def cheapest(
    throughput: Annotated[float, typer.Option(help="Nominal interactions per second that are needed.")],
    sweeps: Sweeps = None,
    store: Store = STORE,
    slo_ms: Slo = None,
    mix: Mix = None,
    prices: PricesFile = None,
    json: AsJson = False,
) -> None:
    """Finds the cheapest measured topology for a throughput.

    Exit code 3 if no topology is sure to carry it within the objective."""
    from ntier_analysis.campaign.costs import answer, read_prices
    from ntier_analysis.campaign.store import read_campaign

    table = read_prices(prices)
    answered = answer(read_campaign(store, sweeps, mix), table, throughput, slo_ms)
    print(answered.json() if json else answered.text())
    if answered.best is None:
        raise typer.Exit(3)


@app.command()
def predict(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    topo: Annotated[str | None, typer.Option(help="Predict this topology instead, for example 1/1/1/2M.")] = None,
    cores: Annotated[
        list[str] | None, typer.Option(help="TYPE=CORES: CPU of a node type that no sweep in the store has.")
    ] = None,
    jmt: Annotated[Path | None, typer.Option(help="Also write the model for JMVA to this file.")] = None,
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Predicts throughput from the sweep's demands.

    Solves a closed model of the demands and shows it beside the measurement, or for another topology (--topo)."""
    from ntier_analysis.prediction.store import predicted, text

    document = predicted(store, sweep, topo, cores or [], jmt)
    if json:
        import orjson

        print(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    print(text(document))
