"""Translates the sentences of all requests, in common batches.

One thread translates two large batches at a time, which take seconds. Beside those of
long requests another one translates short requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from t2t_jax.decoding.engine.batching import max_batch_rows
from t2t_jax.serving.languages import Languages
from t2t_jax.serving.queue import FairQueue, Job, Kind, Taken

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translator import Translator

# As in a stream: batches of 1, 8, 64 rows and of the largest number, so that requests
# of any size share a few compiled programs.
_ROW_GROWTH = 8
# Two batches are decoded at a time. With details only one small one, since each number
# of rows and length is another program for the scores.
_BATCHES = 2
_DETAILED_ROWS = 16

# Details, rows, words. What is compiled in advance, besides what requests need.
_WARM_UPS = (
    *((False, 1, 6), (True, 1, 6), (False, 8, 6), (False, 1, 20), (False, 8, 20)),
    (True, 8, 6),
)
# UserError is a ValueError; JAX raises RuntimeError.
_ERRORS = (ValueError, ArithmeticError, RuntimeError, MemoryError)

_LOGGER = logging.getLogger(__name__)


class TranslationWorker:
    """Takes sentences from the queue, and delivers their translations.

    Attributes:
      queue: of the sentences of all requests.
      counts: of `sentences`, `tokens`, `groups` and `failures` so far.
      error: what ended the threads; None while they work.

    Raises:
      UserError: a model cannot translate as it is configured.
    """

    def __init__(self, languages: Languages, *, capacity: int):
        self.queue = FairQueue(capacity)
        self.counts: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._languages = languages
        self._rate = 1.0  # sentences a second
        self._translators: dict[tuple[int, bool, bool], Translator] = {}
        self._warm_ups: deque[tuple[Kind, list[str]]] = deque()
        self._first_warm_ups = 0
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        for pair in languages.models:
            self._translator(Kind(pair))

    def submit(self, *jobs: Job) -> None:
        """Queues a request.

        Raises:
          QueueFullError: there is no space for its sentences.
        """
        self.queue.put(*jobs)
        self._start()

    def warm_up(self) -> None:
        """Compiles the usual programs; returns at once.

        The first of each model before any request, the others while none waits.
        """
        pairs = {id(model): pair for pair, model in self._languages.models.items()}
        for details, rows, words in _WARM_UPS:
            for pair in pairs.values():
                kind = Kind(pair, several=details, details=details)
                self._warm_ups.append((kind, ["a " * words] * rows))
        self._first_warm_ups = len(pairs)
        self._start()

    def close(self, *, seconds: float = 5.0) -> bool:
        """Translates what waits, and ends the threads.

        Returns:
          Whether they have ended; not if one compiles for longer than this.
        """
        self.queue.close()
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def seconds_waiting(self) -> float:
        """The estimated seconds until what waits is translated."""
        return self.queue.waiting / self._rate

    @property
    def is_alive(self) -> bool:
        """Whether requests are answered."""
        return self.error is None and not self.queue.is_closed

    @property
    def is_ready(self) -> bool:
        """Whether the first programs of all models are compiled."""
        return self.is_alive and not self._first_warm_ups

    def _start(self) -> None:
        with self._lock:
            for short in (False, True)[len(self._threads) :]:
                thread = threading.Thread(target=self._work, args=(short,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self, short: bool) -> None:
        taken: Taken = []
        take = self.queue.take_short if short else partial(self.queue.take, self._most)
        try:
            if not short:
                self._work_on_warm_ups()
            while taken := take():
                start = time.perf_counter()
                self._translate(taken)
                self._count(groups=1)
                if not short:
                    self._rate = len(taken) / (time.perf_counter() - start + 1e-3)
                    self._work_on_warm_ups()
        except BaseException as error:
            self.error = error
            self.queue.close()
            _LOGGER.critical("The server cannot translate any more.", exc_info=error)
            _deliver(taken, [error] * len(taken))
            while taken := self.queue.take(lambda kind: self.queue.capacity):
                _deliver(taken, [error] * len(taken))

    def _work_on_warm_ups(self) -> None:
        while self._warm_ups and not self.queue.is_closed:
            if self.queue.waiting and not self._first_warm_ups:
                break
            kind, lines = self._warm_ups.popleft()
            try:
                self._translator(kind).translations(
                    lines, **self._languages.arguments(kind.pair)
                )
            except _ERRORS as error:  # raised again by a request
                _LOGGER.info("Warm-up failed: %s", first_line(error))
            self._first_warm_ups = max(0, self._first_warm_ups - 1)

    def _count(self, **counts: int) -> None:
        with self._lock:
            self.counts.update(counts)

    def _most(self, kind: Kind) -> int:
        """Returns the most sentences of a kind that are translated together."""
        if kind.details:
            return _DETAILED_ROWS
        return _BATCHES * max_batch_rows(self._languages.models[kind.pair].decoding)

    def _translate(self, taken: Taken) -> None:
        """Translates sentences of one kind, and delivers batch by batch.

        If one of them fails, those that were not delivered are translated one by one.
        """
        lines = [job.sentences[number] for job, number in taken]
        done: set[int] = set()
        try:
            kind = taken[0][0].kind
            for index, translation in self._translator(kind).iter_translations(
                lines, **self._languages.arguments(kind.pair)
            ):
                self._count(sentences=1, tokens=translation.num_tokens)
                done.add(index)
                _deliver([taken[index]], [translation])
        except _ERRORS as error:
            left = [one for index, one in enumerate(taken) if index not in done]
            _LOGGER.warning("%d sentences failed: %s", len(left), first_line(error))
            if len(taken) == 1:
                self._count(failures=len(left))
                _deliver(left, [error] * len(left))
                return
            for one in left:
                self._translate([one])

    def _translator(self, kind: Kind) -> Translator:
        """Returns the translator of a kind; the best translation is that of all."""
        model = self._languages.models[kind.pair]
        if (key := (id(model), kind.several, kind.details)) not in self._translators:
            self._translators[key] = model.translator(
                sample=False,
                segment="lines",  # requests say how their text is split
                n_best=model.decoding.beam_size if kind.several else 1,
                token_scores=kind.details,
                attention=kind.details,
            ).with_row_growth(_ROW_GROWTH)
        return self._translators[key]


def _deliver(taken: Taken, found: list[Any]) -> None:
    for (job, number), translation in zip(taken, found, strict=True):
        job.deliver(number, translation)


def first_line(error: BaseException) -> str:
    """Returns the first line of a message, which holds no text of a request."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]
