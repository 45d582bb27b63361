"""Batches that do not fit the memory of a device, on one that only says so.

Seen to fail: without the condition of `halve_batches` for JAX or that for Python;
without the end of halving; with halves of all rows, whatever the devices, or of two
shapes; where the others are left whole; where either kind of error is not caught; where
the search goes on in the handler of the error (what did not fit is kept); and without
`popleft`.
"""

import dataclasses
import gc
import logging
import threading
import time
import weakref

import jax
import numpy as np
import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import SourceBatch
from t2t_jax.decoding.engine.run_batches import halve_batches, run_batches
from t2t_jax.decoding.text import translator as translator_module
from t2t_jax.errors import ConfigError
from tests.decoding.models import recurrent
from tests.decoding.words import V, sentences, translator

FULL = "RESOURCE_EXHAUSTED: Out of memory allocating 9000 bytes.\nMore of it."
SAID = "RESOURCE_EXHAUSTED: Out of memory allocating 9000 bytes"
# 4 rows of 16 subwords, as tokens_per_batch of the words' translator has it.
LINES = sentences(19)


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


def one_by_one():
    return dataclasses.replace(translator(), max_concurrent=1)


@pytest.mark.parametrize(
    "error", [None, MemoryError(), jax.errors.JaxRuntimeError(f"Compiling: {FULL}")]
)
def test_what_does_not_fit_goes_on_in_halves(monkeypatch, caplog, error):
    memory = Memory(monkeypatch, 1, error, begin=1)
    with caplog.at_level(logging.WARNING):
        assert one_by_one().translate(LINES) == LINES
    # The second batch is refused twice, and all the others are of the same memory.
    assert memory.shapes == [(4, 16)] * 2 + [(2, 16)] + [(1, 16)] * 15
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(" of 16")[0] for line in told] == [
        "Out of device memory for 4 lines",
        "Out of device memory for 2 lines",
    ]
    assert "Set config.decoding.tokens_per_batch below 84 to start so." in told[0]


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


def test_two_at_once_go_on_in_halves_where_neither_fits(monkeypatch):
    memory = Memory(monkeypatch, 1)
    assert translator().translate(LINES) == LINES
    assert memory.shapes[-19:] == [(1, 16)] * 19


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


def test_a_line_that_does_not_fit_alone_says_what_to_lower(monkeypatch):
    Memory(monkeypatch, 0, begin=2)
    found = one_by_one().iter_translations(LINES)
    longest = sorted(LINES, key=lambda line: -len(line.split()))
    done = [next(found)[1].text for _ in range(8)]
    assert sorted(done, key=longest.index) == longest[:8]
    with pytest.raises(ConfigError) as raised:
        next(found)
    assert str(raised.value) == (
        "Out of device memory for a single line of 16 subwords with "
        f"decoding.beam_size=3: {SAID}.\n"
        "Lower config.decoding.beam_size or config.decoding.max_source_length, or end "
        "other programs on the device."
    )


def test_where_samples_are_drawn_their_number_is_what_to_lower(monkeypatch):
    Memory(monkeypatch, 0, MemoryError())
    with pytest.raises(ConfigError, match=r"n_best=2: MemoryError\.\nLower"):
        translator(sample=True, n_best=2).translate(["der Hund"])


def test_another_error_of_jax_is_none_of_memory(monkeypatch):
    Memory(monkeypatch, 0, jax.errors.JaxRuntimeError("INTERNAL: a mistake"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: a mistake"):
        translator().translate(LINES)


def test_what_did_not_fit_is_let_go_before_the_halves(monkeypatch):
    held = []

    class Array(np.ndarray):
        """One that can be watched."""

    def fill(*found, **how):
        gc.collect()
        assert [one() for one in held] == [None] * len(held)
        array = np.zeros(9).view(Array)
        held.append(weakref.ref(array))
        raise MemoryError

    monkeypatch.setattr(translator_module, "chunked_search", fill)
    with pytest.raises(ConfigError):
        one_by_one().translate(LINES[:3])
    assert len(held) == 3
    held.clear()
    batches = [batch(2, 2), batch(2, 2)]
    with pytest.raises(ConfigError):
        list(
            run_batches(
                fill,
                batches,
                compile_shape=None,
                cache_key="full",
                config=DecodingConfig(),
                devices=1,
            )
        )
    assert len(held) == 3  # beside another, by itself, and half of it


def batch(rows, sentences):
    source_BxS = np.zeros((rows, 8), np.int32)
    source_BxS[:sentences, 0] = range(5, 5 + sentences)
    return SourceBatch(source_BxS, tuple(range(40, 40 + sentences)))


@pytest.mark.parametrize(
    ("rows", "sentences", "devices", "halves"),
    [
        (8, 8, 1, [4, 4]),
        (5, 5, 1, [3, 2]),
        (8, 3, 1, [3]),
        (9, 8, 3, [6, 2]),
        (6, 6, 3, [3, 3]),
        (6, 2, 3, [2]),
    ],
)
def test_halves_are_of_one_shape_and_hold_every_sentence(
    rows, sentences, devices, halves
):
    error = MemoryError()
    found = halve_batches(
        [batch(rows, sentences), batch(devices, 1)],
        error,
        config=DecodingConfig(),
        devices=devices,
    )
    *parts, single = found
    assert [len(part.indices) for part in parts] == halves
    assert [i for part in parts for i in part.indices] == [*range(40, 40 + sentences)]
    for part in parts:
        assert len(part.source_BxS) == devices * -(-rows // (2 * devices))
        said = part.source_BxS[:, 0].tolist()
        assert said[: len(part.indices)] == [i - 35 for i in part.indices]
        assert not any(said[len(part.indices) :])
    assert single.source_BxS.shape == (devices, 8)
