"""A small Transformer to be decoded by this package and by its peers alike."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from t2t_jax.decoding.scoring.teacher_forcing import token_log_probabilities
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import EOS, PAD

CONFIG = TransformerConfig(
    vocab_size=53,
    num_layers=2,
    d_model=24,
    d_ff=40,
    num_heads=2,
    d_k=12,
    d_v=12,
    compute_dtype="float32",
    layer_norm_epsilon=0.01,  # far from what peers take if they are not told
)
MODULE = make_module(CONFIG)
ROOM = 12
"""Tokens that an output may hold."""


@functools.cache
def taught_params(seed, *, steps=200):
    """Draws weights, and teaches them a little: to say two words for one, and to end.

    Drawn alone they would say one word for ever. After so few steps they are unsure of
    most words, so that a search has something to choose from.
    """
    token = jnp.ones((1, 1), jnp.int32)
    params = jax.jit(MODULE.init)(jax.random.key(seed), token, token)["params"]
    optimizer = optax.adam(3e-3)

    @jax.jit
    def step(params, state, source_BxS, target_BxT):
        def loss(params):
            logs_BxT = token_log_probabilities(
                MODULE.apply,
                {"params": params},
                source_BxS=source_BxS,
                target_outputs_BxT=target_BxT,
            )
            return -logs_BxT.sum() / (target_BxT != PAD).sum()

        updates, state = optimizer.update(jax.grad(loss)(params), state)
        return optax.apply_updates(params, updates), state

    state, random = optimizer.init(params), np.random.default_rng(seed)
    for number in range(steps):
        source_BxS = drawn_sources(number, 64)
        shift_BxS = random.integers(0, 2, source_BxS.shape)
        words = (source_BxS - 4 + shift_BxS) % (CONFIG.vocab_size - 4) + 4
        target_BxT = np.where(source_BxS > EOS, words, source_BxS)
        params, state = step(params, state, source_BxS, target_BxT)
    return params


def drawn_sources(seed, rows):
    """Draws sentences of 2 to 9 words: [B, S], each with its eos, then pad."""
    random = np.random.default_rng(seed)
    source_BxS = np.full((rows, 10), PAD, np.int32)
    for row, length in zip(source_BxS, random.integers(2, 10, rows), strict=True):
        row[:length] = random.integers(4, CONFIG.vocab_size, length)
        row[length] = EOS
    return source_BxS


def words_of(row):
    """Returns the tokens of a row up to its eos, that included, or up to its pad."""
    words = [int(token) for token in row if token != PAD]
    return words[: words.index(EOS) + 1] if EOS in words else words


class Output(NamedTuple):
    tokens: list[int]
    log_probability: float


def outputs_of(result, rank=0):
    """Reads the outputs of one rank out of the result of a beam search."""
    assert np.asarray(result.finished_BxW[:, rank]).all()
    rows = np.asarray(result.tokens_BxWxT[:, rank])
    logs = np.asarray(result.log_probabilities_BxW[:, rank])
    return [
        Output(words_of(row), float(log)) for row, log in zip(rows, logs, strict=True)
    ]


def log_probabilities(params, source_BxS, outputs):
    """Scores outputs with the model itself, all tokens at once."""
    target_BxT = np.full((len(outputs), ROOM), PAD, np.int32)
    for row, tokens in zip(target_BxT, outputs, strict=True):
        row[: len(tokens)] = tokens
    logs_BxT = token_log_probabilities(
        MODULE.apply,
        {"params": params},
        source_BxS=source_BxS,
        target_outputs_BxT=target_BxT,
    )
    return np.asarray(logs_BxT).sum(axis=1)
