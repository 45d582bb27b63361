"""Checks of a search: its arguments, and what the methods of its model return."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from t2t_jax.data.line_arguments import with_article, wrong_type
from t2t_jax.decoding.config import is_whole, longest_output
from t2t_jax.decoding.search.static_params import SearchParams, SpecialIds
from t2t_jax.devices.sharding.rules import (
    describe_differences,
    dtype_shape,
    dtype_shapes,
    leaves_by_path,
)
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.types import Array, PyTree, StepModel

_METHODS = ("encode", "init_cache", "step", "reorder", "grow")


def source_array(model: object, source_BxS: Array, *, caller: str) -> jax.Array:
    """Checks model and source of a search, and returns the source as a JAX array.

    Raises:
      TypeError: the model is a loaded `TranslationModel` or not a `StepModel`, or the
        source is text or None.
      UserError: the source holds tokens outside the vocabulary. Checked only where the
        values are known and the model has a `source_size`.
    """
    missing = [name for name in _METHODS if not callable(getattr(model, name, None))]
    if missing:
        raise TypeError(
            f"{caller} takes a StepModel, not {with_article(model)}, which has no "
            f"{' and no '.join(missing)}. Pass the step_model of a loaded model, "
            "t2t_jax.step_model(module, params), or a class with the methods "
            f"{', '.join(_METHODS)}."
        )
    is_text = any(
        isinstance(leaf, str | bytes)
        or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "USO")
        for leaf in jax.tree.leaves(source_BxS)
    )
    if is_text or source_BxS is None:
        raise TypeError(
            f"{caller} takes integer tokens of shape [B, S], not "
            f"{'text' if is_text else 'None'}. Pass model.encode(lines)."
        )
    size = getattr(model, "source_size", None)
    if size is not None and not isinstance(source_BxS, jax.core.Tracer):
        _check_tokens(np.asarray(source_BxS), size)
    return jnp.asarray(source_BxS)


def check_returns(
    model: StepModel,
    memory: PyTree,
    tokens_BxW: jax.ShapeDtypeStruct,
    *,
    params: SearchParams,
    length: int,
    caller: str,
) -> None:
    """Checks by their shapes what the methods of a model return; computes nothing.

    Args:
      memory: what `encode` has returned.
      tokens_BxW: the shape of the tokens of a step.
      caller: "beam_search" for a search that calls `reorder` too.

    Raises:
      TypeError: it is not what a `StepModel` returns.
    """
    require = functools.partial(_require, model, caller)
    rows, beams = tokens_BxW.shape
    by_rows = f"arrays that start with axis B={rows}"
    require("encode", by_rows, _without_rows(jax.eval_shape(lambda: memory), rows))
    first = jax.eval_shape(lambda: model.init_cache(memory, beams, length))
    require("init_cache", by_rows, _without_rows(first, rows))
    reorders = caller == "beam_search"
    # It may note a pending reordering in the cache, which `step` removes.
    cache = jax.eval_shape(model.reorder, first, tokens_BxW) if reorders else first
    require("reorder", by_rows, _without_rows(cache, rows))
    kept = dtype_shapes(first)
    own = {**kept, **dtype_shapes(cache)}
    moved = describe_differences(kept, {name: own[name] for name in kept})
    require("reorder", "a cache of the same shapes", moved)
    found = jax.eval_shape(
        lambda tokens, cache, position: model.step(tokens, memory, cache, position),
        *(tokens_BxW, cache, jax.ShapeDtypeStruct((), jnp.int32)),
    )
    is_pair, kind = isinstance(found, tuple) and len(found) == 2, type(found).__name__
    require("step", "a pair (logits, cache)", "" if is_pair else f"a {kind}")
    logits, after = found
    largest = max(params.ids[:3])  # pad, bos, eos
    rule = f"logits [B={rows}, W={beams}, V > {largest}] of floating point"
    require("step", rule, _not_logits(logits, (rows, beams), largest))
    same, method = "a cache of the tree, shapes and types that it was given", "step"
    if reorders and not (_differences(first, after) and _differences(cache, after)):
        after, method = jax.eval_shape(model.reorder, after, tokens_BxW), "reorder"
    require(method, same, _differences(cache, after))
    grown = jax.eval_shape(lambda cache: model.grow(cache, length), cache)
    require("grow", same, _differences(cache, grown))


def _require(model: StepModel, caller: str, method: str, rule: str, wrong: str) -> None:
    """Raises a TypeError if a method of a model has returned something wrong."""
    name = f"{type(model).__name__}.{method}"
    if wrong:
        raise TypeError(
            f"{caller}: {name} must return {rule}; it returned {wrong}. "
            f"Change {name}: see t2t_jax.StepModel."
        )


def _without_rows(tree: PyTree, rows: int) -> str:
    """Describes an array that does not start with an axis of `rows`; "" for none."""
    for path, leaf in leaves_by_path(tree).items():
        if leaf.shape[:1] != (rows,):
            return f"{dtype_shape(leaf)} {path}".rstrip()
    return ""


def _not_logits(logits: PyTree, leading: tuple[int, ...], largest: int) -> str:
    """Describes what are no logits of all tokens, up to `largest` at least."""
    texts = dtype_shapes(logits)
    if (
        "" in texts  # an array, and no tree of them
        and jnp.issubdtype(logits.dtype, jnp.floating)
        and logits.shape[:-1] == leading
        and logits.shape[-1] > largest
    ):
        return ""
    return ", ".join(texts.values()) or "no array"


def _differences(expected: PyTree, found: PyTree) -> str:
    """Describes how a tree differs from the expected one; "" if it does not."""
    reason = describe_differences(dtype_shapes(expected), dtype_shapes(found))
    structure = jax.tree.structure(found)
    is_same = structure in [jax.tree.structure(expected)]
    return reason or ("" if is_same else str(structure))


def require_params(params: object, kind: type, *, caller: str, name: str) -> None:
    """Checks that the parameters of a search are of its kind.

    Raises:
      TypeError: they are not.
    """
    if not isinstance(params, kind):
        takes = f"{caller} takes {kind.__name__} as {name}"
        raise wrong_type(takes, params, f"Pass t2t_jax.{kind.__name__}(…).")


def _check_tokens(tokens: npt.NDArray[Any], size: int) -> None:
    """Checks the range of tokens; JAX would clamp them."""
    if not tokens.size or not np.issubdtype(tokens.dtype, np.integer):
        return
    least, most = tokens.min(), tokens.max()
    if least < 0 or most >= size:
        raise UserError(
            f"source_BxS with tokens from {least} to {most} must lie in [0, {size}), "
            "the source vocabulary. Pass model.encode(lines)."
        )


def validated_max_length(
    source_BxS: Array,
    prefixes_BxP: Array | None,
    search_params: SearchParams,
    *,
    max_extra_tokens: int,
    max_length: int | None = None,
) -> int:
    """Checks source, bounds and prefixes, and returns T, the capacity of the outputs.

    Args:
      max_length: bound of the caller; None means S + `max_extra_tokens`, or
        `max_length_ratio` * S where that is less, or P + 1 where that is more.

    Raises:
      UserError: the source is not [B, S] whole numbers, a bound is too small, or the
        prefixes are not [B, P] whole numbers, are too long, or hold bos, eos, or a pad
        before another token.

    Example:
      >>> from t2t_jax.decoding.search.static_params import BeamParams
      >>> prefixes = jnp.array([[7, 8, 9]])
      >>> source, params = jnp.array([[5, 2]]), BeamParams()
      >>> validated_max_length(source, prefixes, params, max_extra_tokens=1)
      4
    """
    shape, dtype = jnp.shape(source_BxS), jnp.result_type(source_BxS)
    problems = ErrorCollector(root="")
    bounds = {"max_extra_tokens": (max_extra_tokens, 0), "max_length": (max_length, 1)}
    for name, (value, least) in bounds.items():
        holds = is_whole(value, least=least) or (name == "max_length" and value is None)
        rule = f"be a whole number of at least {least}"
        problems.require(name, repr(value), holds, rule)
    problems.check(
        len(shape) == 2 and jnp.issubdtype(dtype, jnp.integer),
        f"source_BxS of shape {shape} and type {dtype} must be [B, S] whole numbers. "
        "Pass one row of token ids per sentence.",
    )
    problems.raise_if_any(UserError)
    width = 0 if prefixes_BxP is None else (jnp.shape(prefixes_BxP) or (0,))[-1]
    if max_length is None:
        ratio = search_params.max_length_ratio
        longest = longest_output(shape[1], max_extra_tokens, max_length_ratio=ratio)
        max_length = max(longest, width + 1)
    if prefixes_BxP is not None:
        _check_prefixes(
            prefixes_BxP, rows=shape[0], max_length=max_length, ids=search_params.ids
        )
    return max_length


def _check_prefixes(
    prefixes_BxP: Array, *, rows: int, max_length: int, ids: SpecialIds
) -> None:
    shape, dtype = jnp.shape(prefixes_BxP), jnp.result_type(prefixes_BxP)
    is_valid = len(shape) == 2 and shape[0] == rows and 0 < shape[1] < max_length
    is_valid &= jnp.issubdtype(dtype, jnp.integer)
    if is_valid and not isinstance(prefixes_BxP, jax.core.Tracer):
        tokens = np.asarray(prefixes_BxP)
        gap = (tokens[:, :-1] == ids.pad) & (tokens[:, 1:] != ids.pad)
        is_special = np.isin(tokens, (ids.bos, ids.eos)) | (tokens < 0)
        is_valid = not (gap.any() or is_special.any())
    if not is_valid:
        raise UserError(
            f"prefixes_BxP of shape {shape} and type {dtype} must be [B={rows}, P] "
            f"whole numbers with 0 < P < {max_length}, without bos and eos, and with "
            "pad only after the last token of a row. Pass one row of token ids per "
            "sentence, or raise max_extra_tokens or max_length."
        )
