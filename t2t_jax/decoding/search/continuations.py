"""Chooses the continuations of the live hypotheses at one position.

Banks are hypotheses that have met as much of a constraint.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.beam_state import BeamSearch, BeamState, gather_beams
from t2t_jax.decoding.search.constraint import add_wanted
from t2t_jax.decoding.search.prefix_constraints import (
    forced_tokens,
    mask_to_forced_token,
)
from t2t_jax.decoding.search.top_k_top_p import top_k
from t2t_jax.types import Array, PyTree

HIGHEST_BANK = 2**30
"""A bank above those of any constraint."""


def has_banks(search: BeamSearch, state: BeamState) -> bool:
    """Returns whether the constraint divides the beam; known without values."""
    banks = search.constraint.banks
    return banks(state.constraint_state, state.constraint_rows) is not None


def best_continuations(
    search: BeamSearch, state: BeamState, logits_BxWxV: Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the best 2W: ([B, 2W] parent beams, tokens, log-probabilities)."""
    ids = search.params.ids
    # A sum over V terms loses the small ones in bfloat16. (Reusing the maximum of the
    # top-k below costs a third of the speed: XLA fuses less.)
    normaliser_BxWx1 = jax.nn.logsumexp(
        jnp.asarray(logits_BxWxV, jnp.float32), axis=-1, keepdims=True
    )
    forced_B = None
    free_BxWxV = logits_BxWxV
    if forbidden := search.params.forbidden:
        free_BxWxV = jnp.asarray(logits_BxWxV).at[..., forbidden].set(-jnp.inf)
    if state.prefixes_BxP is None:
        logits_BxWxV = free_BxWxV
    else:
        forced_B = forced_tokens(state.prefixes_BxP, state.position, pad=ids.pad)
        is_free_Bx1x1 = (forced_B == ids.pad)[:, None, None]
        logits_BxWxV = jnp.where(is_free_Bx1x1, free_BxWxV, logits_BxWxV)
        logits_BxWxV = mask_to_forced_token(logits_BxWxV, forced_B, pad=ids.pad)
    best_BxWxC, tokens_BxWxC = _best_tokens(search, state, logits_BxWxV)
    so_far_BxWx1 = state.living.log_probabilities_BxW[..., None]
    gains_BxWxC = best_BxWxC.astype(jnp.float32) - normaliser_BxWx1
    totals_BxWxC = so_far_BxWx1 + _without_cost(forbidden, forced_B, gains_BxWxC)
    invalid_BxWxC = _invalid(search, state, (tokens_BxWxC, so_far_BxWx1), forced_B)
    totals_BxWxC = jnp.where(invalid_BxWxC, -jnp.inf, totals_BxWxC)
    rows, beams, width = tokens_BxWxC.shape
    flat = (rows, beams * width)
    totals_BxN = totals_BxWxC.reshape(flat)
    if has_banks(search, state):
        parents_BxN = jnp.broadcast_to(jnp.arange(beams * width) // width, flat)
        tokens_BxN = tokens_BxWxC.reshape(flat)
        advanced = advance_constraint(search, state, parents_BxN, tokens_BxN)
        banks_BxN = search.constraint.banks(advanced, state.constraint_rows)
        indices = divide_among_banks(
            totals_BxN, jnp.asarray(banks_BxN), count=2 * beams
        )
        totals = jnp.take_along_axis(totals_BxN, indices, axis=1)
    else:
        totals, indices = jax.lax.top_k(totals_BxN, 2 * beams)
    tokens = jnp.take_along_axis(tokens_BxWxC.reshape(flat), indices, axis=1)
    return indices // width, tokens, totals


def _without_cost(
    forbidden: tuple[int, ...], forced_B: jax.Array | None, gains_BxWxC: jax.Array
) -> jax.Array:
    """Returns log-probabilities, 0 for a tag that is forced: it is given, as bos is."""
    if not forbidden or forced_B is None:
        return gains_BxWxC
    is_tag_Bx1x1 = jnp.isin(forced_B, jnp.array(forbidden))[:, None, None]
    is_given_BxWxC = is_tag_Bx1x1 & ~jnp.isneginf(gains_BxWxC)
    return jnp.where(is_given_BxWxC, 0.0, gains_BxWxC)


def _best_tokens(
    search: BeamSearch, state: BeamState, logits_BxWxV: Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the tokens to consider: their logits and ids, both [B, W, C]."""
    held, given = state.constraint_state, state.constraint_rows
    constraint = search.constraint
    bias_BxWxV = constraint.bias(held, given, position=state.position)
    if bias_BxWxV is not None:
        logits_BxWxV += bias_BxWxV
    # Pad, bos, an eos that a constraint forbids and unk may be among the best: take as
    # many more. Where `min_tokens` forbids eos, no hypothesis ends and W are enough.
    unwanted = 2 + (constraint.may_end(held, given) is not None)
    unwanted += not search.params.allow_unk
    _, beams, vocabulary = logits_BxWxV.shape
    best_BxWxC, tokens_BxWxC = top_k(
        logits_BxWxV, min(2 * beams + unwanted, vocabulary)
    )
    wanted_BxWxC = constraint.wanted(held, given)
    if wanted_BxWxC is None:
        return best_BxWxC, tokens_BxWxC
    pad = search.params.ids.pad
    return add_wanted(best_BxWxC, tokens_BxWxC, logits_BxWxV, wanted_BxWxC, pad=pad)


def advance_constraint(
    search: BeamSearch, state: BeamState, parents_BxC: Array, tokens_BxC: Array
) -> PyTree:
    """Returns the constraint's state of continuations: leaves [B, C, ...]."""
    held = gather_beams(state.constraint_state, jnp.asarray(parents_BxC))
    return search.constraint.advance(held, state.constraint_rows, tokens_BxW=tokens_BxC)


def _invalid(
    search: BeamSearch,
    state: BeamState,
    candidates: tuple[jax.Array, jax.Array],
    forced_B: jax.Array | None,
) -> jax.Array:
    """Returns which continuations are invalid: [B, W, C] bool.

    Args:
      candidates: their tokens [B, W, C], and what they continue: [B, W, 1]
        log-probabilities.
    """
    ids, may_end = search.params.ids, search.constraint.may_end
    tokens_BxWxC, so_far_BxWx1 = candidates
    # Continuations of an empty beam are invalid, whatever the logits.
    invalid_BxWxC = (tokens_BxWxC == ids.pad) | (tokens_BxWxC == ids.bos)
    invalid_BxWxC |= jnp.isneginf(so_far_BxWx1)
    if min_tokens := search.params.min_tokens:
        invalid_BxWxC |= (tokens_BxWxC == ids.eos) & (state.position < min_tokens)
    may_end_BxW = may_end(state.constraint_state, state.constraint_rows)
    if may_end_BxW is not None:
        invalid_BxWxC |= (tokens_BxWxC == ids.eos) & ~may_end_BxW[..., None]
    if not search.params.allow_unk:
        is_unk_BxWxC = tokens_BxWxC == ids.unk
        if forced_B is not None:
            is_unk_BxWxC &= (forced_B != ids.unk)[:, None, None]
        invalid_BxWxC |= is_unk_BxWxC
    return invalid_BxWxC


def order(scores_BxN: Array, banks_BxN: Array) -> jax.Array:
    """Orders hypotheses by bank, the highest first, and by score inside a bank.

    Returns:
      [B, N] indices; hypotheses with the score -inf are last.

    Example:
      >>> order(jnp.array([[-1.0, -jnp.inf, -3.0, -2.0]]), jnp.array([[0, 9, 1, 1]]))
      Array([[3, 2, 0, 1]], dtype=int32)
    """
    scores_BxN = jnp.asarray(scores_BxN)
    numbers_BxN = jax.lax.broadcasted_iota(jnp.int32, scores_BxN.shape, 1)
    keys = jnp.isneginf(scores_BxN), -jnp.asarray(banks_BxN), -scores_BxN
    *_, indices_BxN = jax.lax.sort((*keys, numbers_BxN), num_keys=3)
    return indices_BxN


def divide_among_banks(totals_BxN: Array, banks_BxN: Array, *, count: int) -> jax.Array:
    """Chooses continuations from each bank in turn.

    The order is: the best of every bank, the highest bank first; then the second best
    of every bank, and so on. A bank with fewer leaves the rest to the others.

    Source: dynamic beam allocation, Post and Vilar 2018 (arXiv 1804.06609), in the
    vectorised form of Hu et al. 2019 (N19-1090).

    Args:
      totals_BxN: [B, N] log-probabilities, -inf for what is not a continuation.
      banks_BxN: [B, N] int32.

    Returns:
      [B, count] indices into N.

    Example:
      >>> divide_among_banks(
      ...     jnp.array([[-1.0, -2.0, -3.0, -8.0, -9.0]]),
      ...     jnp.array([[0, 0, 0, 1, 1]]),
      ...     count=4,
      ... ).tolist()
      [[3, 0, 4, 1]]
    """
    totals_BxN, banks_BxN = jnp.asarray(totals_BxN), jnp.asarray(banks_BxN)
    numbers_BxN = jax.lax.broadcasted_iota(jnp.int32, totals_BxN.shape, 1)
    # By bank, and the best of a bank first: the rank is the distance to its first.
    banks_BxN, losses_BxN, order_BxN = jax.lax.sort(
        (banks_BxN, -totals_BxN, numbers_BxN), num_keys=3
    )
    begins_BxN = banks_BxN != jnp.roll(banks_BxN, 1, axis=1)
    first_BxN = jax.lax.cummax(jnp.where(begins_BxN, numbers_BxN, 0), axis=1)
    is_none_BxN = jnp.isposinf(losses_BxN)
    rank_BxN = jnp.where(is_none_BxN, totals_BxN.shape[1], numbers_BxN - first_BxN)
    *_, chosen_BxN = jax.lax.sort((rank_BxN, -banks_BxN, order_BxN), num_keys=2)
    return chosen_BxN[:, :count]
