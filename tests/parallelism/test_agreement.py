from t2t_jax.parallelism.agreement import least, of_first
from t2t_jax.parallelism.distributed import ALONE


class Told:
    """Processes that keep what is told, and of which this is one."""

    def __init__(self, index, told):
        self.index, self.count, self.told = index, 2, told

    @property
    def is_first(self):
        return self.index == 0

    def tell(self, name, text):
        self.told[name] = text

    def hear(self, name):
        return self.told[name]


def test_the_first_process_decides_for_all():
    told = {}
    assert of_first(Told(0, told), "time at 100", "yes") == "yes"
    assert of_first(Told(1, told), "time at 100", "no") == "yes"


def test_one_process_decides_for_itself():
    assert of_first(ALONE, "time at 100", "no") == "no"


def test_the_least_of_all_numbers_is_everybody_s():
    told = {"memory/1": "3"}
    assert least(Told(0, told), "memory", 5) == 3
    assert least(Told(1, told), "memory", 3) == 3
    assert told == {"memory/0": "5", "memory/1": "3", "memory": "3"}
    assert least(ALONE, "memory", 5) == 5
