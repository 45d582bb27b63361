"""A Transformer of distinct primes, small enough to be compiled in a second or two."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer

# d_model is twice a prime, for sinusoids come in pairs.
TINY = TransformerConfig(
    vocab_size=29, num_layers=2, d_model=14, d_ff=19, num_heads=3, d_k=5, d_v=7
)

SOURCE = jnp.array([[5, 7, 11, 13, 2], [17, 4, 2, 0, 0], [6, 9, 8, 2, 0]])
TARGET = jnp.array(
    [
        [1, 8, 9, 6, 10, 12, 4],
        [1, 3, 0, 0, 0, 0, 0],
        [1, 4, 5, 28, 14, 0, 0],
    ]
)


@functools.cache
def tiny_params(config=TINY, seed=0):
    """Draws all parameters: biases of 0 and scales of 1 would hide mistakes."""
    init = Transformer(config).init
    shapes = jax.eval_shape(init, jax.random.key(0), SOURCE, TARGET)["params"]
    draw = np.random.default_rng(seed).normal

    def drawn(path, leaf):
        if leaf.ndim > 1:
            return jnp.asarray(draw(scale=0.3, size=leaf.shape), jnp.float32)
        center = 1.0 if path[-1].key == "scale" else 0.0
        return jnp.asarray(draw(center, scale=0.1, size=leaf.shape), jnp.float32)

    return jax.tree_util.tree_map_with_path(drawn, shapes)


@functools.cache
def _compiled(config):
    names = ("deterministic", "method", "num_beams", "length")
    return jax.jit(Transformer(config).apply, static_argnames=names)


def tiny_apply(*args, config=TINY, params=None, **kwargs):
    """Applies the model, compiled, with the tiny parameters or with those given."""
    params = tiny_params(config) if params is None else params
    return _compiled(config)({"params": params}, *args, **kwargs)
