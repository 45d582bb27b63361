"""A bounded queue of sentences that is fair between clients and their requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

Deliver: TypeAlias = Callable[[int, Any], None]
"""Takes the number of a sentence, and its translation or an error, in any thread."""


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

    def __init__(
        self, client: str, kind: Kind, sentences: Sequence[str], deliver: Deliver
    ):
        self.client, self.kind = client, kind
        self.sentences, self.deliver = sentences, deliver
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

    So a request of a thousand sentences delays a request of one by one batch only.
    A client beyond its first request may have as many sentences waiting as there are
    free places, so that no client takes the places of all. Thread-safe.

    Args:
      capacity: most sentences that may wait.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.waiting = 0
        self._clients: OrderedDict[str, OrderedDict[int, Job]] = OrderedDict()
        self._changed = threading.Condition()
        self.is_closed = False

    def put(self, *jobs: Job) -> None:
        """Adds the sentences of a request of one client.

        Raises:
          QueueFullError: they exceed the capacity or the share of the client, or the
            queue is closed.
        """
        with self._changed:
            waiting = sum(job.waiting for job in jobs)
            own = sum(
                other.waiting
                for client in {job.client for job in jobs}
                for other in self._clients.get(client, OrderedDict()).values()
            )
            if self.is_closed or own + waiting > self.capacity - self.waiting:
                raise QueueFullError
            for job in filter(lambda job: job.waiting, jobs):
                self._clients.setdefault(job.client, OrderedDict())[id(job)] = job
            self.waiting += waiting
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Removes the sentences of a request that were not taken yet."""
        with self._changed:
            if id(job) in self._clients.get(job.client, ()):
                self.waiting -= job.waiting
                self._remove(job)
            job.is_cancelled = True

    def take(self, most: Callable[[Kind], int]) -> Taken:
        """Waits for sentences, and takes some of one kind.

        Args:
          most: returns how many sentences of a kind are taken at most.

        Returns:
          [] when the queue is closed and empty.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.waiting or self.is_closed)
            jobs = (job for jobs in self._clients.values() for job in jobs.values())
            kind = next((job.kind for job in jobs), None)
            limit = most(kind) if kind is not None else 0
            taken: Taken = []
            while len(taken) < limit and self._take_turn(kind, taken, limit):
                pass
            return taken

    def close(self) -> None:
        """Refuses further requests; what waits can still be taken."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _take_turn(self, kind: Kind | None, taken: Taken, most: int) -> bool:
        """Takes a sentence of this kind from each client; False if there are none."""
        before = len(taken)
        for client in list(self._clients):
            if len(taken) == most:
                break
            jobs = self._clients[client]
            job = next((job for job in jobs.values() if job.kind == kind), None)
            if job is None:
                continue
            taken.append((job, job.next))
            job.next += 1
            self.waiting -= 1
            # To the end of both rows; those that were passed over stay in front.
            jobs.move_to_end(id(job))
            self._clients.move_to_end(client)
            if not job.waiting:
                self._remove(job)
        return len(taken) > before

    def _remove(self, job: Job) -> None:
        jobs = self._clients[job.client]
        del jobs[id(job)]
        if not jobs:
            del self._clients[job.client]
