"""Processes that are the threads of a test, and meet without a network."""

import threading

from t2t_jax.distributed.processes import Processes

TOLD = {}
CHANGED = threading.Condition()


class Threads(Processes):
    """Processes that are threads, and tell one another through a dict."""

    def publish(self, name, text):
        with CHANGED:
            assert name not in TOLD, f"{name} is told twice, which JAX refuses"
            TOLD[name] = text
            CHANGED.notify_all()

    def receive(self, name, *, seconds=None):
        with CHANGED:
            assert CHANGED.wait_for(lambda: name in TOLD, timeout=20)
            return TOLD[name]

    def sync_exit_codes(self, name, code):
        self.publish(f"{name}/{self.index}", str(code))
        codes = [int(self.receive(f"{name}/{index}")) for index in range(self.count)]
        return next(filter(None, codes), 0)


def on_all(act, count=3):
    """Lists what `act(processes)` returns, or raises, in each of the processes."""
    TOLD.clear()
    found = [None] * count

    def enter(index):
        try:
            found[index] = act(Threads(index=index, count=count))
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=enter, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
