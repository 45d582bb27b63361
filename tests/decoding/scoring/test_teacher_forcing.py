import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.decoding.scoring.teacher_forcing import token_log_probabilities
from t2t_jax.decoding.search.static_params import SpecialIds
from t2t_jax.model.architectures import make_module, make_step_model
from t2t_jax.model.config import RNNConfig
from tests.decoding.models import plain_search
from tests.model.tiny import SOURCE, TINY, tiny_params
from tests.reference import paper

TARGET_OUTPUTS = jnp.array(
    [[8, 9, 6, 10, 12, 4, 2], [2] + 6 * [0], [4, 5, 2] + 4 * [0]]
)

score = jax.jit(token_log_probabilities, static_argnames=("apply", "ids"))


@functools.cache
def transformer():
    return make_module(TINY), tiny_params()


@functools.cache
def rnn():
    module = make_module(
        RNNConfig(vocab_size=29, num_layers=1, d_model=7, d_hidden=10, d_attention=5)
    )
    params = module.init(jax.random.key(5), SOURCE, SOURCE)["params"]
    # Larger than they are born, so that one word is likelier than another.
    return module, jax.tree.map(lambda leaf: 3.0 * leaf, params)


def bigrams(probability_VxV, source_BxS, target_inputs_BxT):
    """A model that looks at the last token alone."""
    return jnp.log(probability_VxV)[target_inputs_BxT]


# --- drawn truths

CHAIN = jnp.array(
    [
        [0.5, 0.5, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.125, 0.5, 0.375],  # after bos
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.25, 0.125, 0.625],
        [0.0, 0.0, 0.75, 0.25, 0.0],
    ]
)


def test_every_token_is_scored_after_the_one_before_and_pad_is_nothing():
    found = token_log_probabilities(
        bigrams,
        CHAIN,
        source_BxS=jnp.array([[3, 2], [4, 2]]),
        target_outputs_BxT=jnp.array([[3, 4, 4, 2, 0], [2, 0, 0, 0, 0]]),
    )
    # 4 after 4 never happens.
    expected = [[0.5, 0.625, 0.0, 0.75, 1.0], [0.125, 1.0, 1.0, 1.0, 1.0]]
    assert_allclose(jnp.exp(found), expected, rtol=1e-6)
    assert found.dtype == jnp.float32


def test_other_ids_are_those_of_the_model():
    found = token_log_probabilities(
        bigrams,
        CHAIN[::-1, ::-1],
        source_BxS=jnp.array([[1, 2]]),
        target_outputs_BxT=jnp.array([[1, 2, 4]]),
        ids=SpecialIds(pad=4, bos=3),
    )
    assert_allclose(jnp.exp(found), [[0.5, 0.25, 1.0]], rtol=1e-6)


# --- equality of two ways


def test_it_is_the_log_softmax_of_section_3_written_in_numpy():
    module, params = transformer()
    found = score(
        module.apply,
        {"params": params},
        source_BxS=SOURCE,
        target_outputs_BxT=TARGET_OUTPUTS,
    )
    for row, (source, outputs) in enumerate(
        zip(np.asarray(SOURCE), np.asarray(TARGET_OUTPUTS), strict=True)
    ):
        outputs = outputs[outputs > 0]
        logits_TxV = paper.transformer(source[source > 0], [1, *outputs[:-1]], params)
        expected = [
            np.log(paper.softmax(logits)[token])
            for logits, token in zip(logits_TxV, outputs, strict=True)
        ]
        # float32 logits of about 10
        assert_allclose(found[row, : len(outputs)], expected, atol=1e-5)


@pytest.mark.parametrize("model", [transformer, rnn])
def test_a_hypothesis_gets_the_log_probability_that_the_beam_found_it_with(model):
    module, params = model()
    result = jax.jit(
        functools.partial(plain_search, beam_size=3, n_best=3, max_extra_tokens=13)
    )(make_step_model(module, params), SOURCE)
    assert np.ptp(result.lengths_BxW) > 3
    for rank in range(3):
        found = score(
            module.apply,
            {"params": params},
            source_BxS=SOURCE,
            target_outputs_BxT=result.tokens_BxWxT[:, rank],
        )
        # float32 sums over up to 17 tokens, in another order
        assert_allclose(
            found.sum(axis=1), result.log_probabilities_BxW[:, rank], atol=1e-4
        )


# --- laws


def test_the_logits_are_the_only_large_array():
    size = 8209

    def apply(table_VxD, source_BxS, target_inputs_BxT):
        return table_VxD[target_inputs_BxT] @ table_VxD.T

    compiled = score.lower(
        apply,
        jnp.ones((size, 3)),
        source_BxS=jnp.ones((7, 31), jnp.int32),
        target_outputs_BxT=jnp.ones((7, 31), jnp.int32),
    ).compile()
    logits_bytes = 4 * 7 * 31 * size
    temporary = compiled.memory_analysis().temp_size_in_bytes
    assert logits_bytes <= temporary < 1.1 * logits_bytes
