"""What a search may hold is bounded by the memory there is, before it is allocated.

Seen to fail: without the check of `warm_up`. Without `fit` in `source_batches` a search
of these tests takes many minutes.
"""

import jax
import pytest

from t2t_jax.decoding.engine import memory
from t2t_jax.decoding.engine.device_rows import devices_of
from t2t_jax.errors import ConfigError
from tests.decoding.models import recurrent
from tests.decoding.words import V, sentences, translator

MODEL = jax.device_put(recurrent(7, V, eos_bias=1.0), jax.devices()[0])
LARGE = {"beam_size": 17, "max_extra_tokens": 500, "tokens_per_batch": 40_000}


def rows_of(given, **changes):
    lines = sentences(100)
    shapes = []
    search = given._search

    def counted(source_BxS, *arguments, **options):
        shapes.append(source_BxS.shape)
        return search(source_BxS, *arguments, **options)

    object.__setattr__(given, "_search", counted)
    return given.translate(lines), shapes


def test_batches_are_cut_to_the_memory_there_is(monkeypatch):
    found, shapes = rows_of(translator(MODEL, **LARGE))
    given = translator(MODEL, **LARGE)
    each = memory._row_bytes(MODEL, given.config, 16)
    monkeypatch.setattr(memory, "host_memory", lambda: 4 * int(2.5 * each))
    few, cut = rows_of(given)
    assert {rows for rows, _ in cut} == {2} != {rows for rows, _ in shapes}
    assert few == found


def test_a_line_that_does_not_fit_is_refused_with_the_numbers_and_the_keys():
    stranger = translator(
        MODEL, beam_size=1_000, max_extra_tokens=100_000, tokens_per_batch=2_000_000
    )
    mesh = devices_of(MODEL)
    each = memory._row_bytes(MODEL, stranger.config, 16)
    assert each > 1_000 * 100_000 * 4 * 4
    message = (
        "decoding.beam_size=1,000 .* up to 100,016 tokens .*max_extra_tokens=100,000.* "
        "GiB.* Lower config.decoding.beam_size or"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "host_memory", lambda: 3 * each)
        for act in (lambda: stranger.translate(["der Hund"]), stranger.warm_up):
            with pytest.raises(ConfigError, match=message):
                act()
        patched.setattr(memory, "host_memory", lambda: 4 * each)
        fits = memory.rows_that_fit(
            MODEL, stranger.config, rows=3, length=16, mesh=mesh
        )
        assert fits == 1
