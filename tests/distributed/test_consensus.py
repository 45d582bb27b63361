from t2t_jax.distributed.consensus import all_reduce_min, broadcast_from_first
from t2t_jax.distributed.processes import SINGLE_PROCESS


class Told:
    """Processes that keep what is told, and of which this is one."""

    def __init__(self, index, told):
        self.index, self.count, self.told = index, 2, told

    @property
    def is_first(self):
        return self.index == 0

    def publish(self, name, text):
        self.told[name] = text

    def receive(self, name):
        return self.told[name]


def test_the_first_process_decides_for_all():
    told = {}
    assert broadcast_from_first(Told(0, told), "time at 100", "yes") == "yes"
    assert broadcast_from_first(Told(1, told), "time at 100", "no") == "yes"


def test_one_process_decides_for_itself():
    assert broadcast_from_first(SINGLE_PROCESS, "time at 100", "no") == "no"


def test_the_least_of_all_numbers_is_everybody_s():
    told = {"memory/1": "3"}
    assert all_reduce_min(Told(0, told), "memory", 5) == 3
    assert all_reduce_min(Told(1, told), "memory", 3) == 3
    assert told == {"memory/0": "5", "memory/1": "3", "memory": "3"}
    assert all_reduce_min(SINGLE_PROCESS, "memory", 5) == 5
