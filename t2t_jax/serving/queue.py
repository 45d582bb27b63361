"""A bounded queue of sentences that is fair between clients and their requests."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

Deliver: TypeAlias = Callable[[int, Any], None]
"""Takes the number of a sentence, and its translation or an error, in any thread."""


SHORT = 8
"""Most sentences of a short request, and of all that are taken of such at once."""


class Kind(NamedTuple):
    """What sentences must share to be translated in one batch.

    Attributes:
      pair: codes of the source and the target language.
      several: whether all hypotheses are wanted instead of the best.
      details: whether scores of tokens and attention are wanted.
    """

    pair: tuple[str, str]
    several: bool = False
    details: bool = False


class QueueFullError(Exception):
    """The queue has no space for the sentences of a request."""


class Job:
    """The sentences of one request.

    Args:
      client: whose requests share a turn, such as an address.
      deliver: called with translations as they are found.
    """

    def __init__(self, client: str, kind: Kind, sentences: list[str], deliver: Deliver):
        self.client, self.kind = client, kind
        self.sentences, self.deliver = sentences, deliver
        self.is_short = len(sentences) <= SHORT
        self.next = 0
        self.is_cancelled = False

    @property
    def waiting(self) -> int:
        """The number of sentences that were not taken yet."""
        return 0 if self.is_cancelled else len(self.sentences) - self.next


Taken: TypeAlias = list[tuple[Job, int]]
"""Jobs, and the number of a sentence of each."""


class FairQueue:
    """Hands out sentences in turns: of each client one, of its requests in turns.

    While sentences of a longer request are translated, those of short ones are taken by
    themselves too, so that a thousand sentences hardly delay one. A client beyond its
    first request may have as many sentences waiting as there are free places, so that
    no client takes the places of all. Thread-safe.

    Args:
      capacity: most sentences that may wait.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._waiting: Counter[bool] = Counter()  # sentences by `Job.is_short`
        self._is_long_taken = False
        self._clients: OrderedDict[str, OrderedDict[int, Job]] = OrderedDict()
        self._changed = threading.Condition()
        self.is_closed = False

    @property
    def waiting(self) -> int:
        """The number of sentences that wait."""
        return self._waiting.total()

    def put(self, *jobs: Job) -> None:
        """Adds the sentences of a request of one client.

        Raises:
          QueueFullError: they exceed the capacity or the share of the client, or the
            queue is closed.
        """
        with self._changed:
            waiting = sum(job.waiting for job in jobs)
            clients = {job.client for job in jobs}.intersection(self._clients)
            before = chain(*(self._clients[client].values() for client in clients))
            own = sum(other.waiting for other in before)
            if self.is_closed or own + waiting > self.capacity - self.waiting:
                raise QueueFullError
            for job in filter(lambda job: job.waiting, jobs):
                self._clients.setdefault(job.client, OrderedDict())[id(job)] = job
                self._waiting[job.is_short] += job.waiting
            self._changed.notify_all()

    def cancel(self, job: Job) -> None:
        """Removes the sentences of a request that were not taken yet."""
        with self._changed:
            if id(job) in self._clients.get(job.client, ()):
                self._waiting[job.is_short] -= job.waiting
                self._remove(job)
            job.is_cancelled = True

    def take(self, most: Callable[[Kind], int]) -> Taken:
        """Waits for sentences, and takes some of one kind.

        A few of short requests are left to `take_short` while longer ones wait.

        Args:
          most: returns how many sentences of a kind are taken at most.

        Returns:
          [] when the queue is closed and empty.
        """
        waiting = self._waiting
        with self._changed:
            self._is_long_taken = False
            self._changed.wait_for(lambda: self.waiting or self.is_closed)
            leaves = waiting[False] and waiting[True] <= SHORT
            taken = self._take(most, {False} if leaves else {False, True})
            self._is_long_taken = not all(job.is_short for job, _ in taken)
            self._changed.notify_all()
            return taken

    def take_short(self) -> Taken:
        """Waits for short requests beside what `take` took of a longer one.

        Returns:
          Up to `SHORT` sentences of one kind; [] when the queue is closed and has no
          short requests.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: (self._is_long_taken and self._waiting[True]) or self.is_closed
            )
            return self._take(lambda kind: SHORT, {True})

    def close(self) -> None:
        """Refuses further requests; what waits can still be taken."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _take(self, most: Callable[[Kind], int], sizes: set[bool]) -> Taken:
        """Takes sentences of the kind that is first, of short or longer requests."""
        jobs = (job for jobs in self._clients.values() for job in jobs.values())
        kind = next((job.kind for job in jobs if job.is_short in sizes), None)
        limit = most(kind) if kind is not None else 0
        return list(islice(self._turns(kind, sizes), limit))

    def _turns(self, kind: Kind | None, sizes: set[bool]) -> Iterator[tuple[Job, int]]:
        """Takes such sentences, of each client one in turn, while there are any."""
        took = True
        while took:
            took = False
            for client in list(self._clients):
                jobs = self._clients[client]
                fitting = (job for job in jobs.values() if job.is_short in sizes)
                job = next((job for job in fitting if job.kind == kind), None)
                if job is None:
                    continue
                took = True
                job.next += 1
                self._waiting[job.is_short] -= 1
                # To the end of both rows; those that were passed over stay in front.
                jobs.move_to_end(id(job))
                self._clients.move_to_end(client)
                if not job.waiting:
                    self._remove(job)
                yield job, job.next - 1

    def _remove(self, job: Job) -> None:
        jobs = self._clients[job.client]
        del jobs[id(job)]
        if not jobs:
            del self._clients[job.client]
