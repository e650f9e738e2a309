"""The reference driver with one fault, the parameter `fault`: what tests of the contract must notice."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "drivers"))
from http_driver import Driver

folder = Path(sys.argv[1])
told = json.loads((folder / "driver.json").read_text())
if told["parameters"]["fault"] == "ignores_leaving" and told.pop("leaving", None):
    (folder / "driver.json").write_text(json.dumps(told))
driver = Driver(folder)
fault, entry = driver.parameters["fault"], driver.entry


def request() -> None:
    line = http.client.HTTPConnection(entry["addresses"][0], entry["port"])
    line.request("GET", "/")
    line.getresponse().read()


if fault == "never_ready":
    print("waiting for a database that is not there", flush=True)
    time.sleep(600)
elif fault == "early":
    request()
elif fault == "shared_draws":
    driver.told["seed"] = f"{driver.told['seed']}.{driver.told['client']}"
elif fault == "no_seed":
    driver.told["seed"] = 0
elif fault == "child":
    subprocess.Popen(["sleep", "600"], start_new_session=True)
elif fault == "columns":
    driver.results.seek(0)
    driver.results.write("time,label,ok\n")
elif fault == "silent":
    driver.beats = lambda: asyncio.sleep(0, driver.beat())
elif fault == "too_many":

    def more_completed() -> None:
        completed = driver.started + 5 if driver.started else 0
        driver.progress.write(f"{time.time():.3f},1,{driver.started},{completed},0,0,nan\n")
        driver.progress.flush()

    driver.beat = more_completed
elif fault == "flood":

    async def flood(worker: int, start_s: float) -> None:
        await asyncio.sleep(start_s - time.time())
        while True:
            print("so much to say " * 1000, flush=True)
            await asyncio.sleep(0)

    driver.life = flood
elif fault == "dies":

    async def die(worker: int, start_s: float) -> None:
        await asyncio.sleep(start_s + 1 - time.time())
        print("out of cheese", flush=True)
        os._exit(3)

    driver.life = die
elif fault == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = lambda *_: None
elif fault == "begins_late":
    begin = driver.life

    async def late(worker: int, start_s: float) -> None:
        await asyncio.sleep(2.5)
        await begin(worker, start_s)

    driver.life = late
elif fault == "ends_late":
    driver.told["phases"]["ramp_down_s"] += 600
elif fault == "own_amount":
    driver.number = 8  # interactions of its own
elif fault != "ignores_leaving":
    sys.exit(f"unknown fault {fault!r}")
asyncio.run(driver.run())
