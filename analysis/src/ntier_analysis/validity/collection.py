"""C, P: are the measurements complete, on one clock, and from one system?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome, implied
from ntier_analysis.trial import NOMINAL_S, RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable, undecidable

MISSING_PCT = 1.0
GAP_INTERVALS = {0.1: 3.0, 1.0: 2.0}
"""Longest gap in nominal intervals: 0.3 s at 10 Hz, 2 s at 1 Hz."""
INTERVAL_OFF_PCT = 5.0
FEW = 20
"""Intervals, of which one that is twice as long moves the mean by 5 % or more."""
WHOLE_SECONDS = {"sysstat"}
"""Collectors whose stamps are rounded so: the length of an interval is not the difference of two stamps."""
SAME_READING = 0.02
"""Of the nominal interval: lines of one reading (a line per replica, say) that were stamped one after the other."""
OFFSET_MS, DRIFT_MS, UNCERTAIN_MS = 50.0, 20.0, 100.0
LOG_SHARE, LOG_COUNT = 0.001, 5


@dataclass(frozen=True)
class Readings:
    """Of one collector in the run phase: `t` times, s; `nominal` interval, s; `gaps` from the start of the run to the
    first reading, from each to the next, and from the last to the run's end, s."""

    t: np.ndarray
    nominal: float
    gaps: np.ndarray

    @property
    def missing(self) -> float:
        """Readings that were left out. One that comes late puts off all that follow (sadc waits a second from then on,
        so on a node that its quota stops it reads every 1.02 s): that is no reading less, and so only gaps count in
        which one was due. Irregular ones may leave such a gap though all are there."""
        length = float(self.gaps.sum())
        fewer = max(0.0, length / self.nominal - len(self.t) - 1)
        skipped = float(np.maximum(0.0, np.round(self.gaps / self.nominal) - 1).sum())
        return 100 * min(fewer, skipped) * self.nominal / length


def readings(trial: RawTrial) -> dict[tuple[str, str], Readings]:
    """(node, collector) -> its readings in the run phase; clients' heartbeat too."""
    read = {}
    for node, collector in trial.collectors():
        frame, _ = trial.samples_of(node, collector)
        lengths = frame.drop_duplicates("t_s").set_index("t_s")["interval_s"] if collector in WHOLE_SECONDS else None
        read[node, collector] = _in_run(trial, frame["t_s"].to_numpy(), NOMINAL_S.get(collector, 1.0), lengths)
    for name, beats in trial.progress.groupby("client"):
        read[str(name), "progress"] = _in_run(trial, beats["t_s"].to_numpy(), 1.0)
    return read


def _in_run(trial: RawTrial, stamps: np.ndarray, nominal: float, lengths: pd.Series | None = None) -> Readings:
    """`lengths`: stamp -> interval that ended with it, s; without them, the difference of two stamps."""
    start, end = trial.run
    t = _begun(stamps, nominal)
    t = t[(t >= start) & (t < end)]
    gaps = np.diff(t, prepend=start, append=end)
    if lengths is not None:
        gaps[1:-1] = lengths.loc[t[1:]]
    return Readings(t, nominal, gaps)


def _begun(stamps: np.ndarray, nominal: float) -> np.ndarray:
    """The first stamp of each reading. A collector that is faster than SAME_READING allows seems to read but once."""
    t = np.unique(stamps)
    return t[np.diff(t, prepend=-np.inf) > SAME_READING * nominal]


@check("C1", "Collectors: readings missing", "collector_gap")
def alive(trial: RawTrial) -> Finding:
    """At most 1 % of the readings may be missing, and one in any case (the ends of the run fall between two
    readings)."""
    worst, where, n = 0.0, "", 0
    for (node, collector), read in trial.remember(readings).items():
        n += len(read.t)
        if read.missing > worst:
            worst, where = read.missing, f"{collector} of {node}: {len(read.t)} readings in {read.gaps.sum():.0f} s"
    return exact(worst, MISSING_PCT, "pct", where or "all there", n)


@check("C1.gap", "Collectors: longest gap, in units of its limit", "collector_gap")
def gaps(trial: RawTrial) -> Finding:
    start, end = trial.run
    worst, where, n = 0.0, "", 0
    for (node, collector), read in trial.remember(readings).items():
        longest = float(np.diff(np.concatenate([[start], read.t, [end]])).max())
        limit = GAP_INTERVALS[read.nominal] * read.nominal
        # Rounded to whole seconds (sysstat) or taken at any moment of the second: 50 ms of slack.
        share = longest / (limit + 0.05 * (read.nominal >= 1))
        n += len(read.t)
        if share > worst:
            worst, where = share, f"{collector} of {node} was silent for {longest:.2f} s, allowed are {limit:g} s"
    return exact(worst, 1.0, "", where, n)


@check("C1.end", "Collectors that ended before they were stopped", "collector_gap")
def ended_early(trial: RawTrial) -> Finding:
    """By each node's `end.json`. The host's sampler leaves none: its gaps tell (C1)."""
    died, n = [], 0
    for name in trial.nodes:
        end = trial.json(f"nodes/{name}/end.json")
        for collector, state in end.get("collectors", {}).items():
            n += 1
            if state.get("state") == "died":
                died.append(f"{collector} of {name} (exit code {state.get('exit_code')})")
    return exact(float(len(died)), 0.0, "collectors", ", ".join(died) or "none", n)


@check("C2", "Collectors: interval off its nominal", "collector_interval")
def interval(trial: RawTrial) -> Finding:
    """The median, and the mean as well: some intervals may be longer while most are right. Of stamps in whole seconds
    the mean is known to 1 s in all, and one reading may be missing of a few (C1)."""
    worst, where, n = 0.0, "all on time", 0
    for (node, collector), read in trial.remember(readings).items():
        if len(read.t) < 3:
            continue  # C1 has failed then
        between = np.diff(read.t)
        n += len(between)
        unknown = read.nominal / len(between) if collector in WHOLE_SECONDS or len(between) < FEW else 0.0
        for kind, value, slack in (("", np.median(between), 0.0), ("on average ", between.mean(), unknown)):
            off = 100 * max(0.0, abs(float(value) - read.nominal) - slack) / read.nominal
            if off > worst:
                worst, where = off, f"{collector} of {node} reads {kind}every {value:.3f} s"
    return exact(worst, INTERVAL_OFF_PCT, "pct", where, n)


@check("C3", "Counters that ran backwards, services or nodes that were restarted", "restarted")
def steady_services(trial: RawTrial) -> Finding:
    events, n = [], 0
    for node, collector in trial.collectors():
        _, backwards = trial.samples_of(node, collector)
        n += 1
        if backwards:
            events.append(f"{collector} of {node}: {backwards} counters ran backwards")
    for node in trial.nodes:
        events += _restarts(node, trial.facts(node, "before"), trial.facts(node, "after"))
    return exact(float(len(events)), 0.0, "events", "; ".join(events[:3]) or "none", n)


def _restarts(node: str, before: dict, after: dict) -> list[str]:
    events = [f"{node} was restarted ({key})" for key in ("boot_id", "boot_s") if before.get(key) != after.get(key)]
    later = {s["unit"]: s for s in after.get("services", [])}
    for service in before.get("services", []):
        now = later.get(service["unit"])
        if now is None:
            events.append(f"{node}: {service['unit']} is gone")
        elif any(now.get(k) != service.get(k) for k in ("main_pid", "active_enter_s", "n_restarts", "state")):
            events.append(f"{node}: {service['unit']} was restarted")
    return events


@check("C4", "Clock offset of a node", "clock")
def clock_offset(trial: RawTrial) -> Finding:
    """The part of an offset that is certain: |offset| less half of the shortest round trip."""
    worst, where, unsure = 0.0, "", 0.0
    offsets = trial.manifest.clock_offsets_s
    missing = [name for name in trial.nodes if name not in offsets]
    if missing:
        return undecidable(f"no offset was measured for {', '.join(missing)}")
    for name, clocks in offsets.items():
        for moment in ("before", "after"):
            half = 1000 * clocks[f"rtt_{moment}"] / 2
            certain = max(0.0, abs(1000 * clocks[f"offset_{moment}"]) - half)
            unsure = max(unsure, half)
            if certain > worst:
                worst, where = (
                    certain,
                    f"{name} is off by {1000 * clocks[f'offset_{moment}']:.1f} ms {moment} the trial",
                )
    if unsure > UNCERTAIN_MS:
        return undecidable(f"offsets are uncertain by {unsure:.0f} ms, more than a sample")
    return exact(worst, OFFSET_MS, "ms", where or f"none (known to {unsure:.1f} ms)", len(offsets))


@check("C4.drift", "Clock drift of a node over the trial", "clock")
def clock_drift(trial: RawTrial) -> Finding:
    worst, where = 0.0, "none"
    for name, clocks in trial.manifest.clock_offsets_s.items():
        half = 500 * (clocks["rtt_before"] + clocks["rtt_after"])
        certain = max(0.0, abs(1000 * (clocks["offset_after"] - clocks["offset_before"])) - half)
        if certain > worst:
            worst, where = certain, f"{name} drifted by at least {certain:.1f} ms"
    if not trial.manifest.clock_offsets_s:
        return undecidable("no offset was measured")
    return exact(worst, DRIFT_MS, "ms", where, len(trial.manifest.clock_offsets_s))


@check("C5", "Interactions in the client's log against the first tier's access log", "incomplete_log")
def logs_agree(trial: RawTrial) -> Finding:
    """Two counts of the run phase: interactions that succeeded against logos, and first bytes of pages against pages.
    There are two since an interaction ends with the page's logo, for which the client waits seconds when all workers
    of the server are taken. A page may be missing if its logo had not come when all stopped. Of requests that
    users took along who left before the run, the server may answer some in the run."""
    start, end = trial.run
    seen = trial.interactions

    def within(times) -> int:
        return int(((times >= start) & (times < end)).sum())

    logs = list(trial.web_logs.values())
    if not logs:
        return not_applicable("the first tier keeps no access log")
    garbled = sum(len(log.attrs["garbled_lines"]) for log in logs)
    if garbled:
        return Finding(Outcome.FAIL, garbled, 0, "lines", None, None, f"{garbled} lines of the access log are garbled")
    if not implied.pictured(trial.system) and not any(log["image"].any() for log in logs):
        return not_applicable("no interaction of this system ends with a picture that the log could count")
    logos = within(seen.loc[seen["ok"], "t_s"]), sum(within(log.loc[log["image"], "t_s"]) for log in logs)
    pages = within(seen["page_s"]), sum(within(log.loc[~log["image"], "t_s"]) for log in logs)
    awaited = int((trial.users["pending_s"] > 0).sum()) if trial.wrote("users.csv") else 0
    late = trial.taken_along
    off = max(logos[0] - logos[1], logos[1] - logos[0] - late, pages[0] - pages[1], pages[1] - pages[0] - awaited)
    server = trial.system.order[0]
    text = f"client {logos[0]}, {server} {logos[1]}; pages {pages[0]} and {pages[1]}, {awaited} pending at the end"
    text += f" or taken along ({late}) before the run" if late else ""
    return exact(float(off), LOG_SHARE * logos[0] + LOG_COUNT, "interactions", text, logos[0])


@check("P2", "All files are there and as sealed", "files")
def files(trial: RawTrial) -> Finding:
    missing = []
    for node, collector in trial.collectors():
        if trial.written_by(node, collector) is None:
            missing.append(f"nodes/{node}/{'sysstat.json' if collector == 'sysstat' else f'{collector}.csv'}")
    declared = [n for n in trial.nodes if n not in trial.manifest.collectors]
    missing += [f"collectors of {name} (none in the manifest)" for name in declared]
    missing += [f"{f} (empty)" for f in _empty_clients(trial)]
    wrong = missing + trial.altered_files()
    return exact(float(len(wrong)), 0.0, "files", "; ".join(wrong[:5]) or "complete", len(trial.manifest.files))


def _empty_clients(trial: RawTrial) -> list[str]:
    names = [n.name for n in trial.manifest.nodes if n.tier == "client"]
    return [f"clients/{name}" for name in names if name not in trial.clients]
