"""Weights forbid what a search never generates, and nothing else.

Seen to fail: with unk forbidden where it is allowed; with the bias of another matrix.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.exporter import without_forbidden_tokens
from tests.exchange.exporting.counting import SIZE, original
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params


@pytest.mark.parametrize(
    ("changed", "allow_unk", "forbidden"),
    [
        ({}, True, [0, 1]),
        ({"tying": "none", "output_bias": True}, False, [0, 1, 3]),
        ({"tying": "decoder", "start": "zero"}, False, [0, 1, 3]),
    ],
)
def test_the_other_tokens_keep_their_ratios(changed, allow_unk, forbidden):
    config = dataclasses.replace(TINY, vocab_size=SIZE, **changed)
    decoding = DecodingConfig(allow_unk=allow_unk)
    params = jax.tree.map(np.array, tiny_params(config))
    one = original(config, params=params, decoding=decoding)
    written = without_forbidden_tokens(one)
    logits = tiny_apply(SOURCE, TARGET, config=config)
    auto = dataclasses.replace(written.config.model, compute_dtype="auto")
    found = tiny_apply(SOURCE, TARGET, config=auto, params=written.model.params)
    found = jax.nn.softmax(found)
    is_forbidden = np.isin(np.arange(SIZE), forbidden)
    wanted = jax.nn.softmax(jnp.where(is_forbidden[None, None], -jnp.inf, logits))
    real = np.asarray(TARGET) != 0
    # float32 sums of 44 terms
    assert_allclose(found[real], wanted[real], rtol=1e-5)
    assert not np.asarray(found)[..., forbidden].any()
    for name in ("source_embedding", "target_embedding") * (config.start == "zero"):
        assert not written.model.params[name]["table"][:2].any()
    # The original stays as it is.
    jax.tree.map(np.testing.assert_array_equal, params, tiny_params(config))
