import threading
import time
from itertools import count

import pytest

from t2t_jax.data.batching.pipeline import Prefetcher


def test_items_come_in_order_and_end():
    with Prefetcher(iter(range(13)), depth=2) as items:
        assert list(items) == list(range(13))


def test_work_goes_ahead_but_not_far():
    made = []

    def work():
        for number in count():
            made.append(number)
            yield number

    with Prefetcher(work(), depth=3) as items:
        assert next(items) == 0
        deadline = time.monotonic() + 5
        while len(made) < 5 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02)
        # one consumed, three in the queue, one waiting for room
        assert len(made) == 5


def test_what_goes_wrong_is_raised_in_turn_and_once():
    def work():
        yield 1
        raise ArithmeticError("broken")

    with Prefetcher(work()) as items:
        assert next(items) == 1
        with pytest.raises(ArithmeticError, match="broken"):
            next(items)
        assert list(items) == []


def test_closing_ends_the_thread_at_once():
    before = threading.active_count()
    items = Prefetcher(count(), depth=2)
    assert next(items) == 0
    start = time.monotonic()
    items.close()
    assert time.monotonic() - start < 1
    assert threading.active_count() == before
    assert list(items) == []
    items.close()
