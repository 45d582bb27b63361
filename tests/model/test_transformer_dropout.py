"""Dropout seen from the whole model: which rows, which sites, which keys."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.sublayer import Dropout
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
KEY = jax.random.key(17)
REAL = np.asarray(TARGET) > 0
ONE_LAYER = dataclasses.replace(TINY, num_layers=1, dropout=0.0)
DROPPING = dataclasses.replace(
    ONE_LAYER, dropout=0.3, attention_dropout=0.2, relu_dropout=0.1
)


def dropped(*args, key=KEY, config=DROPPING, **kwargs):
    return tiny_apply(
        *args, config=config, deterministic=False, rngs={"dropout": key}, **kwargs
    )


def test_a_dropped_row_is_the_same_in_any_batch():
    whole = dropped(SOURCE, TARGET)
    part = jnp.array([2, 1])
    assert_allclose(
        dropped(SOURCE[part], TARGET[part], rows=part), whole[part], **CLOSE
    )
    assert jnp.abs(dropped(SOURCE[part], TARGET[part]) - whole[part]).max() > 0.1


def test_a_dropped_row_is_the_same_with_more_padding():
    padded = dropped(
        jnp.pad(SOURCE, ((0, 0), (0, 6))), jnp.pad(TARGET, ((0, 0), (0, 4)))
    )
    assert_allclose(padded[:, :7][REAL], dropped(SOURCE, TARGET)[REAL], **CLOSE)


def test_dropout_differs_between_keys_and_is_off_by_default():
    assert_array_equal(
        tiny_apply(SOURCE, TARGET, config=DROPPING),
        dropped(SOURCE, TARGET, config=ONE_LAYER),
    )
    other = dropped(SOURCE, TARGET, key=jax.random.key(18))
    assert jnp.abs(dropped(SOURCE, TARGET) - other).max() > 0.1


def test_every_site_drops_with_masks_of_its_own():
    @jax.jit
    def keys_of_sites():
        keys = []

        def spy(apply, args, kwargs, context):
            if (
                isinstance(context.module, Dropout)
                and context.method_name == "__call__"
            ):
                keys.append(jax.random.key_data(context.module.make_rng("dropout")))
            return apply(*args, **kwargs)

        with nn.intercept_methods(spy):
            Transformer(DROPPING).apply(
                {"params": tiny_params(DROPPING)},
                SOURCE,
                TARGET,
                deterministic=False,
                rngs={"dropout": KEY},
            )
        return jnp.stack(keys)

    keys = keys_of_sites().tolist()
    # 2 inputs; inside and behind 2 sub-layers of the encoder, 3 of the decoder
    assert len(keys) == 2 + 4 + 6
    assert len(set(map(tuple, keys))) == len(keys)
