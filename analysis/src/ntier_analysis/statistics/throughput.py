"""Rates of a point process (completions) over a window, with intervals that hold when completions are correlated."""

from __future__ import annotations

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.values import CONFIDENCE, Interval, estimated, not_negative

BATCHES = 10
"""Batch means of 10 batches cover 94-96 % where a Poisson interval covers 66-70 % (variable demands)."""
MIN_BATCH_S = 1.0
LONG_WEIGHT = 0.8
"""Weight of the variance that batches twice as long show: it exceeds the short ones' where the correlation outlasts a
batch (queues of two equal resources wander for minutes); weighted, since the larger of two estimates is biased."""
MIN_PAIRS = 3


def variance_of_mean(batches: np.ndarray) -> float:
    """Variance of the mean of neighbouring batch means (k,), from these or from pairs of them, whichever is larger."""
    short = float(batches.var(ddof=1)) / len(batches)
    pairs = batches[: len(batches) // 2 * 2].reshape(-1, 2).mean(axis=1)
    if len(pairs) < MIN_PAIRS:
        return short
    return max(short, LONG_WEIGHT * float(pairs.var(ddof=1)) / len(pairs))


def of_batches(means: np.ndarray, n: int) -> Interval:
    """Mean of k neighbouring batch means of one trial, t(k - 1); `n` is what the batches were made of."""
    means = _checked(means)
    error = float(np.sqrt(variance_of_mean(means))) if len(means) > 1 else float("nan")
    return estimated(float(means.mean()), error, len(means) - 1, n)


def of_trials(means: np.ndarray, errors: np.ndarray | None = None, freedom: float = 0.0) -> Interval:
    """Mean of k trials +- t(k - 1) x sd / sqrt(k): the trials are the sample, whatever they differ by. What a trial
    tells of its own precision does not suffice: it lacks what differs between trials, and with that left out three
    trials whose means differ by 5-10 % cover 0.91 (bench/interval_coverage.py).

    `errors`: of each mean by its own run, with `freedom` degrees of freedom together. Two trials can agree by chance
    far better than either knows its mean (3.020 and 3.024/s, each +- 0.28). The interval is never narrower than what
    the runs' own errors give."""
    means = _checked(means)
    error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
    between = estimated(float(means.mean()), error, len(means) - 1, len(means))
    if errors is None or len(means) == 1:
        return between
    within = estimated(between.value, float(np.sqrt(np.square(errors).sum())) / len(means), freedom, len(means))
    return max(between, within, key=lambda interval: interval.half_width)


def _checked(means: np.ndarray) -> np.ndarray:
    means = np.asarray(means, dtype=float)
    if means.size == 0 or not np.isfinite(means).all():
        raise ValueError("means must be finite and at least one")
    return means


def at_load(rates: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
    """Throughput at one load: of its trials if there are several, else the only one's with its own interval. (How
    precise a trial is its upper end tells: the lower one may have been cut off at 0.)"""
    if len(rates) > 1:
        errors = (np.asarray(high) - rates) / stats.t.ppf(0.5 + CONFIDENCE / 2, BATCHES - 1)
        known = np.isfinite(errors).all()
        return not_negative(of_trials(rates, errors if known else None, (BATCHES - 1) * len(rates)))
    value, low, high = (float(v[0]) for v in (rates, low, high))
    return Interval(value, low, high, float("nan"), 1, BATCHES - 1)


def batch_rates(times: np.ndarray, start: float, end: float, batches: int = BATCHES) -> np.ndarray:
    """Events per second in `batches` equal parts of [start, end). Shape (batches,)."""
    if not end > start:
        raise ValueError(f"window {start}..{end} is empty")
    counts, _ = np.histogram(times[(times >= start) & (times < end)], bins=np.linspace(start, end, batches + 1))
    return counts * batches / (end - start)


def throughput(times: np.ndarray, start: float, end: float) -> Interval:
    """Completions per second with a 95 % interval. No interval if a batch would be shorter than `MIN_BATCH_S`."""
    n = int(((times >= start) & (times < end)).sum())
    if (end - start) / BATCHES < MIN_BATCH_S:
        return estimated(n / (end - start), float("nan"), 0, n)
    return not_negative(of_batches(batch_rates(times, start, end), n))


def dispersion(times: np.ndarray, start: float, end: float) -> float:
    """Index of dispersion of the 1-s counts: variance / mean (1 for a Poisson process); NaN below 10 s or no events.

    A +-2 % interval at 95 % needs about 9,604 x dispersion / rate seconds."""
    seconds = int(end - start)
    if seconds < 10:
        return float("nan")
    counts, _ = np.histogram(times, bins=start + np.arange(seconds + 1))
    mean = counts.mean()
    return float(counts.var(ddof=1) / mean) if mean > 0 else float("nan")


def percentile(values: np.ndarray, share: float) -> float:
    """Percentile, NaN if fewer than 10 values lie beyond it (p95 needs 200 values, p99 1,000)."""
    return float(np.percentile(values, 100 * share)) if len(values) >= required_n(share) else float("nan")


def required_n(share: float) -> int:
    """Values needed so that 10 lie beyond the percentile."""
    return int(np.ceil(round(10 / (1 - share), 6)))
