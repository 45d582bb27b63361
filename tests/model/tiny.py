"""Models of distinct primes, small enough to be compiled in a second or two."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import RNNConfig, TransformerConfig

# d_model is twice a prime, for sinusoids come in pairs.
TINY = TransformerConfig(
    vocab_size=29, num_layers=2, d_model=14, d_ff=19, num_heads=3, d_k=5, d_v=7
)

SOURCE = jnp.array([[5, 7, 11, 13, 2], [17, 4, 2, 0, 0], [6, 9, 8, 2, 0]])
TARGET = jnp.array(
    [[1, 8, 9, 6, 10, 12, 4], [1, 3, 0, 0, 0, 0, 0], [1, 4, 5, 28, 14, 0, 0]]
)


# d_hidden is twice a prime: half of it reads in each direction.
TINY_RNN = RNNConfig(
    vocab_size=29, num_layers=2, d_model=7, d_hidden=22, d_attention=13
)


@functools.cache
def drawn_params(module, seed=0, scale_of_matrices=0.3, scale_of_vectors=0.1):
    """Draws all parameters: biases of 0 and scales of 1 would hide mistakes."""
    shapes = jax.eval_shape(module.init, jax.random.key(0), SOURCE, TARGET)["params"]
    draw = np.random.default_rng(seed).normal

    def drawn(path, leaf):
        center = 1.0 if path[-1].key == "scale" else 0.0
        scale = scale_of_matrices if leaf.ndim > 1 else scale_of_vectors
        return jnp.asarray(draw(center, scale, leaf.shape), jnp.float32)

    return jax.tree_util.tree_map_with_path(drawn, shapes)


def tiny_params(config=TINY, seed=0):
    return drawn_params(make_module(config), seed)


def rnn_params(config=TINY_RNN, seed=0):
    return drawn_params(make_module(config), seed, 0.4, 0.4)


@functools.cache
def _compiled(config):
    names = ("deterministic", "method", "num_beams", "length", "mutable")
    return jax.jit(make_module(config).apply, static_argnames=names)


def tiny_apply(*args, config=TINY, params=None, **kwargs):
    """Applies the model, compiled, with the tiny parameters or with those given."""
    params = tiny_params(config) if params is None else params
    return _compiled(config)({"params": params}, *args, **kwargs)


def rnn_apply(*args, config=TINY_RNN, params=None, **kwargs):
    """Applies the recurrent model as `tiny_apply` does."""
    params = rnn_params(config) if params is None else params
    return _compiled(config)({"params": params}, *args, **kwargs)
