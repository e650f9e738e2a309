"""The exact solution against counting all states, textbook values, a simulation, and what must always hold."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.statistics.mva import Station, solve

RUBBOS = [Station("web", 0.0007), Station("app", 0.0055, 2), Station("middleware", 0.0005), Station("db", 0.012, 9)]


def counted(stations: list[Station], think_s: float, users: int) -> float:
    """Throughput by adding up the product form over every state."""
    queues = [s for s in stations for _ in range(s.queues)]

    def constant(n: int) -> float:
        total = 0.0
        for state in itertools.product(range(n + 1), repeat=len(queues)):
            if sum(state) > n:
                continue
            weight = think_s ** (n - sum(state)) / math.factorial(n - sum(state))
            for jobs, queue in zip(state, queues, strict=True):
                rates = [min(i, queue.servers) for i in range(1, jobs + 1)]
                weight *= queue.per_queue_s**jobs / math.prod(rates)
            total += weight
        return total

    return constant(users - 1) / constant(users)


@pytest.mark.parametrize("users", [1, 2, 5, 7])
@pytest.mark.parametrize("think_s", [0.0, 0.4])
def test_as_counting_all_states(users, think_s):
    stations = [Station("a", 0.3, 2), Station("b", 0.5, 1, 2), Station("c", 0.2, 1.5)]
    assert solve(stations, think_s, users).throughput_per_s[0] == pytest.approx(counted(stations, think_s, users))


def test_textbook_example():
    """Lazowska et al. 1984, section 6.4: Z = 15 s, demands 0.605, 2.1, 1.35 s, exact solution by MVA: with one user
    R is the sum of the demands, with many X is 1 / 2.1 s."""
    stations = [Station("cpu", 0.605), Station("disk1", 2.1), Station("disk2", 1.35)]
    solution = solve(stations, 15.0, [1, 2, 3, 200])
    assert solution.response_s[0] == pytest.approx(4.055)
    # the recursion of the book by hand: R_k(N) = D_k (1 + Q_k(N - 1)), X = N / (Z + R), Q_k = X R_k
    queue, rates = np.zeros(3), []
    for n in (1, 2, 3):
        times = np.array([0.605, 2.1, 1.35]) * (1 + queue)
        rates.append(n / (15 + times.sum()))
        queue = rates[-1] * times
    assert solution.throughput_per_s[:3] == pytest.approx(rates)
    assert solution.throughput_per_s[3] == pytest.approx(1 / 2.1)


def test_machine_repair():
    """Erlang's loss-like closed form: N machines, m repairmen, one station only."""
    n, m, think, service = 6, 2, 3.0, 1.0

    def weight(k: int) -> float:
        ways = 1.0 if k <= m else math.factorial(k) / math.factorial(m) / m ** (k - m)
        return math.comb(n, k) * (service / think) ** k * ways

    weights = [weight(k) for k in range(n + 1)]
    busy = sum(min(k, m) * w for k, w in enumerate(weights)) / sum(weights)
    assert solve([Station("repair", service, m)], think, n).throughput_per_s[0] == pytest.approx(busy / service)


def test_sizes_at_which_libraries_fail():
    """Truth by plain convolution in logarithms."""
    assert solve(RUBBOS, 7.0, 13000).throughput_per_s[0] == pytest.approx(363.63636, abs=1e-4)


def test_large_systems_stay_finite():
    stations = [Station("app", 0.2, 1, 99), Station("db", 0.5, 99), Station("web", 1e-6)]
    users = [1, 1000, 20_000]
    solution = solve(stations, 7.0, users)
    assert np.isfinite(solution.throughput_per_s).all()
    assert solution.throughput_per_s[-1] == pytest.approx(198, rel=1e-4)


STATIONS = st.lists(
    st.builds(
        Station, st.just("s"), st.floats(1e-4, 2.0), st.sampled_from([1, 1.5, 2, 3, 7]), st.sampled_from([1, 2, 4])
    ),
    min_size=1,
    max_size=4,
)


def bounds(stations: list[Station], think_s: float, users: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bound of the throughput at each number of users, 1/s: asymptotic and balanced-job bounds
    (Lazowska et al., Quantitative System Performance, 1984, table 5.2).

    Below: each queue of m servers as m queues of one (its fraction left out). Above: as one server m times as fast."""
    n = np.array(users, float)
    busy = [s for s in stations if s.demand_s > 0]
    total = sum(s.demand_s for s in busy)
    if not busy or total + think_s == 0:
        raise ValueError("bounds need a station with a demand")
    slowest = max(s.demand_s / (s.queues * math.floor(s.servers)) for s in busy)
    lower = n / (think_s + total + (n - 1) * slowest / (1 + think_s / (n * total)))
    fast = sum(s.demand_s / s.servers for s in busy)
    average = fast / sum(s.queues for s in busy)
    balanced = n / (think_s + fast + (n - 1) * average / (1 + think_s / fast))
    limit = min(s.capacity_per_s for s in busy)
    return np.minimum(lower, limit), np.minimum(np.minimum(n / (think_s + total), limit), balanced)


@given(STATIONS, st.sampled_from([0.0, 0.1, 7.0]), st.integers(2, 400))
@settings(max_examples=150, deadline=None)
def test_between_the_bounds_and_growing(stations, think_s, users):
    stations = [Station(f"s{i}", s.demand_s, s.servers, s.queues) for i, s in enumerate(stations)]
    loads = sorted({1, 2, users // 2 or 1, users})
    solution = solve(stations, think_s, loads)
    low, high = bounds(stations, think_s, loads)
    assert (solution.throughput_per_s <= high * (1 + 1e-9)).all()
    assert (solution.throughput_per_s >= low * (1 - 1e-9)).all()
    assert (np.diff(solution.throughput_per_s) >= -1e-9 * solution.throughput_per_s[:-1]).all()
    assert (np.diff(solution.response_s) >= -1e-9).all()
    assert all((u <= 1 + 1e-9).all() for u in solution.utilization.values())


def simulated(policy: str, users: int, think_s: float, demand_s: float, nodes: int, seconds: float, seed: int = 3):
    """Completions per second and mean response time of a dispatcher before `nodes` servers, exponential times."""
    rng = np.random.default_rng(seed)
    waiting: list[list[float]] = [[] for _ in range(nodes)]
    events = [(float(rng.exponential(think_s)), n, -1) for n in range(users)]
    heapq.heapify(events)
    done, total, tie, turn = 0, 0.0, users, 0
    warm = 0.2 * seconds
    while events[0][0] < seconds:
        now, _, node = heapq.heappop(events)
        tie += 1
        if node < 0:  # a request comes
            pending = [len(w) for w in waiting]
            turn = (turn + 1) % nodes
            node = {"round_robin": turn, "least_pending": int(np.argmin(pending))}.get(policy, int(rng.integers(nodes)))
            waiting[node].append(now)
            if len(waiting[node]) == 1:
                heapq.heappush(events, (now + float(rng.exponential(demand_s)), tie, node))
            continue
        begun = waiting[node].pop(0)
        if now > warm:
            done, total = done + 1, total + now - begun
        heapq.heappush(events, (now + float(rng.exponential(think_s)), tie, -1))
        if waiting[node]:
            tie += 1
            heapq.heappush(events, (now + float(rng.exponential(demand_s)), tie, node))
    return done / (seconds - warm), total / done


def test_which_form_fits_which_dispatcher():
    """60 users, 4 replicas at 80 % use: random is the separate queues, least pending nearly one queue; round robin
    lies between."""
    think_s, demand_s, nodes, users = 1.0, 0.06, 4, 55
    one = solve([Station("db", demand_s, nodes)], think_s, users)
    separate = solve([Station("db", demand_s, 1, nodes)], think_s, users)
    by_policy = {
        p: simulated(p, users, think_s, demand_s, nodes, 1500) for p in ("random", "round_robin", "least_pending")
    }
    assert by_policy["random"][1] == pytest.approx(separate.response_s[0], rel=0.05)
    assert by_policy["random"][0] == pytest.approx(separate.throughput_per_s[0], rel=0.01)
    times = {p: r for p, (_, r) in by_policy.items()}
    gap = separate.response_s[0] - one.response_s[0]
    assert one.response_s[0] < times["least_pending"] < one.response_s[0] + 0.5 * gap
    assert times["least_pending"] < times["round_robin"] < separate.response_s[0]


def test_one_server_against_the_simulation():
    rate, response = simulated("random", 20, 1.0, 0.06, 1, 2000)
    exact = solve([Station("db", 0.06)], 1.0, 20)
    assert rate == pytest.approx(exact.throughput_per_s[0], rel=0.02)
    assert response == pytest.approx(exact.response_s[0], rel=0.05)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Station("db", -0.1), "station db: demand is -0.1"),
        (lambda: Station("db", 0.1, 0), "0 servers"),
        (lambda: solve(RUBBOS, 7.0, [0]), "whole numbers"),
        (lambda: solve(RUBBOS, 7.0, [1.5]), "whole numbers"),
        (lambda: solve(RUBBOS, -1.0, [1]), "think time"),
        (lambda: bounds([Station("db", 0.0)], 7.0, [1]), "a station with a demand"),
    ],
)
def test_what_is_not_allowed_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
