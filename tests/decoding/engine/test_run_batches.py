"""Batches in flight, compiled ahead, within memory, and in halves without.

Seen to fail: with three begun at once, with what is not ready begun beside others,
where items are taken away before their result is there, and where an error does not
wait for what else is under way; without the condition of `halve_batches` for JAX or
that for Python, without the end of halving, with halves of two shapes or of all rows,
whatever the devices; where the search goes on in the handler of the error (what did not
fit is kept); and without `fit`, with which a search here takes many minutes.
"""

import dataclasses
import gc
import logging
import threading
import time
import weakref
from collections import deque

import jax
import numpy as np
import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine import run_batches as module
from t2t_jax.decoding.engine.batching import SourceBatch
from t2t_jax.decoding.engine.run_batches import (
    halve_batches,
    map_concurrently,
    rows_that_fit,
    run_batches,
)
from t2t_jax.decoding.text import translator as translator_module
from t2t_jax.errors import ConfigError
from tests.decoding.models import recurrent
from tests.decoding.words import V, sentences, translator
from tests.waiting import wait_for

FULL = "RESOURCE_EXHAUSTED: Out of memory allocating 9000 bytes.\nMore of it."
# 4 rows of 16 subwords, as tokens_per_batch of the words' translator has it.
LINES = sentences(19)
SHAPES = [(4, 64), (9, 32), (4, 64), (9, 32), (19, 16)]


# --- two at once


class Work:
    """Notes how many are at it at once; later items are quicker, or as told."""

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


@pytest.mark.parametrize(
    ("items", "is_ready", "given", "most"),
    [(7, True, {}, 2), (5, False, {}, 1), (3, True, {"max_concurrent": 1}, 1)],
)
def test_results_come_in_order_two_at_a_time_if_they_may(items, is_ready, given, most):
    work = Work()
    left = deque(range(items))
    found = map_concurrently(work, left, is_ready=lambda _: is_ready, **given)
    assert list(found) == [(n, 10 * n) for n in range(items)]
    assert work.most == most
    assert (work.threads == {threading.get_ident()}) == bool(given)


def test_what_has_failed_is_the_first_that_is_left_and_nothing_else_runs():
    work = Work(fails_at=2, seconds=lambda item: 0.3 if item == 3 else 0.1)
    left = deque(range(6))
    found = map_concurrently(work, left, is_ready=lambda _: True)
    assert [next(found), next(found)] == [(0, 0), (1, 10)]
    with pytest.raises(MemoryError):
        next(found)
    assert list(left) == [2, 3, 4, 5]
    assert 3 in work.ended  # It was under way, and has been waited for.


def test_whoever_leaves_early_waits_for_nothing():
    may_end = threading.Event()
    found = map_concurrently(
        lambda item: item and may_end.wait(120),
        deque(range(4)),
        is_ready=lambda _: True,
    )
    assert next(found) == (0, 0)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 60
    may_end.set()


# --- compiled ahead


def batch(rows, sentences, length=8):
    source_BxS = np.zeros((rows, length), np.int32)
    source_BxS[:sentences, 0] = range(5, 5 + sentences)
    return SourceBatch(source_BxS, tuple(range(40, 40 + sentences)))


def test_every_later_shape_is_compiled_once_and_the_first_is_left_to_the_caller():
    made, given = [], {"config": DecodingConfig(), "devices": 1, "cache_key": "once"}
    batches = [batch(rows, 2, length) for rows, length in SHAPES]

    def make(shape):
        made.append(shape)
        if shape == (9, 32):
            raise MemoryError  # It is left to who needs it.

    def run(one):
        wait_for(lambda: len(made) >= 2)
        return one.source_BxS.shape

    for _ in range(2):
        assert list(run_batches(run, batches, compile_shape=make, **given)) == SHAPES
    assert made == [(9, 32), (19, 16)]


# --- in halves


class Memory:
    """Stands before the search: a batch of more rows than fit is refused."""

    def __init__(self, monkeypatch, rows, error=None, begin=0):
        self.rows, self.begin, self.shapes = rows, begin, []
        self.error = error or jax.errors.JaxRuntimeError(FULL)
        self._search = translator_module.chunked_search
        monkeypatch.setattr(translator_module, "chunked_search", self)

    def __call__(self, model, source_BxS, **how):
        if not source_BxS.any():  # Compiled ahead, in a thread.
            return None
        self.shapes.append(source_BxS.shape)
        if len(source_BxS) > self.rows and len(self.shapes) > self.begin:
            raise self.error
        return self._search(model, source_BxS, **how)


@pytest.mark.parametrize("error", [None, MemoryError()])
def test_what_does_not_fit_goes_on_in_halves(monkeypatch, caplog, error):
    memory = Memory(monkeypatch, 1, error, begin=1)
    one_by_one = dataclasses.replace(translator(), max_concurrent=1)
    with caplog.at_level(logging.WARNING):
        assert one_by_one.translate(LINES) == LINES
    # The second batch is refused twice, and all the others are of the same memory.
    assert memory.shapes == [(4, 16)] * 2 + [(2, 16)] + [(1, 16)] * 15
    told = [record.getMessage() for record in caplog.records]
    assert ["4 lines" in told[0], "2 lines" in told[1]] == [True, True]
    assert "config.decoding.tokens_per_batch below 84" in told[0]


def test_two_that_do_not_fit_together_go_one_by_one_and_whole(monkeypatch, caplog):
    able = translator()
    able.translate(LINES)  # Compiled, so that two begin at once.
    lock, shapes = threading.Lock(), []
    search = translator_module.chunked_search

    def alone(model, source_BxS, **how):
        shapes.append(source_BxS.shape)
        if not lock.acquire(blocking=False):
            raise jax.errors.JaxRuntimeError(FULL)
        try:
            time.sleep(0.05)
            return search(model, source_BxS, **how)
        finally:
            lock.release()

    monkeypatch.setattr(translator_module, "chunked_search", alone)
    with caplog.at_level(logging.WARNING):
        assert able.translate(LINES) == LINES
    assert set(shapes) == {(4, 16)}
    assert len(shapes) > 5  # One was refused.
    assert not caplog.records


@pytest.mark.parametrize("search", [{"sample": True, "n_best": 2}, {"beam_size": 2}])
def test_the_halves_hold_what_the_whole_would(monkeypatch, search):
    able = translator(recurrent(11, V, eos_bias=1.0), **search)
    begins = ["", "der", "das Haus"] * 6 + [""]
    whole = able.translations(LINES, prefixes=begins, first=7)
    Memory(monkeypatch, 2)
    halves = able.translations(LINES, prefixes=begins, first=7)
    for one, other in zip(halves, whole, strict=True):
        texts = [[h.text for h in found.hypotheses] for found in (one, other)]
        assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("changes", "key"), [({}, "beam_size=3"), ({"sample": True}, "n_best=1")]
)
def test_a_line_that_does_not_fit_alone_says_what_to_lower(monkeypatch, changes, key):
    Memory(monkeypatch, 0)
    with pytest.raises(ConfigError, match=rf"16 subwords .*decoding\.{key}: RESOURCE_"):
        translator(**changes).translate(LINES)


def test_another_error_of_jax_is_none_of_memory(monkeypatch):
    Memory(monkeypatch, 0, jax.errors.JaxRuntimeError("INTERNAL: a mistake"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: a mistake"):
        translator().translate(LINES)


def test_what_did_not_fit_is_let_go_before_the_halves():
    held = []

    class Array(np.ndarray):
        """One that can be watched."""

    def fill(*found, **how):
        gc.collect()
        assert [one() for one in held] == [None] * len(held)
        array = np.zeros(9).view(Array)
        held.append(weakref.ref(array))
        raise MemoryError

    given = {"compile_shape": None, "config": DecodingConfig(), "devices": 1}
    gc.freeze()  # What all tests have imported is not looked at again.
    try:
        with pytest.raises(ConfigError):
            list(run_batches(fill, [batch(2, 2)] * 2, cache_key="full", **given))
    finally:
        gc.unfreeze()
    assert len(held) == 3  # beside another, by itself, and half of it


@pytest.mark.parametrize(
    ("rows", "sentences", "devices", "halves"),
    [(5, 5, 1, [3, 2]), (8, 3, 1, [3]), (9, 8, 3, [6, 2]), (6, 2, 3, [2])],
)
def test_halves_have_one_shape_and_every_sentence(rows, sentences, devices, halves):
    left = [batch(rows, sentences), batch(devices, 1)]
    given = {"config": DecodingConfig(), "devices": devices}
    *parts, single = halve_batches(left, MemoryError(), **given)
    assert [len(part.indices) for part in parts] == halves
    assert [i for part in parts for i in part.indices] == [*range(40, 40 + sentences)]
    for part in parts:
        assert len(part.source_BxS) == devices * -(-rows // (2 * devices))
        said = part.source_BxS[:, 0].tolist()
        assert said[: len(part.indices)] == [i - 35 for i in part.indices]
        assert not any(said[len(part.indices) :])
    assert single.source_BxS.shape == (devices, 8)


# --- within the memory there is

MODEL = jax.device_put(recurrent(7, V, eos_bias=1.0), jax.devices()[0])


def test_batches_are_cut_to_the_memory_there_is(monkeypatch):
    large = {"beam_size": 5, "max_extra_tokens": 30, "tokens_per_batch": 4_000}
    memory, lines = Memory(monkeypatch, 999), sentences(100)
    given = translator(MODEL, **large)
    found = given.translate(lines)
    whole = [rows for rows, _ in memory.shapes]
    each = module._row_bytes(MODEL, given.config, 16)
    monkeypatch.setattr(module, "_FEW_SLOTS", 0)
    monkeypatch.setattr(module, "host_memory", lambda: 4 * int(2.5 * each))
    assert given.translate(lines) == found
    assert {rows for rows, _ in memory.shapes[len(whole) :]} == {2} != set(whole)


def test_a_line_that_does_not_fit_is_refused_with_the_keys(monkeypatch):
    large = {"beam_size": 1_000, "max_extra_tokens": 100_000}
    stranger = translator(MODEL, tokens_per_batch=2_000_000, **large)
    each = module._row_bytes(MODEL, stranger.config, 16)
    assert each > 1_000 * 100_000 * 4 * 4
    monkeypatch.setattr(module, "host_memory", lambda: 3 * each)
    for act in (lambda: stranger.translate(["der Hund"]), stranger.warm_up):
        with pytest.raises(ConfigError, match=r"beam_size=1,000: .* up to 100,016"):
            act()
    monkeypatch.setattr(module, "host_memory", lambda: 4 * each)
    assert rows_that_fit(MODEL, stranger.config, rows=3, length=16) == 1
