"""Processes that are the threads of a test, without a network or devices."""

import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

from t2t_jax.devices.distributed import gather
from t2t_jax.devices.distributed.processes import Processes

TOLD = {}
CHANGED = threading.Condition()
SECONDS = 20


class Threads(Processes):
    """Processes that are threads, and tell one another through a dict."""

    def publish(self, name, text):
        with CHANGED:
            assert name not in TOLD, f"{name} is told twice, which JAX refuses"
            TOLD[name] = text
            CHANGED.notify_all()

    def receive(self, name):
        with CHANGED:
            assert CHANGED.wait_for(lambda: name in TOLD, timeout=SECONDS)
            return TOLD[name]


def without_devices(monkeypatch):
    """Broadcasts and gathers strings through the dict."""
    numbers = {}

    def number_of(processes):
        return next(numbers.setdefault(processes.index, itertools.count()))

    def allgather(lines, processes):
        number = number_of(processes)
        processes.publish(f"{number}/{processes.index}", json.dumps(lines))
        ranks = range(processes.count)
        return [json.loads(processes.receive(f"{number}/{rank}")) for rank in ranks]

    def broadcast(lines, processes):
        return allgather(list(lines), processes)[0]

    monkeypatch.setattr(gather, "allgather_strings", allgather)
    monkeypatch.setattr(gather, "broadcast_strings", broadcast)


def on_all(act, count=3):
    """Lists what `act(processes)` returns, or raises, in each of the processes."""
    TOLD.clear()

    def enter(index):
        try:
            return act(Threads(index=index, count=count))
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(enter, range(count)))
