"""What requests queue for, as SimPy events: stations of several servers, pools, locks.

SimPy's own Resource costs three events and two objects a visit; these cost one event (the end of the service) or none
(a place that is free), which makes a case four times as fast. Order of service: first come first served within a
priority, not preemptive."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from simpy import Environment
from simpy.events import NORMAL, Event


class Log:
    """When requests came, were taken, and left (in order of time); `sojourn`: seconds from coming to leaving.
    `seized`: (begin, end) of pauses in which all servers were taken."""

    def __init__(self) -> None:
        self.came: list[float] = []
        self.began: list[float] = []
        self.left: list[float] = []
        self.sojourn: list[float] = []
        self.seized: list[tuple[float, float]] = []


class Station:
    """`servers` that work at speed `factor` (relief) x `rate` (1, less while something else has a share). `pace`:
    factor of the length of a service in each second of the simulation; `falls`: see Part.

    A relief is more capacity, not a shorter service: the server is free again after work / factor, and `residual` of
    the work is then spent without it. So a relief takes away waiting only, as more cores or replicas do."""

    def __init__(self, env: Environment, servers: int, factor: float, log: Log | None) -> None:
        self.env, self.factor, self.log = env, factor, log
        self.free = self.servers = servers
        self.residual = 1 - 1 / factor
        self.rate = 1.0
        self.pace: list[float] | None = None
        self.falls = 0.0
        self.stopped = False
        self.queues: tuple[deque[Event], deque[Event]] = (deque(), deque())
        self.every, self.pause_s, self.until_pause, self.pending_pause = 0, 0.0, 0, False
        self.busy_s = 0.0

    def pauses(self, every: int, pause_s: float) -> None:
        """After `every` services all servers stop together for `pause_s` (at full speed): a garbage collection."""
        self.every = self.until_pause = every
        self.pause_s = pause_s

    def serve(self, work: float, urgent: bool = False) -> Event:
        """An event at the end of the service."""
        event = Event(self.env)
        event.callbacks.append(self._end)
        event.work = work
        event.came = self.env._now
        if self.log is not None:
            self.log.came.append(event.came)
        if self.free and not self.stopped:
            self._begin(event)
        else:
            self.queues[0 if urgent else 1].append(event)
        return event

    def _begin(self, event: Event) -> None:
        self.free -= 1
        length = event.work / (self.factor * self.rate)
        if self.pace is not None:
            length *= self.pace[int(self.env._now)]
        if self.falls:
            length *= 1 + self.falls * len(self.queues[1])
        self.busy_s += length
        event._ok, event._value = True, None
        self.env.schedule(event, NORMAL, length)
        if self.log is not None:
            self.log.began.append(self.env._now)

    def _end(self, event: Event) -> None:
        self.free += 1
        if self.log is not None:
            now = self.env._now
            self.log.left.append(now)
            self.log.sojourn.append(now - event.came)
        if self.every:
            self.until_pause -= 1
            if self.until_pause <= 0 and not self.pending_pause:
                self.pending_pause = self.stopped = True
        if self.pending_pause and self.free == self.servers:
            self._pause()
        elif not self.stopped:
            self.go_on()

    def _pause(self) -> None:
        self.pending_pause = False
        length = self.pause_s / (self.factor * self.rate)
        self.busy_s += length * self.servers
        if self.log is not None:
            self.log.seized.append((self.env._now, self.env._now + length))
        event = Event(self.env)
        event._ok, event._value = True, None
        event.callbacks.append(self._resumed)
        self.env.schedule(event, NORMAL, length)

    def _resumed(self, _: Event) -> None:
        self.until_pause = self.every
        self.stopped = False
        self.go_on()

    def go_on(self) -> None:
        """Takes those that wait, as far as servers are free."""
        urgent, others = self.queues
        while self.free and not self.stopped and (urgent or others):
            self._begin(urgent.popleft() if urgent else others.popleft())


class Places:
    """Places that are held: a pool (many) or a lock (one). `stale`: places that must be re-made by who gets them."""

    def __init__(self, env: Environment, size: int, factor: float, log: Log | None) -> None:
        self.env, self.log = env, log
        self.factor, self.residual = factor, 1 - 1 / factor
        self.free = self.size = size
        self.queue: deque[Event] = deque()
        self.stale = 0
        self.waited_s = 0.0

    def take(self, write: bool = True) -> Event | None:
        """None if there is a place, else an event at which there is."""
        if self.log is not None:
            self.log.came.append(self.env._now)
        if self.free:
            self.free -= 1
            if self.log is not None:
                self.log.began.append(self.env._now)
            return None
        event = Event(self.env)
        event.came = self.env._now
        self.queue.append(event)
        return event

    def give(self, write: bool = True) -> None:
        if self.log is not None:
            self.log.left.append(self.env._now)
        if self.queue:
            event = self.queue.popleft()
            self.waited_s += self.env._now - event.came
            if self.log is not None:
                self.log.began.append(self.env._now)
            event.succeed()
        else:
            self.free += 1


class SharedLock:
    """Readers together or one writer, in order of arrival."""

    def __init__(self, env: Environment, factor: float) -> None:
        self.env, self.factor, self.residual = env, factor, 1 - 1 / factor
        self.readers, self.writing = 0, False
        self.queue: deque[tuple[Event, bool, float]] = deque()
        self.waited_s = 0.0

    def _fits(self, write: bool) -> bool:
        return not self.writing and (self.readers == 0 or not write)

    def _enter(self, write: bool) -> None:
        if write:
            self.writing = True
        else:
            self.readers += 1

    def take(self, write: bool) -> Event | None:
        if not self.queue and self._fits(write):
            self._enter(write)
            return None
        event = Event(self.env)
        self.queue.append((event, write, self.env._now))
        return event

    def give(self, write: bool) -> None:
        if write:
            self.writing = False
        else:
            self.readers -= 1
        while self.queue and self._fits(self.queue[0][1]):
            event, wants, came = self.queue.popleft()
            self.waited_s += self.env._now - came
            self._enter(wants)
            event.succeed()


def competitor(env: Environment, station: Station, share: float, switches: tuple[float, ...]):
    """Something else has `share` of the servers' time between odd and even switches. A service that has begun keeps
    its speed."""
    on = False
    for before, after in pairwise((0.0, *switches)):
        yield env.timeout(after - before)
        on = not on
        station.rate = 1 - share if on else 1.0


def standstill(env: Environment, station: Station, switches: tuple[float, ...]):
    """No service begins between odd and even switches; a relief shortens the stop."""
    for begin, end in zip(switches[::2], switches[1::2], strict=False):
        yield env.timeout(max(0.0, begin - env.now))
        station.stopped = True
        yield env.timeout((end - begin) / station.stop_factor)
        station.stopped = station.pending_pause
        station.go_on()


def batch_job(env: Environment, station: Station, period_s: float, total_s: float, piece_s: float, first_s: float):
    """`total_s` of work in pieces, one after the other, every `period_s`: a backup, a checkpoint."""
    yield env.timeout(first_s)
    while True:
        begun = env.now
        left = total_s
        while left > 0:
            yield station.serve(min(piece_s, left))
            left -= piece_s
        yield env.timeout(max(0.0, begun + period_s - env.now))
