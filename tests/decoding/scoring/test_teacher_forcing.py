import jax
import jax.numpy as jnp
from numpy.testing import assert_allclose

from t2t_jax.decoding.scoring.teacher_forcing import token_log_probabilities
from t2t_jax.decoding.search.static_params import SpecialIds

score = jax.jit(token_log_probabilities, static_argnames=("apply", "ids"))


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
