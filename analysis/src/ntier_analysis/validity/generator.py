"""G, E: was the load what it was meant to be, and were the answers right?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ntier_analysis.contracts import Outcome
from ntier_analysis.parsers.client import driver_cpu, gc_pauses
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable, sampled, undecidable
from ntier_analysis.wording import counted

UNACCOUNTED_PCT = 1.0
OVERSHOOT_SHARE = 0.005
OVERSHOOT_P99_MS = 50.0
CLIENT_BUSY_PCT = 80.0
CLIENT_THROTTLED_PCT = 1.0
GC_PCT, GC_LONGEST_MS = 1.0, 200.0
ERRORS_PCT = 1.0
ERRORS_WINDOW_PCT, WINDOW_S = 5.0, 5.0
STANDSTILL_S = 120.0  # the slowest search seen in the original took 103 s
CONTENT_N = 200
THINKS_N, THINKS_P = 2000, 0.001


def clipped_s(start: np.ndarray, end: np.ndarray, window: tuple[float, float]) -> float:
    """Seconds of the intervals [start, end) that lie inside the window, summed."""
    inside = np.minimum(end, window[1]) - np.maximum(start, window[0])
    return float(inside[inside > 0].sum())


def user_seconds(trial: RawTrial) -> dict[str, float]:
    """The ledger of the run phase, user-seconds: `think`, `response`, `pending` (begun, never completed), `total` =
    users x duration. What is missing is the generator's own lag; it has no sampling noise."""
    run = trial.run
    users = trial.users
    return {
        "think": clipped_s(trial.thinks["start_s"].to_numpy(), trial.thinks["end_s"].to_numpy(), run),
        "response": clipped_s(trial.interactions["start_s"].to_numpy(), trial.interactions["t_s"].to_numpy(), run),
        "pending": clipped_s((users["end_s"] - users["pending_s"]).to_numpy(), users["end_s"].to_numpy(), run),
        "total": trial.manifest.users_real * (run[1] - run[0]),
    }


@check("G1", "User-seconds that nothing accounts for", "generator_lag", thinkers=True)
def unaccounted(trial: RawTrial) -> Finding:
    ledger = user_seconds(trial)
    share = 100 * (1 - (ledger["think"] + ledger["response"] + ledger["pending"]) / ledger["total"])
    detail = (
        f"{share:.2f} % of {ledger['total']:.0f} user-seconds were neither thinking ({ledger['think']:.0f} s) nor "
        f"waiting ({ledger['response'] + ledger['pending']:.0f} s): the generator lagged or counted twice"
    )
    finding = exact(abs(share), UNACCOUNTED_PCT, "pct", detail, trial.manifest.users_real)
    return Finding(finding.outcome, share, UNACCOUNTED_PCT, "pct", finding.n, None, detail)


def _overshoot_ms(trial: RawTrial, statistic: Callable[[np.ndarray], float], least: int) -> np.ndarray:
    """actual - drawn, ms, of the client with the largest `statistic`, so that a client that lags does not hide among
    others. Clients count if at least `least` of their thinks ended in the run; if there is none, all clients count
    together."""
    thinks, (start, end) = trial.thinks, trial.run
    inside = thinks[(thinks["end_s"] >= start) & (thinks["end_s"] < end)]
    late = inside["actual_ms"] - inside["drawn_ms"]
    each = [values.to_numpy() for _, values in late.groupby(inside["client"]) if len(values) >= least]
    return max(each, key=statistic) if each else late.to_numpy()


@check("G2", "Think times: mean of actual - drawn", "generator_lag", thinkers=True)
def overshoot(trial: RawTrial) -> Finding:
    late = _overshoot_ms(trial, np.mean, 2)
    if len(late) < 2:
        return undecidable(f"{len(late)} thinks ended in the run phase", n=len(late))
    mean, error = float(late.mean()), float(late.std(ddof=1) / np.sqrt(len(late)))
    limit = OVERSHOOT_SHARE * 1000 * trial.manifest.think_time_s
    return sampled(mean, limit, error, "ms", f"thinks lasted {mean:.1f} ms longer than drawn", len(late))


@check("G2.p99", "Think times: 99th percentile of actual - drawn", "generator_lag", thinkers=True)
def overshoot_tail(trial: RawTrial) -> Finding:
    late = _overshoot_ms(trial, lambda values: float(np.percentile(values, 99)), 100)
    if len(late) < 100:
        return undecidable(f"{len(late)} thinks ended in the run phase, 100 are needed", n=len(late), required=False)
    tail = float(np.percentile(late, 99))
    return exact(tail, OVERSHOOT_P99_MS, "ms", f"1 % of the thinks were more than {tail:.0f} ms too long", len(late))


def _client_cpu(trial: RawTrial, metric: str) -> tuple[float, str, int, np.ndarray]:
    """1-s means of a CPU metric of the busiest client (by 95th percentile): p95, name, n, all values."""
    worst: tuple[float, str, int, np.ndarray] = (float("nan"), "", 0, np.array([]))
    start, end = trial.run
    for name in trial.clients:
        frame, _ = trial.samples_of(name, trial.cpu_collector)
        frame = frame[(frame["metric"] == metric) & (frame["t_s"] >= start) & (frame["t_s"] < end)].dropna()
        seconds = frame.groupby(np.floor(frame["t_s"] - start))["value"].mean().to_numpy()
        p95 = float(np.percentile(seconds, 95)) if len(seconds) else float("nan")
        if len(worst[3]) == 0 or p95 > worst[0]:
            worst = (p95, name, len(seconds), seconds)
    return worst


@check("G3", "Client CPU, 95th percentile of 1-s means", "generator_saturated")
def client_busy(trial: RawTrial) -> Finding:
    p95, name, n, _ = _client_cpu(trial, "utilization_pct")
    return exact(p95, CLIENT_BUSY_PCT, "pct", f"{name} used {p95:.0f} % of its capacity", n)


@check("G3.thread", "Busiest thread of the load generator, 95th percentile of 1-s means", "generator_saturated")
def thread_busy(trial: RawTrial) -> Finding:
    """A generator whose work is done by one thread makes users wait when one core is full, on a machine of many."""
    if not any(trial.path(f"clients/{c}/driver_cpu.csv") for c in trial.clients):
        return undecidable("CPU of the load generator's threads was not recorded", required=False)
    seen = trial.of_clients("driver_cpu.csv", driver_cpu)
    start, end = trial.run
    seen = seen[(seen["t_s"] > start) & (seen["t_s"] <= end)].dropna(subset="busiest_pct")
    if seen.empty:
        return undecidable("no sample of the load generator's threads in the run", n=0)
    p95 = seen.groupby("client")["busiest_pct"].quantile(0.95)
    name = str(p95.idxmax())
    of_it = seen[seen["client"] == name]
    thread = of_it.loc[of_it["busiest_pct"].idxmax(), "thread"]
    cores = of_it["cores"].mean()
    text = f"{name}: {thread} used {p95[name]:.0f} % of one core; the generator used {cores:.2f} cores in all"
    return exact(float(p95[name]), CLIENT_BUSY_PCT, "pct", text, len(of_it))


@check("G3.throttled", "Client stopped by its quota", "generator_saturated")
def client_throttled(trial: RawTrial) -> Finding:
    shares = []
    for name in trial.clients:
        node = trial.nodes.get(name)
        if node is not None and node.cpu_cores:
            _, _, _, seconds = _client_cpu(trial, "throttled_pct")
            shares.append(float(seconds.mean()) if len(seconds) else float("nan"))
    if not shares:
        return Finding(Outcome.PASS, 0.0, CLIENT_THROTTLED_PCT, "pct", detail="the clients have no quota")
    return exact(max(shares), CLIENT_THROTTLED_PCT, "pct", f"throttled in {max(shares):.1f} % of the periods")


@check("G3.gc", "Client stopped by its JVM's garbage collector, share of the run", "generator_saturated")
def client_pauses(trial: RawTrial) -> Finding:
    """Fails beyond 1 % of the run, or for one pause of more than 200 ms: it would be measured as response time."""
    if not (trial.jvm_logged or trial.wrote("gc.log") or trial.wrote("ntier.properties")):
        return not_applicable("the load is made by another program than JMeter, which left no log of a JVM")
    start, end = trial.run
    worst, name, longest, n = 0.0, "", 0.0, 0
    for client in trial.clients:
        pauses = gc_pauses(trial.required(f"clients/{client}/gc.log"))
        ms = pauses.loc[pauses["t_s"].between(start, end), "pause_ms"]
        share, n = ms.sum() / 10 / (end - start), n + len(ms)
        longest = max(longest, ms.max() if len(ms) else 0.0)
        if share >= worst:
            worst, name = share, client
    text = f"{name}: {worst:.2f} % of the run, the longest {longest:.0f} ms"
    if longest > GC_LONGEST_MS:
        return Finding(Outcome.FAIL, longest, GC_LONGEST_MS, "ms", n, None, text)
    return exact(worst, GC_PCT, "pct", text, n)


@check("G4", "Users that lived through the whole run", "users_missing", thinkers=True)
def users_alive(trial: RawTrial) -> Finding:
    """In a trial from above also: that those who were to leave were there, all at once, and were gone when the run
    began. Else the run has other users than the manifest says, or the system never had as many before it."""
    users, (start, end) = trial.users, trial.run
    alive = int(((users["start_s"] <= start) & (users["end_s"] >= end)).sum())
    planned = trial.manifest.users_real
    outcome, text = Outcome.PASS if alive == planned else Outcome.FAIL, f"{alive} of {planned} users, whole run"
    leavers = trial.manifest.leavers
    if not leavers or outcome is Outcome.FAIL:
        return Finding(outcome, alive, planned, "users", len(users), None, text)
    gone = users[users["end_s"] <= start]
    stayed = len(users) - alive - len(gone)
    first_s = gone["end_s"].min()
    together = int(((users["start_s"] <= first_s) & (users["end_s"] >= first_s)).sum())
    text += f"; {len(gone)} of {leavers} left before it, and {together} were there when the first one left"
    if stayed:
        text += f"; {counted(stayed, 'user')} who should have left stayed on"
        return Finding(Outcome.FAIL, alive, planned, "users", len(users), None, text, reason="users_stayed")
    there = len(gone) == leavers and together == planned + leavers
    return Finding(Outcome.PASS if there else Outcome.FAIL, alive, planned, "users", len(users), None, text)


@check("G5", "Drawn think times follow the truncated exponential", "think_distribution", required=False, thinkers=True)
def think_distribution(trial: RawTrial) -> Finding:
    """Only thinks that began before the end of the run: later ones are cut off, so only short ones would be
    complete."""
    drawn = trial.thinks.loc[trial.thinks["start_s"] < trial.run[1], "drawn_ms"].to_numpy()
    if len(drawn) < THINKS_N:
        return undecidable(f"{len(drawn)} thinks, {THINKS_N} are needed; pooled over the sweep", n=len(drawn))
    mean = 1000 * trial.manifest.think_time_s
    p = float(stats.kstest(drawn, "expon", args=(0, mean)).pvalue)
    outcome = Outcome.PASS if p > THINKS_P else Outcome.FAIL
    text = f"mean of the drawn {drawn.mean():.0f} ms, Kolmogorov-Smirnov p = {p:.3g}"
    return Finding(outcome, p, THINKS_P, "p", len(drawn), None, text)


def _left_waiting(trial: RawTrial) -> int:
    """Interactions under way at the end of a run in whose last STANDSTILL_S nothing was completed. A slow system
    answers now and then; users wait for one that hangs to the end, and no time-out of theirs tells."""
    end = trial.run[1]
    if end - trial.run_interactions["t_s"].max() < STANDSTILL_S:
        return 0
    beats = trial.progress[trial.progress["t_s"] <= end]
    return int(beats.groupby("client")["in_flight"].last().sum())


@check("E1", "Interactions that failed, whole run", "errors")
def errors(trial: RawTrial) -> Finding:
    run = trial.run_interactions
    n, wrong = len(run), int((~run["ok"]).sum())
    if n == 0:
        return Finding(Outcome.FAIL, 100.0, ERRORS_PCT, "pct", 0, None, "nothing was completed in the run phase")
    codes = run.loc[~run["ok"], "code"].value_counts().head(3)
    seen = "; ".join(f"{count} x {code or 'no code'}" for code, count in codes.items())
    waiting = _left_waiting(trial)
    if waiting:
        seen = "; ".join(filter(None, [seen, f"{waiting} x still waiting when nothing was answered any more"]))
    n, wrong = n + waiting, wrong + waiting
    share = wrong / n
    error = np.sqrt(max(share * (1 - share), 1 / n) / n)
    return sampled(100 * share, ERRORS_PCT, 100 * error, "pct", f"{wrong} of {n} failed" + f" ({seen})" * bool(seen), n)


@check("E1.window", f"Interactions that failed, worst {WINDOW_S:.0f} s", "errors")
def errors_window(trial: RawTrial) -> Finding:
    run, start = trial.run_interactions, trial.run[0]
    if run.empty:
        return undecidable("nothing was completed in the run phase")
    part = np.floor((run["t_s"] - start) / WINDOW_S)
    total = run.groupby(part)["ok"].size()
    wrong = total - run.groupby(part)["ok"].sum()
    worst = (wrong / total).idxmax()
    n, k = int(total[worst]), int(wrong[worst])
    text = f"{k} of {n} failed between second {worst * WINDOW_S:.0f} and {(worst + 1) * WINDOW_S:.0f}"
    finding = sampled(100 * k / n, ERRORS_WINDOW_PCT, 100 * np.sqrt(k) / n, "pct", text, n)
    if finding.outcome is Outcome.UNDECIDABLE:  # a few errors in a window of a few interactions; E1 judges their number
        return Finding(Outcome.UNDECIDABLE, finding.value, finding.limit, "pct", n, finding.standard_error, text, False)
    return finding


@check("E2", "Sampled pages with wrong content", "wrong_content")
def content(trial: RawTrial) -> Finding:
    """Over all phases. Fewer than 200 pages cannot show that nothing is wrong: the check is then undecidable and not
    required, since E1 still guards against errors."""
    counts = trial.progress[["content_checked", "content_wrong"]]
    if counts.isna().all(axis=None):
        return undecidable("not collected: the driver checks no content", n=0, required=None if trial.strict else False)
    last = trial.progress.groupby("client")[["content_checked", "content_wrong"]].max().sum()
    checked, wrong = int(last["content_checked"]), int(last["content_wrong"])
    text = f"{wrong} of {checked} sampled pages had wrong content"
    if wrong:
        return Finding(Outcome.FAIL, wrong, 0, "pages", checked, None, text)
    if checked < CONTENT_N:
        return Finding(
            Outcome.UNDECIDABLE, 0, 0, "pages", checked, None, f"{text}; {CONTENT_N} are needed", required=False
        )
    return Finding(Outcome.PASS, 0, 0, "pages", checked, None, text)
