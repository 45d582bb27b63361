import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from t2t_jax.model.encoder import Encoder
from tests.model.tiny import SOURCE, TINY, tiny_params

X = jax.random.normal(jax.random.key(0), (1, 5, 14))
ONES = jnp.ones((1, 5), int)


@functools.cache
def compiled(config):
    return jax.jit(Encoder(config).apply)


def encode(x, positions, params=None, config=TINY, segments=ONES):
    params = tiny_params(config)["encoder"] if params is None else params
    return compiled(config)(
        {"params": params},
        x,
        segments_BxS=segments,
        positions_BxS=positions,
        rows_B=None,
    )


def test_without_positions_it_is_permutation_equivariant():
    turned = jnp.array([3, 0, 4, 2, 1])
    same_place = jnp.zeros((1, 5), int)
    # float32 sums in another order
    assert_allclose(
        encode(X[:, turned], same_place), encode(X, same_place)[:, turned], atol=2e-5
    )


def test_with_positions_it_is_not():
    turned = jnp.array([3, 0, 4, 2, 1])
    places = jnp.arange(5)[None]
    difference = encode(X[:, turned], places) - encode(X, places)[:, turned]
    assert np.abs(difference).max() > 0.1


def test_no_gradient_passes_between_segments_or_from_padding():
    segments = jnp.array([[1, 1, 2, 2, 0]])

    def one_output(x, position):
        memory = encode(x, jnp.arange(5)[None], segments=segments)
        return (memory[0, position] * jnp.arange(14)).sum()

    for position, reached in [(1, [1, 1, 0, 0, 0]), (2, [0, 0, 1, 1, 0])]:
        gradient = jax.grad(one_output)(X, position)
        assert (np.abs(gradient[0]).max(-1) > 0).astype(int).tolist() == reached


def test_pre_norm_ends_with_one_norm_more():
    config = dataclasses.replace(TINY, norm_position="pre")
    params = tiny_params(config)["encoder"]
    assert set(params) == {"layer_0", "layer_1", "final_norm"}
    scaled = {
        **params,
        "final_norm": jax.tree.map(lambda p: 3 * p, params["final_norm"]),
    }
    positions = jnp.arange(5)[None]
    assert_allclose(
        encode(X, positions, scaled, config),
        3 * encode(X, positions, params, config),
        rtol=1e-5,
        atol=1e-5,
    )


def test_layers_are_numbered_from_the_bottom():
    assert list(tiny_params()["encoder"]) == ["layer_0", "layer_1"]
    assert SOURCE.shape[1] == ONES.shape[1]
