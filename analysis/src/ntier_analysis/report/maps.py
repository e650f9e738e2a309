"""The page over topologies: bottleneck maps, surfaces, ratios, scale-out, costs, and the table behind."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pandas as pd

from ntier_analysis.campaign.cells import Campaign, Cell, MapKey
from ntier_analysis.campaign.compare import Groups, RatioMap, groups, ratios, scale_outs
from ntier_analysis.campaign.costs import Prices, kinds, objective, priced, within
from ntier_analysis.contracts.files import write_text
from ntier_analysis.figures import maps, surfaces
from ntier_analysis.figures.drawing import Drawing, Origin, save, write_csv
from ntier_analysis.report.drawings import Pair
from ntier_analysis.report.shell import assets, embedded, environment
from ntier_analysis.report.words import count, interval, join, number, share
from ntier_analysis.statistics.groups import Pair as Compared
from ntier_analysis.statistics.values import Interval
from ntier_analysis.wording import counted


def write_map(campaign: Campaign, prices: Prices, slo_ms: float | None, out: Path) -> Path:
    """Writes `<out>/map.html`, `figures/` and `tables/`; returns the path of the page. slo_ms: objective of the 95th
    percentile of the response time; None: the mixes' own."""
    grouped = {c: groups(cells) for c, cells in campaign.maps.items()}
    origin = _origin(campaign)
    sections = [_section(c, cells, grouped[c]) for c, cells in _telling(campaign)]
    compared = [maps.ratio_map(r, _ratio_name(r), _ratio_label(r)) for r in ratios(campaign)]
    costs = _costs(campaign, prices)
    drawings = [d for s in sections for d in s["drawings"]] + compared + [c["drawing"] for c in costs]
    for drawing in drawings:
        save(drawing, origin, out / "figures")
    _write_tables(campaign, grouped, prices, slo_ms, out / "tables", origin)
    context = {
        "title": f"Bottlenecks of {counted(len(campaign.cells), 'topology')}",
        "kicker": [
            counted(len(campaign.cells), "topology"),
            ", ".join(sorted({c.map_key.mix for c in campaign.cells})),
        ],
        "sentence": sentence(campaign),
        "warnings": campaign.warnings,
        "sections": [s | {"figures": _embedded(s["drawings"], origin)} for s in sections],
        "ratios": _embedded(compared, origin),
        "costs": _embedded([c["drawing"] for c in costs], origin),
        "rows": _rows(campaign, grouped, prices, slo_ms),
        "currency": prices.currency,
        "prices": _prices(prices),
    }
    page = out / "map.html"
    text = environment(escape=True).get_template("map.html.j2").render(context | assets(interactive=False))
    write_text(page, text)
    return page


def drawings(campaign: Campaign, prices: Prices) -> list[Drawing]:
    """All figures of the page, in its order."""
    sections = [_section(c, cells, groups(cells)) for c, cells in _telling(campaign)]
    compared = [maps.ratio_map(r, _ratio_name(r), _ratio_label(r)) for r in ratios(campaign)]
    return [d for s in sections for d in s["drawings"]] + compared + [c["drawing"] for c in _costs(campaign, prices)]


def _prices(prices: Prices) -> str:
    listed = ", ".join(f"{t} {p:g}" for t, p in prices.per_hour.items())
    return f"{listed} {prices.currency} per hour; {prices.source}"


def sentence(campaign: Campaign) -> str:
    """The page's first sentence."""
    counts = Counter(c.limit for c in campaign.cells)
    limits = join([f"{k} in {n}" for k, n in counts.most_common()])
    return f"What limits {counted(len(campaign.cells), 'topology')}: {limits}."


def _telling(campaign: Campaign) -> list[tuple[MapKey, list[Cell]]]:
    """Maps of two topologies and more; if there is none, all."""
    several = [(c, cells) for c, cells in campaign.maps.items() if len(cells) > 1]
    return several or list(campaign.maps.items())


def _section(map_key: MapKey, cells: list[Cell], group: Groups) -> dict:
    label, slug = map_key.label, map_key.slug
    drawings = [maps.bottleneck_map(cells, group, label, slug)]
    if len(cells) > 1:
        drawings += [surfaces.throughput_lines(cells, label, slug), surfaces.throughput_surface(cells, label, slug)]
    rows = scale_outs(cells)
    if rows:
        drawings.append(surfaces.scaling(rows, label, slug))
    return {"label": label, "slug": slug, "drawings": drawings, "steps": _steps(cells, group)}


def _steps(cells: list[Cell], group: Groups) -> list[str]:
    """What the next node adds, for each two neighbours of the map."""
    topology = {c.sweep: str(c.topology) for c in cells}
    words = {"same": "the same within 5 %", "undecided": "undecided", "higher": "a gain", "lower": "a loss"}
    return [f"{topology[p.b]} → {topology[p.a]}: {_times(p)}, {words[p.relation]}" for p in group.steps]


def _times(pair: Compared) -> str:
    """`1.20 [1.10, 1.31] times as much`, `at least 1.20 [1.10, ∞) times as much`."""
    if pair.side == "unknown":
        return "both maxima are lower bounds"
    return f"{pair.side} {interval(pair.ratio.value, pair.ratio.low, pair.ratio.high)} times as much".lstrip()


def _ratio_name(r: RatioMap) -> str:
    return f"ratio-{r.other.slug}-to-{r.reference.slug}"


def _ratio_label(r: RatioMap) -> str:
    """`PostgreSQL / MySQL (normal nodes, shardingsphere, browse_only)`."""
    first, second = (c.label.split(", ") for c in (r.other, r.reference))
    common = [p for p in first if p in second]
    parts = [" ".join(p for p in own if p not in common) for own in (first, second)]
    return f"{parts[0]} / {parts[1]} ({', '.join(common)})"


def _costs(campaign: Campaign, prices: Prices) -> list[dict]:
    """One figure per mix, system and data: their interactions do not cost the same."""
    result, alike = [], kinds(campaign.cells)
    of_mix = Counter(cells[0].map_key.mix for cells in alike)
    for cells in alike:
        rows, key = priced(cells, prices), cells[0].map_key
        mix, front = key.mix, surfaces.frontier(rows)
        if len(front):
            name = f"{mix}-{key.told_slug}" if of_mix[mix] > 1 else mix
            drawing = surfaces.costs(rows, front, prices.currency, prices.source, name)
            result.append({"mix": mix, "drawing": drawing})
    return result


def _embedded(drawings: list[Drawing], origin: Origin) -> list[dict]:
    return [embedded(Pair(d, None, wide=d.figure.get_figwidth() > 4), origin) for d in drawings]


def _origin(campaign: Campaign) -> Origin:
    cells = campaign.cells
    commits = sorted({k for c in cells for k in c.commits})
    scales = {c.scale for c in cells}
    topologies = ", ".join(sorted({str(c.topology) for c in cells}))
    scale = scales.pop() if len(scales) == 1 else math.nan
    sweeps = tuple(c.sweep for c in cells)
    return Origin("campaign", topologies, sweeps, scale, ", ".join(commits) or "unknown", "ntier-analysis map")


def _rows(campaign: Campaign, grouped: dict[MapKey, Groups], prices: Prices, slo_ms: float | None) -> list[dict]:
    rows = []
    for c in campaign.cells:
        best = None if math.isnan(objective(c, slo_ms)) else within(c, slo_ms)
        nothing = "no objective" if math.isnan(objective(c, slo_ms)) else "–"
        price = prices.of(c)
        rows.append(
            {
                "topology": str(c.topology),
                "map": c.map_key.label,
                "limit": c.limit + (f" ({c.kind})" if c.kind in ("simultaneous", "alternating") else ""),
                "saturation": share(c.saturation, *c.saturation_interval),
                "maximum": ("≥ " if c.at_least else "") + interval(c.max_per_s, c.low_per_s, c.top_per_s),
                "group": grouped[c.map_key].letters.get(c.sweep, "–"),
                "trials": f"{c.valid} of {c.trials}",
                "pooled": c.pooled,
                "scale": f"{c.scale:g}",
                "within": nothing if best is None else f"{_rate(best.rate)} at {count(best.users)}",
                "price": f"{price:.2f}",
                "million": ("≤ " if c.at_least else "") + number(1e6 * price / (3600 * c.max_per_s)),
            }
        )
    return rows


def _rate(found: Interval) -> str:
    return interval(found.value, found.low, found.high)


def _write_tables(
    campaign: Campaign,
    grouped: dict[MapKey, Groups],
    prices: Prices,
    slo_ms: float | None,
    folder: Path,
    origin: Origin,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(_rows(campaign, grouped, prices, slo_ms))
    families = [(c, name, p) for c, g in grouped.items() for name in ("pairs", "steps") for p in getattr(g, name)]
    pairs = pd.DataFrame([{"map": c.slug, "family": name} | p.row for c, name, p in families])
    fits = [surfaces.fits(r).assign(map=c.slug) for c, cells in campaign.maps.items() if (r := scale_outs(cells))]
    write_csv(rows, folder / "topologies.csv", origin)
    write_csv(priced(campaign.cells, prices), folder / "costs.csv", origin)
    write_csv(pairs, folder / "pairs.csv", origin)
    if fits:
        write_csv(pd.concat(fits, ignore_index=True), folder / "scaling.csv", origin)
