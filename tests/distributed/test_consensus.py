import threading

from t2t_jax.distributed.consensus import all_reduce_min, barrier, broadcast_from_first
from t2t_jax.distributed.processes import SINGLE_PROCESS
from tests.distributed.coordinator import Coordinator


class Told:
    """One of two processes with a dict as key-value store."""

    def __init__(self, index, published):
        self.index, self.count, self.published = index, 2, published

    @property
    def is_first(self):
        return self.index == 0

    def publish(self, name, text):
        self.published[name] = text

    def receive(self, name):
        return self.published[name]


def test_the_first_process_decides_for_all():
    published = {}
    assert broadcast_from_first(Told(0, published), "time at 100", "yes") == "yes"
    assert broadcast_from_first(Told(1, published), "time at 100", "no") == "yes"


def test_one_process_decides_for_itself():
    assert broadcast_from_first(SINGLE_PROCESS, "time at 100", "no") == "no"


def test_all_processes_get_the_smallest_number():
    published = {"memory/1": "3"}
    assert all_reduce_min(Told(0, published), "memory", 5) == 3
    assert all_reduce_min(Told(1, published), "memory", 3) == 3
    assert published == {"memory/0": "5", "memory/1": "3", "memory": "3"}
    assert all_reduce_min(SINGLE_PROCESS, "memory", 5) == 5


def test_a_barrier_waits_for_every_process():
    coordinator = Coordinator()
    passed = []

    def wait(index):
        barrier(Waiting(index, coordinator), "compiled 1")
        passed.append(index)

    first = threading.Thread(target=wait, args=[0])
    first.start()
    first.join(0.2)
    assert passed == []
    wait(1)
    first.join()
    assert sorted(passed) == [0, 1]


class Waiting(Told):
    """One of two processes, which waits for what it receives."""

    def publish(self, name, text):
        self.published.key_value_set(name, text)

    def receive(self, name):
        return self.published.blocking_key_value_get(name, 10_000)
