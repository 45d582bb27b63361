"""Drawing outputs by their probability, each sentence with a randomness of its own."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.arguments import with_article
from t2t_jax.decoding.beam_search import BeamResult, no_outputs
from t2t_jax.decoding.constraints import checked_room, source_array
from t2t_jax.decoding.lengths import output_limits
from t2t_jax.decoding.rules import SampleRules
from t2t_jax.decoding.sample_step import collect_samples, draw_until, init_samples
from t2t_jax.errors import UserError
from t2t_jax.types import Array, StepModel

_PLAIN = SampleRules()


def sample(
    model: StepModel,
    source_BxS: Array,
    key: Array,
    *,
    rules: SampleRules = _PLAIN,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    prefixes_BxP: Array | None = None,
) -> BeamResult:
    """Draws outputs for each sentence, token by token.

    A sentence's outputs depend on the key, its row and the model's logits alone: not on
    the sentences around it, nor on the room there is. Pure, and safe under `jax.jit`
    and `jax.vmap`; all but the arrays is static.

    Departs: section 6.1 searches with a beam.

    Args:
      model: anything with the five methods of `StepModel`.
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      key: from `jax.random.key`, of JAX's default kind; or [B] of them, one for each
        sentence.
      rules: how to draw, and how often.
      max_extra_tokens: an output holds at most this many tokens more than its source
        holds subwords.
      max_length: T, bound for all outputs; None means S + `max_extra_tokens`.
      prefixes_BxP: [B, P] int tokens that each output must begin with, then pad.

    Returns:
      The samples of every sentence in the order they were drawn. Their
      log-probabilities are the model's own, whatever the temperature.

    Raises:
      UserError: an argument is out of range, the source is not [B, S], or its tokens
        are none of the model's.
      TypeError: the model is no `StepModel`, the rules no `SampleRules`, the source is
        text, or there is no key.

    Example:
      >>> from typing import NamedTuple
      >>> class Coin(NamedTuple):  # heads (4) or tails (5) for ever
      ...     def encode(self, source_BxS):
      ...         return source_BxS
      ...     def init_cache(self, memory, num_beams, length):
      ...         return ()
      ...     def step(self, tokens_BxW, memory, cache, position):
      ...         coin = jnp.array([-jnp.inf] * 4 + [0.0, 0.0])
      ...         return jnp.broadcast_to(coin, (*tokens_BxW.shape, 6)), cache
      ...     def reorder(self, cache, parents_BxW):
      ...         return cache
      ...     def grow(self, cache, length):
      ...         return cache
      >>> tosses = sample(Coin(), jnp.array([[7, 2]]), jax.random.key(1), max_length=40)
      >>> sorted(set(tosses.tokens_BxWxT.ravel().tolist()))
      [4, 5]
    """
    source_BxS = source_array(model, source_BxS, caller="sample")
    if not isinstance(rules, SampleRules):
        kind = with_article(type(rules).__name__)
        raise TypeError(
            f"sample takes SampleRules as rules, not {kind}. Pass "
            "t2t_jax.SampleRules(temperature=…)."
        )
    room = checked_room(
        source_BxS, prefixes_BxP, max_extra_tokens, max_length=max_length, ids=rules.ids
    )
    rows = source_BxS.shape[0]
    _check_key(key, rows)
    if not rows:
        return no_outputs(rules.num_samples, room)
    memory = model.encode(source_BxS)
    limits_B = output_limits(
        source_BxS, max_extra_tokens=max_extra_tokens, max_length=room, ids=rules.ids
    )
    state = init_samples(
        model,
        memory,
        limits_B=limits_B,
        max_length=room,
        cache_length=room,
        rules=rules,
        keys_BxK=jax.random.key_data(key if key.ndim else row_keys(key, rows)),
        prefixes_BxP=prefixes_BxP,
    )
    state = draw_until(model, state, memory=memory, until=room, rules=rules)
    return collect_samples(state, rules=rules)


def row_keys(key: Array, numbers: Array | int) -> jax.Array:
    """Makes a key for each of several sentences.

    Args:
      key: from `jax.random.key`.
      numbers: [B] whole numbers from 0 that tell the sentences apart, such as those of
        lines in a file; B itself stands for 0 to B - 1.

    Returns:
      [B] keys.

    Example:
      >>> key = jax.random.key(5)
      >>> bool(row_keys(key, 3)[2] == row_keys(key, jnp.array([2]))[0])
      True
    """
    numbers_B = jnp.arange(numbers) if isinstance(numbers, int) else numbers
    keys: jax.Array = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(
        key, jnp.asarray(numbers_B).astype(jnp.uint32)
    )
    return keys


def _check_key(key: Array, rows: int) -> None:
    if key is None:
        raise TypeError("sample takes a key, not None. Pass jax.random.key(seed).")
    is_key = jax.dtypes.issubdtype(jnp.asarray(key).dtype, jax.dtypes.prng_key)
    default = jax.random.key_impl(jax.random.key(0))
    kind = jax.random.key_impl(key) if is_key else jnp.asarray(key).dtype
    if kind != default or jnp.shape(key) not in ((), (rows,)):
        raise UserError(
            f"key of shape {jnp.shape(key)} and kind {kind} must be one key of kind "
            f"{default}, or one for each of the {rows} sentences. Pass "
            "jax.random.key(seed)."
        )
