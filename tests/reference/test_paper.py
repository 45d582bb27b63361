"""The package computes what the paper says: it agrees with a transcription of §3."""

import jax
import numpy as np
from numpy.testing import assert_allclose

from tests.model.tiny import SOURCE, TARGET, tiny_apply, tiny_params
from tests.reference import paper
from tests.reference.packed import PAIRS, packed

# float32 sums over two layers of width 14, against float64
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def expected(source, target_inputs):
    return paper.transformer(source, target_inputs, jax.device_get(tiny_params()))


def test_padded_rows_agree_with_the_paper():
    logits = tiny_apply(SOURCE, TARGET)
    for row, (source, target_inputs) in enumerate(PAIRS):
        assert_allclose(
            logits[row, : len(target_inputs)],
            expected(source, target_inputs),
            **TOLERANCE,
        )


def test_each_sentence_of_a_packed_row_agrees_with_the_paper():
    logits = tiny_apply(**packed(PAIRS))
    wanted = np.concatenate([expected(*pair) for pair in PAIRS])
    assert_allclose(logits[0, :-2], wanted, **TOLERANCE)


def test_a_prefix_of_the_target_has_the_same_logits_alone():
    source, target_inputs = PAIRS[0]
    logits = tiny_apply(SOURCE[:1], TARGET[:1])
    assert_allclose(logits[0, :3], expected(source, target_inputs[:3]), **TOLERANCE)
