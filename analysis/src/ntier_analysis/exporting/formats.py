"""An export as text: JSON, OpenMetrics, JUnit XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ntier_analysis.expectation.expressions import Result
from ntier_analysis.expectation.outcomes import Outcome
from ntier_analysis.exporting.document import Bottleneck, Export, ExportedCheck, ExportedTrial

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Rows = list[tuple[dict[str, str], float | None]]


def to_json(export: Export) -> str:
    return export.model_dump_json(indent=1)


# ---- OpenMetrics ---------------------------------------------------------------------------------------------------


def to_openmetrics(export: Export) -> str:
    """Gauges without times; what is unknown has no sample. The verdict is one too: the text format of Prometheus, which
    node_exporter's textfile collector and a pushgateway read, has no type info."""
    sweep = {"sweep": export.sweep}
    low, high = export.max_throughput_interval
    trials = [(sweep | _load(export, t), t) for t in export.trials]
    families: list[tuple[str, str, str, Rows]] = [
        ("ntier_scale", "", "Measured rates divided by it are nominal; numbers of users are nominal.",
         [(sweep, export.scale)]),
        ("ntier_max_throughput_per_second", "", "Largest throughput that the sweep reached, as measured.",
         [(sweep, export.max_throughput_per_s)]),
        ("ntier_max_throughput_low_per_second", "", "Lower end of its 95 % interval.", [(sweep, low)]),
        ("ntier_max_throughput_high_per_second", "", "Upper end of the same.", [(sweep, high)]),
        ("ntier_max_throughput_at_least", "", "1: the maximum was not reached.",
         [(sweep, float(export.max_throughput_at_least))]),
        ("ntier_knee_users", "", "Nominal users from which on throughput no longer grows.",
         [(sweep, export.knee_users)]),
        ("ntier_bottleneck_saturation_ratio", "ratio", "Share of the run in which the bottleneck was saturated.",
         [(sweep | _labels(b), b.saturation) for b in export.bottlenecks]),
        ("ntier_trial_valid", "", "1: no required check failed.", [(labels, float(t.valid)) for labels, t in trials]),
        ("ntier_trial_throughput_per_second", "", "Interactions completed without error, as measured.",
         [(labels, t.throughput_per_s) for labels, t in trials]),
        ("ntier_trial_throughput_low_per_second", "", "Lower end of its 95 % interval.",
         [(labels, t.throughput_interval[0]) for labels, t in trials]),
        ("ntier_trial_throughput_high_per_second", "", "Upper end of the same.",
         [(labels, t.throughput_interval[1]) for labels, t in trials]),
        ("ntier_trial_response_time_mean_seconds", "seconds", "Mean response time of successes.",
         [(labels, _seconds(t.response_time_mean_ms)) for labels, t in trials]),
        ("ntier_trial_response_time_p95_seconds", "seconds", "95th percentile of the same.",
         [(labels, _seconds(t.response_time_p95_ms)) for labels, t in trials]),
        ("ntier_trial_errors", "", "Interactions that failed.", [(labels, t.errors) for labels, t in trials]),
    ]  # fmt: skip
    told = {"topology": export.topology, "mix": export.mix or "", "verdict": export.verdict, "kind": export.kind or ""}
    lines = [
        "# TYPE ntier_verdict_info gauge",
        "# HELP ntier_verdict_info Bottleneck of the sweep.",
        f"ntier_verdict_info{_braces(sweep | told | {'analysis_version': export.analysis_version})} 1",
    ]
    for name, unit, text, rows in families:
        known = [(labels, value) for labels, value in rows if value is not None]
        if known:
            lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]
            lines += [f"{name}{_braces(labels)} {float(value):.10g}" for labels, value in known]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _load(export: Export, trial: ExportedTrial) -> dict[str, str]:
    """The trial, its users, and the value of the factor that the sweep is over."""
    value = "" if trial.factor_value is None else f"{trial.factor_value:.10g}"
    factor = {"factor": export.factor.name, "factor_unit": export.factor.unit, "factor_value": value}
    return {"trial": trial.trial, "users": str(trial.users)} | factor


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


def _labels(b: Bottleneck) -> dict[str, str]:
    return {"tier": b.tier, "resource": b.resource, "item": b.item or "", "nodes": ",".join(b.nodes)}


def _braces(labels: dict[str, str]) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


# ---- JUnit ---------------------------------------------------------------------------------------------------------


def to_junit(export: Export, expected: list[Result], *, allow_undecided: bool = False) -> str:
    """Test cases: the expectations, whether each trial is valid, each check of it, each check of the sweep. A case
    fails if an expectation is not met, a trial is not valid (one that ended early has no checks), or a required check
    did not pass; it is skipped if nothing can be said, or the check only warns."""
    root = ElementTree.Element("testsuites", name=_clean(f"ntier-analysis {export.sweep}"))
    met = {Outcome.HOLDS}
    cases = []
    for result in expected:
        state = "passed" if result.outcome in met else "failure"
        if result.outcome is Outcome.UNDECIDED and allow_undecided:
            state = "skipped"
        cases.append((result.expectation, state, f"{result.outcome.value}: {result.seen}", "\n".join(result.evidence)))
    _suite(root, f"{export.sweep}.expectations", cases)
    for trial in export.trials:
        _suite(root, f"{export.sweep}.{trial.trial}", [_valid(trial), *map(_case, trial.checks)])
    _suite(root, f"{export.sweep}.checks", [_case(check) for check in export.sweep_checks])
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _valid(trial: ExportedTrial) -> tuple[str, str, str, str]:
    reasons = ", ".join(trial.invalid_reasons) or "not known"
    return "trial is valid", "passed" if trial.valid else "failure", f"not valid: {reasons}", ""


def _case(check: ExportedCheck) -> tuple[str, str, str, str]:
    state = {True: "failure", False: "skipped"}[check.required] if check.outcome != "pass" else "passed"
    return f"{check.id} {check.title}", state, f"{check.outcome}: {check.detail}", ""


def _suite(root: ElementTree.Element, name: str, cases: list[tuple[str, str, str, str]]) -> None:
    if not cases:
        return
    count = {state: sum(case[1] == state for case in cases) for state in ("failure", "skipped")}
    suite = ElementTree.SubElement(
        root, "testsuite", name=_clean(name), tests=str(len(cases)), failures=str(count["failure"]), errors="0",
        skipped=str(count["skipped"]),
    )  # fmt: skip
    for title, state, said, more in cases:
        case = ElementTree.SubElement(suite, "testcase", name=_clean(title), classname=_clean(name), time="0")
        if state != "passed":
            ElementTree.SubElement(case, state, message=_clean(said)).text = _clean(more) or None


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
