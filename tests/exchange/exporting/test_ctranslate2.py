"""CTranslate2 computes what the model computes, for every kind of model.

Seen to fail: with keys and values exchanged; without the scale of the queries; without
the square root at learned positions; with the epsilon that CTranslate2 has by itself;
with arrays that are not copied before they are quantized.
"""

import dataclasses

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.processor import lacks_vnni
from t2t_jax.exchange.exporting.base import ExportSpec
from t2t_jax.exchange.exporting.ctranslate2 import (
    CTranslate2Backend,
    write_ctranslate2,
)
from tests.decoding.words import Numbers
from tests.exchange.exporting.counting import original
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params

pytest.importorskip("ctranslate2")

# float32 sums over two layers of width 14, taken in two orders
TOLERANCE = {"rtol": 0, "atol": 2e-5}
VARIANTS = {
    "the paper's, d_k below d_v": {},
    "pre-norm, d_v below d_k, learned positions, nothing tied, two vocabularies": {
        **{"norm_position": "pre", "d_k": 11, "d_v": 3, "tying": "none"},
        **{"positions": "learned", "max_positions": 300, "source_vocab_size": 23},
    },
    "as Marian": {
        "attention_biases": True,
        "output_bias": True,
        "activation": "swish",
        "num_decoder_layers": 1,
        "position_rates": "tensor2tensor",
        "start": "zero",
    },
    "as fairseq, d_k below d_v, another epsilon": {
        "layer_norm_epsilon": 0.3,
        "attention_biases": True,
        "activation": "gelu",
        "position_rates": "tensor2tensor",
        "first_position": 2,
        "start": "eos",
        "tying": "decoder",
    },
    "rotary positions": {"positions": "rotary", "d_k": 6, "num_decoder_layers": 1},
    "rotary positions, d_v below d_k, all of today's blocks": {
        **{"positions": "rotary", "d_k": 8, "d_v": 3, "norm": "rms"},
        **{"norm_position": "pre", "activation": "swiglu", "tying": "decoder"},
        **{"source_vocab_size": 23, "scale_embeddings": False},
    },
    "RMS norms after": {"norm": "rms", "layer_norm_epsilon": 0.3},
    "RMS norms before, a gate": {
        **{"norm": "rms", "norm_position": "pre", "activation": "swiglu"}
    },
    "another gate": {"activation": "geglu", "attention_biases": True},
    "learned positions from 2, not scaled": {
        "positions": "learned",
        "max_positions": 300,
        "first_position": 2,
        "scale_embeddings": False,
        "activation": "quick_gelu",
        "output_bias": True,
        "tying": "none",
        "num_decoder_layers": 3,
    },
}


class Pieces(Numbers):
    """A vocabulary without text, which need not be saved."""

    def save(self, directory, name="vocab"):
        directory.mkdir(exist_ok=True)


def exported(tmp_path, model=TINY, quantization="float32"):
    """Writes a model of drawn parameters, and loads it with CTranslate2."""
    target = Pieces(model.vocab_size)
    source = Pieces(model.source_vocab_size) if model.source_vocab_size else target
    decoding = DecodingConfig(max_source_length=20, max_extra_tokens=2)
    both = VocabularyPair(source, target)
    one = original(model, vocabularies=both, decoding=decoding)
    write_ctranslate2(tmp_path, one, ExportSpec("any", quantization))
    return CTranslate2Backend(tmp_path, vocabularies=both, config=one.config)


def pairs():
    """The sentences of the tiny model: subwords without eos and without bos."""
    sources = [[id_ for id_ in row if id_ > 2] for row in np.asarray(SOURCE).tolist()]
    targets = [[id_ for id_ in row if id_ > 1] for row in np.asarray(TARGET).tolist()]
    return list(zip(sources, targets, strict=True))


def logs_of(model):
    """The same by the model: softmax of its logits, at the tokens said and the eos."""
    logs_BxTxV = jax.nn.log_softmax(tiny_apply(SOURCE, TARGET, config=model))
    return [
        [logs_TxV[place, token] for place, token in enumerate([*target, 2])]
        for logs_TxV, (_, target) in zip(np.asarray(logs_BxTxV), pairs(), strict=True)
    ]


@pytest.mark.parametrize("changed", VARIANTS.values(), ids=VARIANTS)
def test_every_token_is_as_probable_as_in_the_model(tmp_path, changed):
    model = dataclasses.replace(TINY, **changed)
    backend = exported(tmp_path, model)
    for logs, wanted in zip(backend.score(pairs()), logs_of(model), strict=True):
        assert_allclose(logs, wanted, **TOLERANCE)
    # And greedy search finds the most probable ones.
    lines = [" ".join(map(str, source)) for source, _ in pairs()]
    found = backend.search(lines, greedy=True)
    inputs = np.zeros(TARGET.shape, int)  # no output has more than 6 tokens
    for row, output in zip(inputs, found, strict=True):
        row[: len(output.subwords) + 1] = [1, *output.subwords]
    logits_BxTxV = np.array(tiny_apply(SOURCE, inputs, config=model))
    logits_BxTxV[..., :2] = -np.inf  # pad and bos are never produced
    logits_BxTxV[:, 0, 2] = -np.inf  # and the eos not at once
    for logits_TxV, output in zip(logits_BxTxV, found, strict=True):
        assert len(output.tokens) >= 1
        best = logits_TxV.argmax(-1)[: len(output.tokens)]
        assert best.tolist() == list(output.tokens)


@pytest.mark.skipif(lacks_vnni(), reason="int8 is less exact without VNNI")
def test_quantized_numbers_are_near_and_the_parameters_stay_as_they_are(tmp_path):
    before = jax.tree.map(np.array, tiny_params())
    found = np.concatenate(exported(tmp_path, quantization="int8").score(pairs()))
    assert 1e-4 < np.abs(found - np.concatenate(logs_of(TINY))).mean() < 0.1
    jax.tree.map(np.testing.assert_array_equal, tiny_params(), before)
