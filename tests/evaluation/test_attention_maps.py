import dataclasses

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.errors import UserError
from t2t_jax.evaluation.attention_maps import KINDS, attention_maps
from t2t_jax.model.architectures import AlignmentExtractor
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import TINY, tiny_params
from tests.reference import paper

# S = 5, T = 7; two layers of three heads.
SOURCE = np.array([5, 7, 11, 13, 2])
TARGET = np.array([1, 8, 9, 6, 10, 12, 4])


def maps_of(config=TINY, source=SOURCE, target_inputs=TARGET):
    return attention_maps(
        Transformer(config), tiny_params(config), source, target_inputs
    )


@pytest.fixture(scope="module")
def maps():
    return maps_of()


def test_every_weight_is_that_of_the_paper_s_transcription(maps, monkeypatch):
    softmax, rows = paper.softmax, []
    monkeypatch.setattr(paper, "softmax", lambda z: rows.append(softmax(z)) or rows[-1])
    params = jax.tree.map(np.asarray, tiny_params())
    paper.transformer(SOURCE.tolist(), TARGET.tolist(), params)
    found = iter(rows)  # by layer, use, position, head

    def take(length, widths):
        table = np.zeros((3, length, max(widths)))
        for position in range(length):
            for head in range(3):
                table[head, position, : widths[position]] = next(found)
        return table

    wanted = {"encoder": [take(5, [5] * 5), take(5, [5] * 5)]}
    wanted |= {"decoder": [], "cross": []}
    for _ in range(2):
        wanted["decoder"].append(take(7, range(1, 8)))
        wanted["cross"].append(take(7, [5] * 7))
    assert next(found, None) is None
    for kind in KINDS:
        assert_allclose(maps[kind], wanted[kind], atol=2e-6)  # float32, two layers


def test_an_attention_of_one_s_own_that_sows_nothing_is_named():
    class Silent(MultiHeadAttention):
        def sow(self, *args, **kwargs):
            return False

    module, params = Transformer(TINY, attention=Silent), tiny_params()
    with pytest.raises(UserError, match="Transformer: its attention sows no weights"):
        attention_maps(module, params, SOURCE, TARGET)
    with pytest.raises(UserError, match="its attention sows no weights"):
        AlignmentExtractor(module)({"params": params}, SOURCE[None], TARGET[None])


def test_the_decoder_gives_exactly_nothing_to_what_comes_later(maps):
    later = np.triu(np.ones((7, 7), bool), 1)
    assert_array_equal(maps["decoder"][..., later], 0.0)
    assert (maps["decoder"][..., ~later] > 0).all()
    assert (maps["encoder"] > 0).all()


def test_a_model_that_computes_in_bfloat16_has_weights_in_float32():
    maps = maps_of(dataclasses.replace(TINY, compute_dtype="bfloat16"))
    for weights in maps.values():
        assert weights.dtype == np.float32
        assert_allclose(weights.sum(-1), np.ones(weights.shape[:-1]), rtol=1e-6)
