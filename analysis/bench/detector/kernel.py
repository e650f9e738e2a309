"""Event loop of a closed network: users think, then walk through steps (choose a node, take a place in a pool, be
served, give the place back). Compiled; `network.py` prepares its arrays.

A station shares its capacity among its jobs (processor sharing in virtual time): min(n, width) cores, and with a quota
only until quota x period core-seconds of the running period are used; then it waits for the next period, as the
kernel's bandwidth control does. A competitor takes a share of it while it is on; a stall stops it altogether.

The helpers are inlined by numba: a call would count references of two dozen arrays, half of the time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

PERIOD_S = 0.01
"""Period of the quotas, as on the local target."""
CELL_S = 0.01
"""Resolution of what is recorded."""
THINK_CAP = 10.0
"""Longest think in means: 70 s of 7 s (TPC-W)."""
TINY = 1e-9
SERVE, TAKE, GIVE, CHOOSE, LEAVE = range(5)
ROUND_ROBIN, RANDOM, LEAST_PENDING = range(3)


class Stations(NamedTuple):
    """Fixed arrays (S,); `switches` (S, K) are the times at which the competitor goes on and off, padded with inf."""

    width: np.ndarray
    speed: np.ndarray
    quota: np.ndarray
    competitor: np.ndarray
    stalls: np.ndarray
    switches: np.ndarray


class State(NamedTuple):
    """What changes, (S,): virtual time, last update, core-seconds left, end of the period, throttled, competitor on,
    number of the next switch, next event. Heaps (S + 1, users): jobs by finish; the last row holds the thinking."""

    virtual: np.ndarray
    last: np.ndarray
    budget: np.ndarray
    period_end: np.ndarray
    throttled: np.ndarray
    on: np.ndarray
    switch: np.ndarray
    following: np.ndarray
    key: np.ndarray
    who: np.ndarray
    size: np.ndarray


class Record(NamedTuple):
    """Per station or pool and cell of CELL_S: core-seconds used, seconds busy, periods throttled, jobs at the cell's
    end, jobs done; places taken and requests waiting at the cell's end."""

    used: np.ndarray
    busy: np.ndarray
    throttled: np.ndarray
    jobs: np.ndarray
    done: np.ndarray
    taken: np.ndarray
    waiting: np.ndarray


class Walk(NamedTuple):
    """Steps (K,): operation, first station or pool (or tier of CHOOSE, LEAVE), tier whose chosen node counts (-1: one
    for all), coefficient of variation of the work; `work` (C, K) mean core-seconds; `share` (C,) cumulated; `paced`
    (K,) whether the machine's speed changes the work."""

    operation: np.ndarray
    target: np.ndarray
    tier: np.ndarray
    variation: np.ndarray
    work: np.ndarray
    share: np.ndarray
    paced: np.ndarray


@njit(cache=True, inline="always")
def push(state, row, key, who):
    i = state.size[row]
    state.size[row] += 1
    keys, whos = state.key[row], state.who[row]
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i], whos[i] = keys[parent], whos[parent]
        i = parent
    keys[i], whos[i] = key, who


@njit(cache=True, inline="always")
def pop(state, row):
    keys, whos = state.key[row], state.who[row]
    first = whos[0]
    state.size[row] -= 1
    n = state.size[row]
    key, who, i = keys[n], whos[n], 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], whos[i] = keys[child], whos[child]
        i = child
    keys[i], whos[i] = key, who
    return first


@njit(cache=True, inline="always")
def rates(fixed, state, s):
    """Cores in use and progress of each job per second."""
    n = state.size[s]
    if state.throttled[s] or (state.on[s] and fixed.stalls[s]):
        return 0.0, 0.0
    cores = min(float(n), fixed.width[s])
    each = cores / n if n > 0 else 0.0
    if state.on[s]:
        return fixed.width[s], each * (1 - fixed.competitor[s]) * fixed.speed[s]
    return cores, each * fixed.speed[s]


@njit(cache=True, inline="always")
def advance(fixed, state, record, s, now):
    """Brings station `s` to the time `now`."""
    begin = state.last[s]
    state.last[s] = now
    if now <= begin:
        return
    cores, each = rates(fixed, state, s)
    if cores == 0.0:
        return
    state.virtual[s] += each * (now - begin)
    state.budget[s] -= cores * (now - begin)
    cell = int(begin / CELL_S)
    while begin < now and cell < record.used.shape[1]:
        until = min(now, (cell + 1) * CELL_S)
        record.used[s, cell] += cores * (until - begin)
        record.busy[s, cell] += until - begin
        begin = until
        cell += 1


@njit(cache=True, inline="always")
def renew(fixed, state, s, now):
    """A new period of the quota, if the last one is over."""
    if now < state.period_end[s] - TINY:
        return
    passed = int((now - state.period_end[s]) / PERIOD_S + 1e-6) + 1
    state.period_end[s] += passed * PERIOD_S
    state.budget[s] = fixed.quota[s] * PERIOD_S
    state.throttled[s] = False


@njit(cache=True, inline="always")
def schedule(fixed, state, s, now):
    """When station `s` needs attention next."""
    event = fixed.switches[s, state.switch[s]]
    n = state.size[s]
    limited = np.isfinite(fixed.quota[s])
    if limited and (n > 0 or state.on[s]):
        event = min(event, state.period_end[s])
    cores, each = rates(fixed, state, s)
    if n > 0 and each > 0:
        event = min(event, now + max(0.0, state.key[s, 0] - state.virtual[s]) / each)
    if limited and cores > 0:
        event = min(event, now + max(0.0, state.budget[s]) / cores)
    state.following[s] = event


@njit(cache=True, inline="always")
def attend(fixed, state, record, s, now, ready):
    """What happens at station `s` now; users whose service ends go to `ready`. Returns how many."""
    advance(fixed, state, record, s, now)
    while fixed.switches[s, state.switch[s]] <= now:
        state.on[s] = not state.on[s]
        state.switch[s] += 1
    limited = np.isfinite(fixed.quota[s])
    if limited:
        renew(fixed, state, s, now)
    n = 0
    cell = min(int(now / CELL_S), record.done.shape[1] - 1)
    while state.size[s] > 0 and state.key[s, 0] <= state.virtual[s] + TINY:
        ready[n] = pop(state, s)
        record.done[s, cell] += 1
        n += 1
    if state.size[s] == 0:
        state.virtual[s] = 0.0
    if limited and not state.throttled[s] and state.budget[s] <= TINY and (state.size[s] > 0 or state.on[s]):
        state.throttled[s] = True
        record.throttled[s, cell] += 1
    schedule(fixed, state, s, now)
    return n


@njit(cache=True, inline="always")
def draw(mean, variation):
    """Work of one visit: constant, gamma, exponential, or log-normal (heavy) by its coefficient of variation."""
    if variation <= 0 or mean <= 0:
        return mean
    if variation == 1:
        return np.random.exponential(mean)
    if variation < 1:
        return np.random.gamma(1 / variation**2, mean * variation**2)
    sigma2 = np.log(1 + variation**2)
    return mean * np.random.lognormal(-sigma2 / 2, np.sqrt(sigma2))


@njit(cache=True, inline="always")
def choose(policy, weights, pending, turn, tier):
    """Node of a tier for one request; ties of LEAST_PENDING go to the lowest number, as C-JDBC's do."""
    n = 0
    while n < weights.shape[1] and weights[tier, n] > 0:
        n += 1
    if policy[tier] == ROUND_ROBIN:
        turn[tier] += 1
        return turn[tier] % n
    if policy[tier] == RANDOM:
        point = np.random.random() * weights[tier, :n].sum()
        for i in range(n):
            point -= weights[tier, i]
            if point < 0:
                return i
        return n - 1
    best = 0
    for i in range(1, n):
        if pending[tier, i] < pending[tier, best]:
            best = i
    return best


@njit(cache=True, inline="always")
def snapshot(state, record, taken, waiting, filled, now):
    """Gauges of all cells that ended by now."""
    cells = min(int(now / CELL_S), record.jobs.shape[1])
    for cell in range(filled, cells):
        for s in range(record.jobs.shape[0]):
            record.jobs[s, cell] = state.size[s]
        for p in range(taken.shape[0]):
            record.taken[p, cell] = taken[p]
            record.waiting[p, cell] = waiting[p]
    return max(filled, cells)


@njit(cache=True)
def run(seed, starts, leaves, pace, end_s, think_s, walk, fixed, state, record, places, policy, weights, finished):
    """Simulates until `end_s`; fills `record` and `finished` (begun, response, class) and returns their number. A user
    comes at `starts` and goes at `leaves` (s, one per user), or with the answer after that. `pace`: factor of the work
    on CPUs in each second."""
    np.random.seed(seed)
    users = starts.shape[0]
    stations, pools, steps = fixed.width.shape[0], places.shape[0], walk.operation.shape[0]
    thinking = stations
    step, kind, begun = np.zeros(users, np.int64), np.zeros(users, np.int64), np.zeros(users)
    node = np.zeros((users, weights.shape[0]), np.int64)
    pending, turn = np.zeros(weights.shape, np.int64), np.zeros(weights.shape[0], np.int64)
    taken, waiting = np.zeros(pools, np.int64), np.zeros(pools, np.int64)
    queue, head = np.zeros((pools, users), np.int64), np.zeros(pools, np.int64)
    ready, todo = np.zeros(users, np.int64), np.zeros(users, np.int64)
    for user in range(users):
        push(state, thinking, min(starts[user] + np.random.exponential(think_s), leaves[user]), user)
    for s in range(stations):
        schedule(fixed, state, s, 0.0)
    completed = filled = 0
    while completed < finished.shape[0]:
        s = np.argmin(state.following)
        now, begins = state.following[s], False
        if state.size[thinking] > 0 and state.key[thinking, 0] < now:
            now, begins = state.key[thinking, 0], True
        filled = snapshot(state, record, taken, waiting, filled, min(now, end_s))
        if now >= end_s:
            break
        if begins:
            user = pop(state, thinking)
            step[user], begun[user] = 0, now
            kind[user] = np.searchsorted(walk.share, np.random.random())
            todo[0], left = user, 1 if now < leaves[user] else 0
        else:
            left = attend(fixed, state, record, s, now, ready)
            for i in range(left):
                todo[i] = ready[i]
                step[ready[i]] += 1
        while left > 0:
            left -= 1
            user = todo[left]
            while True:
                k = step[user]
                if k == steps:
                    finished[completed, 0], finished[completed, 1] = begun[user], now - begun[user]
                    finished[completed, 2] = kind[user]
                    completed += 1
                    think = min(np.random.exponential(think_s), THINK_CAP * think_s)
                    push(state, thinking, min(now + think, max(now, leaves[user])), user)
                    break
                tier = walk.tier[k]
                target = walk.target[k] + (node[user, tier] if tier >= 0 else 0)
                operation = walk.operation[k]
                if operation == SERVE:
                    work = draw(walk.work[kind[user], k], walk.variation[k])
                    if walk.paced[k]:
                        work *= pace[int(now)]
                    if work > 0:
                        advance(fixed, state, record, target, now)
                        if np.isfinite(fixed.quota[target]):
                            renew(fixed, state, target, now)
                        push(state, target, state.virtual[target] + work, user)
                        schedule(fixed, state, target, now)
                        break
                elif operation == TAKE:
                    if taken[target] >= places[target]:
                        queue[target, (head[target] + waiting[target]) % users] = user
                        waiting[target] += 1
                        break
                    taken[target] += 1
                elif operation == GIVE:
                    if waiting[target] > 0:
                        freed = queue[target, head[target] % users]
                        head[target] += 1
                        waiting[target] -= 1
                        step[freed] += 1
                        todo[left] = freed
                        left += 1
                    else:
                        taken[target] -= 1
                elif operation == CHOOSE:
                    node[user, walk.target[k]] = choose(policy, weights, pending, turn, walk.target[k])
                    pending[walk.target[k], node[user, walk.target[k]]] += 1
                else:
                    pending[walk.target[k], node[user, walk.target[k]]] -= 1
                step[user] += 1
            if completed >= finished.shape[0]:
                break
    return completed
