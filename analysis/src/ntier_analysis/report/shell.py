"""What all pages share: figures embedded, style sheet and programs with the policy that allows only these."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ntier_analysis.figures.drawing import Origin, svg
from ntier_analysis.report.drawings import Pair
from ntier_analysis.wording import in_markdown

PLOTLY_JS = "4.1.1"
"""Version of the shipped cartesian bundle of plotly.js (MIT, report/vendor)."""


def embedded(pair: Pair, origin: Origin) -> dict:
    """What the template `figure.html.j2` shows of a figure."""
    drawing = pair.drawing
    plot = None
    if pair.plot is not None:
        pair.plot["layout"]["meta"] = origin.text()
        # inside <script> only "<" can end the element or open a comment
        text = json.dumps(pair.plot, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        plot = Markup(text.replace("<", "\\u003c"))  # noqa: S704
    return {
        "name": drawing.name,
        "finding": drawing.finding,
        "caption": drawing.caption,
        "picture": base64.b64encode(svg(drawing, origin)).decode(),
        "plot": plot,
        "wide": pair.wide,
    }


def assets(*, interactive: bool = True) -> dict[str, str]:
    """Style sheet, scripts, and the policy that allows only these scripts, by their hashes. A page without interactive
    figures leaves out Plotly."""
    package = files("ntier_analysis.report")
    scripts = {"plotly": _plotly()} if interactive else {}
    scripts["js"] = (package / "report.js").read_text(encoding="utf-8")
    if any("</script" in text.lower() for text in scripts.values()):
        raise RuntimeError("a shipped program holds </script and cannot be embedded")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts.values()]
    css = (package / "report.css").read_text(encoding="utf-8")
    own = {name: Markup(text) for name, text in (scripts | {"css": css}).items()}  # noqa: S704
    return own | {"script_sources": Markup(" ".join(f"'sha256-{d}'" for d in digests))}  # noqa: S704


def _plotly() -> str:
    package = files("ntier_analysis.report")
    plotly = (package / "vendor" / "plotly-cartesian.min.js").read_text(encoding="utf-8")
    match = re.search(r"plotly\.js \(cartesian - minified\) v([\d.]+)", plotly[:300])
    if not match or match.group(1) != PLOTLY_JS:
        raise RuntimeError(
            f"report/vendor/plotly-cartesian.min.js: expected version {PLOTLY_JS}, found {match and match[1]}"
        )
    return plotly


def environment(*, escape: bool) -> Environment:
    """`escape`: for HTML; else for Markdown, in which only what is `safe` keeps its lines and `|`."""
    loader = PackageLoader("ntier_analysis", "report")
    plain = None if escape else lambda value: value if isinstance(value, Markup) else in_markdown(value)
    made = Environment(loader=loader, autoescape=escape, undefined=StrictUndefined, trim_blocks=False)  # noqa: S701
    made.finalize = plain
    return made
