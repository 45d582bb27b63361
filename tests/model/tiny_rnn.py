"""A recurrent model of distinct primes, small enough to be compiled in a second."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.model.config import RNNConfig
from t2t_jax.model.rnn.rnn import RNN
from tests.model.tiny import SOURCE, TARGET

# d_hidden is twice a prime: half of it reads in each direction.
TINY_RNN = RNNConfig(
    vocab_size=29, num_layers=2, d_model=7, d_hidden=22, d_attention=13
)


@functools.cache
def rnn_params(config=TINY_RNN, seed=0):
    """Draws all parameters: biases of 0 would hide mistakes."""
    init = RNN(config).init
    shapes = jax.eval_shape(init, jax.random.key(0), SOURCE, TARGET)["params"]
    draw = np.random.default_rng(seed).normal
    return jax.tree.map(
        lambda leaf: jnp.asarray(draw(scale=0.4, size=leaf.shape), jnp.float32), shapes
    )


@functools.cache
def _compiled(config):
    return jax.jit(RNN(config).apply, static_argnames=("deterministic", "mutable"))


def rnn_apply(*args, config=TINY_RNN, params=None, **kwargs):
    """Applies the model, compiled, with the tiny parameters or with those given."""
    params = rnn_params(config) if params is None else params
    return _compiled(config)({"params": params}, *args, **kwargs)
