"""The package computes what the paper says: it agrees with a transcription of §3."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from tests.model.tiny import SOURCE, TARGET, tiny_apply, tiny_params
from tests.reference import paper

# float32 sums over two layers of width 14, against float64
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}

PAIRS = [
    ([5, 7, 11, 13, 2], [1, 8, 9, 6, 10, 12, 4]),
    ([17, 4, 2], [1, 3]),
    ([6, 9, 8, 2], [1, 4, 5, 28, 14]),
]


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
    sources, targets = zip(*PAIRS, strict=True)

    def packed(sentences):
        """Puts the sentences in one row, two places of padding after them."""
        places = [
            (token, segment, position)
            for segment, sentence in enumerate(sentences, start=1)
            for position, token in enumerate(sentence)
        ]
        return jnp.array([*places, (0, 0, 0), (0, 0, 0)]).T[:, None]

    source, source_segments, source_positions = packed(sources)
    target, target_segments, target_positions = packed(targets)
    logits = tiny_apply(
        source,
        target,
        source_segments=source_segments,
        target_segments=target_segments,
        source_positions=source_positions,
        target_positions=target_positions,
    )
    wanted = np.concatenate([expected(*pair) for pair in PAIRS])
    assert_allclose(logits[0, :-2], wanted, **TOLERANCE)


def test_a_prefix_of_the_target_has_the_same_logits_alone():
    source, target_inputs = PAIRS[0]
    logits = tiny_apply(SOURCE[:1], TARGET[:1])
    assert_allclose(logits[0, :3], expected(source, target_inputs[:3]), **TOLERANCE)
