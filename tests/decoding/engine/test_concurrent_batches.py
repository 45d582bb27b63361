"""Two batches at once: the same results in the same order, and no third.

Seen to fail: with three begun at once, with what is not ready begun beside others,
where items are taken away before their result is there, where an error does not wait
for what else is under way, and where whoever leaves early does.
"""

import threading
import time
from collections import deque

import pytest

from t2t_jax.decoding.engine.run_batches import map_concurrently


class Work:
    """Notes how many are at it at once, and lets each take a moment.

    Later items are quicker, so order is no accident.
    """

    def __init__(self, *, fails_at=None, seconds=lambda item: 0.02 / (1 + item)):
        self.most, self.threads, self.ended = 0, set(), []
        self._now, self._lock = 0, threading.Lock()
        self._fails_at, self._seconds = fails_at, seconds

    def __call__(self, item):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.threads.add(threading.get_ident())
        time.sleep(self._seconds(item))
        with self._lock:
            self._now -= 1
            self.ended.append(item)
        if item == self._fails_at:
            raise MemoryError(item)
        return 10 * item


def all_of(work, items, *, is_ready=lambda _: True, **given):
    return list(map_concurrently(work, deque(items), is_ready=is_ready, **given))


def test_results_come_in_the_order_of_the_items_two_at_a_time():
    work = Work()
    assert all_of(work, range(7)) == [(n, 10 * n) for n in range(7)]
    assert work.most == 2


@pytest.mark.parametrize(("items", "max_concurrent"), [([3], 2), ([1, 2, 3], 1)])
def test_nothing_to_overlap_is_done_by_the_caller(items, max_concurrent):
    work = Work()
    assert all_of(work, items, max_concurrent=max_concurrent) == [
        (n, 10 * n) for n in items
    ]
    assert work.threads == {threading.get_ident()}


def test_what_is_not_ready_goes_alone():
    work = Work()
    assert len(all_of(work, range(5), is_ready=lambda _: False)) == 5
    assert work.most == 1


def test_what_has_failed_is_the_first_that_is_left_and_nothing_else_runs():
    work = Work(fails_at=2, seconds=lambda item: 0.3 if item == 3 else 0.01)
    left = deque(range(6))
    found = map_concurrently(work, left, is_ready=lambda _: True)
    assert [next(found), next(found)] == [(0, 0), (1, 10)]
    with pytest.raises(MemoryError):
        next(found)
    assert list(left) == [2, 3, 4, 5]
    assert 3 in work.ended  # It was under way, and has been waited for.


def test_whoever_leaves_early_waits_for_nothing():
    may_end = threading.Event()

    def slow(item):
        if item:
            may_end.wait(120)
        return item

    found = map_concurrently(slow, deque(range(4)), is_ready=lambda _: True)
    assert next(found) == (0, 0)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 60
    may_end.set()
