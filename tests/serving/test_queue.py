"""Fairness and bounds of the queue."""

from queue import Queue
from threading import Thread

import pytest

from t2t_jax.serving.queue import FairQueue, Job, Kind, QueueFullError

KIND = Kind(("en", "de"))
OTHER = Kind(("de", "en"))


def job(client, count, kind=KIND):
    return Job(client, kind, [f"{client}{n}" for n in range(count)], None)


def filled(capacity, *jobs):
    queue = FairQueue(capacity)
    for one in jobs:
        queue.put(one)
    return queue


def take(queue, most):
    return [one.sentences[number] for one, number in queue.take(lambda kind: most)]


def test_a_huge_request_does_not_starve_others():
    queue = filled(100, job("a", 50), job("b", 9))
    assert take(queue, 5) == ["a0", "b0", "a1", "b1", "a2"]
    queue.put(job("c", 9))
    assert "c0" in take(queue, 3)


def test_short_requests_are_taken_by_themselves_beside_a_long_one():
    queue, taken = FairQueue(100), Queue()

    def work():
        while found := queue.take_short():
            taken.put([one.sentences[number] for one, number in found])

    thread = Thread(target=work, daemon=True)
    thread.start()
    queue.put(job("b", 2))
    assert take(queue, 5) == ["b0", "b1"]  # nothing long is translated
    for one in (job("a", 50), job("b", 2), job("c", 1)):
        queue.put(one)
    assert taken.empty()
    assert take(queue, 2) == ["a0", "a1"]
    assert taken.get(timeout=60) == ["b0", "c0", "b1"]
    queue.close()
    thread.join(60)
    assert not thread.is_alive()


def test_more_short_requests_than_are_taken_at_once_take_turns_with_long_ones():
    queue = filled(100, job("a", 50), *(job(f"c{n}", 1) for n in range(9)))
    assert take(queue, 3) == ["a0", "c00", "c10"]


def test_requests_of_one_client_take_turns_and_get_no_more_than_one():
    queue = filled(100, *(job("a", 3) for _ in range(7)), job("b", 3))
    assert take(queue, 6) == ["a0", "b0", "a0", "b1", "a0", "b2"]


def test_a_group_has_one_kind_and_the_next_one_has_the_other():
    queue = filled(100, job("a", 4), job("b", 4, OTHER), job("c", 1))
    wanted = [["a0", "c0", "a1"], ["b0", "b1", "b2"], ["a2", "a3"]]
    assert [take(queue, 3) for _ in range(3)] == wanted


def test_each_sentence_is_taken_once():
    queue, taken = filled(1000, *(job(f"c{n % 3}", n) for n in range(1, 23))), []
    while queue.waiting:
        taken += queue.take(lambda kind: 7)
    assert len(taken) == len(set(taken)) == sum(range(1, 23))


def test_a_client_leaves_free_places_to_others():
    queue = filled(16, *(job("a", 2) for _ in range(4)))
    with pytest.raises(QueueFullError):
        queue.put(job("a", 1))
    for client, size in (("b", 4), ("c", 2), ("d", 1)):
        queue.put(job(client, size))
        with pytest.raises(QueueFullError):
            queue.put(job(client, 1))
    assert queue.waiting == 15


def test_a_request_of_several_kinds_may_take_all_places():
    queue = FairQueue(10)
    queue.put(job("a", 5), job("a", 5, OTHER))
    assert queue.waiting == 10


def test_a_cancelled_request_is_not_translated():
    one = job("a", 4)
    queue = filled(9, one, job("b", 2))
    take(queue, 2)
    queue.cancel(one)
    queue.cancel(one)
    assert queue.waiting == 1
    assert take(queue, 9) == ["b1"]


def test_a_closed_queue_is_emptied_and_then_ends():
    queue = filled(9, job("a", 2))
    queue.close()
    with pytest.raises(QueueFullError):
        queue.put(job("b", 1))
    assert take(queue, 9) == ["a0", "a1"]
    assert take(queue, 9) == []
