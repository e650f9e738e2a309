#!/usr/bin/env python3
"""A driver in some 200 lines: HTTP requests of closed, open and fixed work (docs/drivers.md is its contract).

http_driver.py DIR. Parameters: `requests`, a CSV file with the columns interaction,method,path,weight (beside this
program, or a whole path); in a path {n} is a random whole number from 1 to `n` (1000). Open load: `rate_per_s`; work:
`amount`. Each request under way has a thread. There are 1000: one more would wait here, and its time would look like
the system's, so more users on a client are refused, and an open load that gets there ends. Standard library only.
"""

import asyncio
import csv
import http.client
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MOST_THREADS = 1000
HEARTBEAT = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms\n"
RESULTS = "timeStamp,elapsed,label,responseCode,threadName,success,failureMessage,bytes,Latency,Connect\n"
THINKS, USERS = "t_start_ms,user,state,drawn_ms,actual_ms\n", "user,t_start_ms,t_end_ms,pending_ms\n"


class Driver:
    """One run in a folder, which holds driver.json. Raises ValueError, KeyError or OSError where that is wrong."""

    def __init__(self, folder):
        self.folder, self.told = folder, json.loads((folder / "driver.json").read_text())
        self.parameters, self.total = self.told["parameters"], self.told["workers_total"]
        self.entry, self.most = self.told["entry"], int(self.parameters.get("n", 1000))
        self.workers = range(self.told["first_worker"], self.told["first_worker"] + self.told["workers"])
        models = {"closed": (self.user, self.told.get("think_time_s")),
                  "open": (self.arrivals, self.parameters.get("rate_per_s")),
                  "work": (self.share, self.parameters.get("amount"))}  # fmt: skip
        self.life, self.number = models[self.told["load_model"]]
        if self.told.get("leaving"):
            raise ValueError("leaving: users of this driver stay to the end")
        if not self.workers or not self.number or self.number <= 0:
            raise ValueError("workers, and think_time_s (closed), rate_per_s (open) or amount (work) must be above 0")
        if self.told["load_model"] != "open" and len(self.workers) > MOST_THREADS:
            raise ValueError(
                f"{len(self.workers)} workers on one client; {MOST_THREADS} are allowed, so give more clients"
            )
        with (Path(__file__).parent / self.parameters["requests"]).open(newline="") as file:
            self.requests = list(csv.DictReader(file))
        self.weights = [float(request["weight"]) for request in self.requests]
        if any(None in (request["interaction"], request["method"], request["path"]) for request in self.requests):
            raise ValueError(f"requests: a line of {self.parameters['requests']} is not whole")
        if self.most < 1 or not 0 < sum(self.weights) < float("inf") or min(self.weights) < 0:
            raise ValueError("requests: weights must be 0 or more, one of them above 0, and n 1 or more")
        self.active = self.started = self.completed = self.failed = 0
        self.lately = []  # response times since the last heartbeat, ms
        self.threads = ThreadPoolExecutor(MOST_THREADS)
        self.progress, self.results = ((folder / name).open("w") for name in ("progress.csv", "interactions.jtl.csv"))
        self.progress.write(HEARTBEAT)
        self.results.write(RESULTS)
        self.lives = {}  # closed: worker -> when it came, since when it asks or thinks, think drawn (None: it asks), s
        self.thinks = (folder / "thinks.csv").open("w") if self.told["load_model"] == "closed" else None
        if self.thinks:
            self.thinks.write(THINKS)

    def stream(self, *whose):
        """Random numbers of one worker, arrival or piece of work: the same however many clients share them."""
        return random.Random(":".join(map(str, (self.told["seed"], *whose))))  # noqa: S311 (a load, not a secret)

    async def user(self, worker, start_s):
        """Closed: request, think, request; users come during the first half of the ramp-up."""
        draws, place = self.stream(worker), (worker - self.workers.start) / len(self.workers)
        await until(start_s + place * self.told["phases"]["ramp_up_s"] / 2)
        self.active += 1
        came_s = time.time()
        while True:
            self.lives[worker] = came_s, time.time(), None
            await self.interaction(worker, draws)
            drawn_s = draws.expovariate(1 / self.number)
            self.lives[worker] = came_s, time.time(), drawn_s
            await asyncio.sleep(drawn_s)
            self.thought(worker)

    def thought(self, worker):
        """The line of a think that ends now, of its own or because the run ends."""
        _, since_s, drawn_s = self.lives[worker]
        lasted_s = time.time() - since_s
        self.thinks.write(f"{1000 * since_s:.0f},{worker},think,{1000 * drawn_s:.1f},{1000 * lasted_s:.1f}\n")

    def end_lives(self):
        """users.csv: how long each user lived, and how long it has waited for an answer that it will not see."""
        with (self.folder / "users.csv").open("w") as file:
            file.write(USERS)
            for worker, (came_s, since_s, drawn_s) in self.lives.items():
                now_s = time.time()
                pending_ms = 1000 * (now_s - since_s) if drawn_s is None else 0
                file.write(f"{worker},{1000 * came_s:.0f},{1000 * now_s:.0f},{pending_ms:.0f}\n")
                if drawn_s is not None:
                    self.thought(worker)

    async def arrivals(self, worker, start_s):
        """Open: a Poisson process; those of all workers add up to the rate."""
        draws, due_s, self.active = self.stream(worker), start_s, self.active + 1
        under_way, ended = set(), []  # Python 3.9 has no TaskGroup
        for number in itertools.count():
            due_s += draws.expovariate(self.number / self.total)
            await until(due_s)
            task = asyncio.create_task(self.interaction(worker, self.stream(worker, number)))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            task.add_done_callback(ended.append)
            while ended:
                ended.pop().result()  # raises what went wrong in it

    async def share(self, worker, start_s):
        """Work: every piece whose number, divided by all workers, leaves the worker's own."""
        await until(start_s)
        self.active += 1
        for piece in range(worker, self.number, self.total):
            await self.interaction(worker, self.stream("work", piece))
        self.active -= 1

    async def interaction(self, worker, draws):
        """One request and its line. A server that does not answer is a failed interaction, not an error of ours."""
        if self.started - self.completed >= MOST_THREADS:
            raise RuntimeError(
                f"{MOST_THREADS} requests are under way, and no more can be: give more clients or less load"
            )
        request = draws.choices(self.requests, self.weights)[0]
        path = request["path"].replace("{n}", str(draws.randint(1, self.most)))
        begin_s, self.started = time.time(), self.started + 1
        asked = asyncio.get_running_loop().run_in_executor(self.threads, self.ask, worker, request["method"], path)
        code, message, size, first_ms, connect_ms = await asked
        ms, ok = 1000 * (time.time() - begin_s), code.isdigit() and int(code) < 400
        self.completed, self.failed = self.completed + 1, self.failed + (not ok)
        self.lately.append(ms)
        name = f"worker-{worker - self.workers.start + 1}"
        row = [round(1000 * begin_s), round(ms), request["interaction"], code, name, str(ok).lower(), message, size]
        csv.writer(self.results, lineterminator="\n").writerow([*row, first_ms, connect_ms])

    def ask(self, worker, method, path):
        """-> status, what went wrong, bytes, ms to the first byte and to connect; on a connection of its own."""
        address, begin_s = self.entry["addresses"][worker % len(self.entry["addresses"])], time.time()
        line = http.client.HTTPConnection(address, self.entry["port"])  # waits as long as the run lasts
        try:
            line.connect()
            connect_s = time.time() - begin_s
            line.request(method, self.entry["path"] + path, headers={"Connection": "close"})
            reply = line.getresponse()
            first_s = time.time() - begin_s
            return str(reply.status), "", len(reply.read()), round(1000 * first_s), round(1000 * connect_s)
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__, " ".join(str(error).split()), 0, 0, 0
        finally:
            line.close()

    async def run(self):
        """Heartbeat, wait for the common start, work until the end or SIGTERM."""
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        beats = asyncio.create_task(self.beats())
        while not (self.folder / "start").exists() and not stop.is_set():
            await asyncio.sleep(0.02)
        if not stop.is_set():
            start_s = int((self.folder / "start").read_text()) / 1000
            end_s = start_s + sum(self.told["phases"].values())
            work = asyncio.gather(*(self.life(worker, start_s) for worker in self.workers))
            waits = {work, asyncio.create_task(stop.wait()), asyncio.create_task(until(end_s))}
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                work.result()  # raises what went wrong in there
        beats.cancel()
        self.beat()
        if self.thinks:
            self.end_lives()
            self.thinks.close()
        os._exit(0)  # requests under way are cut off, and nobody waits for their threads

    async def beats(self):
        while True:
            self.beat()
            await asyncio.sleep(1 - time.time() % 1)

    def beat(self):
        mean = sum(self.lately) / len(self.lately) if self.lately else float("nan")
        self.lately.clear()
        in_flight = self.started - self.completed
        counts = f"{self.active},{self.started},{self.completed},{self.failed},{in_flight}"
        self.progress.write(f"{time.time():.3f},{counts},{mean:.1f}\n")
        self.progress.flush()
        self.results.flush()


async def until(epoch_s):
    await asyncio.sleep(max(0, epoch_s - time.time()))


if __name__ == "__main__":
    try:
        driver = Driver(Path(sys.argv[1]))
    except (IndexError, KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(print(f"http_driver: {type(error).__name__}: {error}", file=sys.stderr) or 2)
    try:
        asyncio.run(driver.run())
    except Exception:
        traceback.print_exc()
        os._exit(1)  # at once: a program that waits for its threads would be silent instead
