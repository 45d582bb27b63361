"""The loss of a batch: sums over its target tokens, of one pass or of two; and metrics.

A metric over several batches is a ratio of sums: means are never averaged.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.errors import FlaxError

from t2t_jax.errors import ConfigError
from t2t_jax.functional.chunked_loss import Weights, chunked_loss_sums
from t2t_jax.functional.consistency_loss import chunked_consistency_sums
from t2t_jax.functional.losses import LossSums, loss_sums
from t2t_jax.model.architectures import (
    check_params,
    has_head,
    param_shapes,
    require_params_of,
)
from t2t_jax.model.embedding import Embedding
from t2t_jax.training.config import TrainingConfig
from t2t_jax.types import Array, Batch, Params

Scalar: TypeAlias = jax.Array | float

_LARGEST_EXPONENT = 700.0  # math.exp overflows a float64 soon after


class Sums(NamedTuple):
    """Sums over one batch; every field is a scalar.

    Attributes:
      loss: smoothed cross entropy, summed over target tokens, in nats.
      nll: cross entropy without smoothing, summed over target tokens, in nats.
      correct: target tokens whose most likely prediction is right.
      slots: token slots of both sides, padding included.
      consistency: divergence between two passes, summed over target tokens, in nats;
        None of one pass.
    """

    loss: Scalar
    nll: Scalar
    correct: Scalar
    target_tokens: Scalar
    source_tokens: Scalar
    slots: Scalar
    consistency: Scalar | None = None


def total(parts: Sequence[Sums]) -> Sums:
    """Adds the sums of several batches, as Python floats.

    The float32 and int32 of the devices would lose small terms, and overflow over a
    long window.
    """
    columns = zip(*(known(part) for part in parts), strict=True)
    return Sums(*(sum(map(float, column)) for column in columns))


def known(sums: Sums) -> tuple[Scalar, ...]:
    """Returns the fields that are not None."""
    return tuple(x for x in sums if x is not None)


def summarise(sums: Sums) -> dict[str, float]:
    """Computes per-token metrics.

    Returns:
      `loss` and `nll` in nats per target token, `perplexity` = exp(nll) per token,
      `accuracy` of the most likely token, `padding_fraction` of all slots; and
      `consistency` in nats per target token, if it was computed.

    Raises:
      ValueError: there are no target tokens.
    """
    tokens = float(sums.target_tokens)
    if tokens == 0:
        raise ValueError(
            "Metrics per token need at least one target token, but there are none. "
            "Check that the corpus has pairs shorter than data.max_length."
        )
    nll = float(sums.nll) / tokens
    real = tokens + float(sums.source_tokens)
    figures = {
        "loss": float(sums.loss) / tokens,
        "nll": nll,
        "perplexity": math.exp(min(nll, _LARGEST_EXPONENT)),
        "accuracy": float(sums.correct) / tokens,
        "padding_fraction": 1.0 - real / float(sums.slots),
    }
    if sums.consistency is not None:
        figures["consistency"] = float(sums.consistency) / tokens
    return figures


def training_loss(
    module: nn.Module,
    params: Params,
    batch: Batch,
    *,
    config: TrainingConfig,
    dropout_key: jax.Array,
) -> tuple[jax.Array, Sums]:
    """Returns the sum that a step differentiates, and all sums of the batch.

    With `training.simcut` or `training.r_drop` the model runs twice, with dropout masks
    of their own. Those of the first pass are those without these keys.

    Paper: §5.4; of two passes see `t2t_jax.functional.consistency_loss`.
    """
    if config.passes == 1:
        sums = forward_loss(
            module,
            params,
            batch,
            label_smoothing=config.label_smoothing,
            dropout_key=dropout_key,
            loss_chunks=config.loss_chunks,
        )
        return jnp.asarray(sums.loss), sums
    real_BxT = batch.target_segments > 0
    with_output = module.clone(head=_output)
    y_BxTxD, weights = _apply(with_output, params, batch, dropout_key=dropout_key)
    cut = with_output.clone(cutoff=config.simcut_probability if config.simcut else 0.0)
    second_key = jax.random.fold_in(dropout_key, 1)
    other_BxTxD, _ = _apply(cut, params, batch, dropout_key=second_key)
    found = chunked_consistency_sums(
        y_BxTxD,
        other_BxTxD,
        weights,
        words=(batch.target_outputs, real_BxT),
        label_smoothing=config.label_smoothing,
        weight=config.simcut or config.r_drop / 2,
        symmetric=config.r_drop > 0,
        chunks=config.loss_chunks,
    )
    terms = found._asdict()
    objective: jax.Array = terms.pop("objective")
    return objective, batch_sums(batch, real_BxT, **terms)


def forward_loss(
    module: nn.Module,
    params: Params,
    batch: Batch,
    *,
    label_smoothing: float,
    dropout_key: jax.Array | None = None,
    loss_chunks: int = 1,
) -> Sums:
    """Runs the model on a batch and sums the loss over its real target tokens.

    Args:
      dropout_key: None for no dropout.
      loss_chunks: chunks of each target for which logits and loss are computed one
        after the other, of a module with a `head`, as `Transformer` has.

    Paper: §5.4.
    """
    real_BxT = batch.target_segments > 0

    def loss(pre_softmax: Embedding, y_BxTxD: jax.Array) -> LossSums:
        return chunked_loss_sums(
            y_BxTxD,
            pre_softmax.table,
            batch.target_outputs,
            real_BxT=real_BxT,
            label_smoothing=label_smoothing,
            chunks=loss_chunks,
            bias_V=pre_softmax.bias,
        )

    if has_head(module):  # It computes the loss in place of the logits.
        found = _apply(module.clone(head=loss), params, batch, dropout_key=dropout_key)
    else:
        found = loss_sums(
            _apply(module, params, batch, dropout_key=dropout_key),
            batch.target_outputs,
            real_x=real_BxT,
            label_smoothing=label_smoothing,
        )
    return batch_sums(batch, real_BxT, **found._asdict())


def batch_logits(
    module: nn.Module,
    params: Params,
    batch: Batch,
    *,
    dropout_key: jax.Array | None = None,
) -> jax.Array:
    """Computes the logits of a packed batch, for a loss of one's own.

    Args:
      dropout_key: None for no dropout.

    Returns:
      [B, T, V] float32.

    Raises:
      ValueError: shapes do not fit, or a dropout key is needed.

    Example:
      The paper's loss, with a penalty on the normalizer of the softmax:

      >>> from t2t_jax.functional.losses import label_smoothed_nll
      >>> def loss(module, params, batch, dropout_key):
      ...     logits = batch_logits(module, params, batch, dropout_key=dropout_key)
      ...     targets, real = batch.target_outputs, batch.target_segments > 0
      ...     smoothed, _ = label_smoothed_nll(logits, targets, label_smoothing=0.1)
      ...     log_z = jax.nn.logsumexp(logits, axis=-1)
      ...     return jnp.sum(smoothed + 1e-4 * log_z**2, where=real)
    """
    logits: jax.Array = _apply(module, params, batch, dropout_key=dropout_key)
    return logits


def check_module(
    module: nn.Module, config: TrainingConfig, *, vocab_size: int
) -> Params:
    """Checks by shapes alone that a module can be trained as the Transformer is.

    Returns:
      The shapes of its parameters.

    Raises:
      ConfigError: it has no `head`, which a key of the training needs.
      TypeError: it is not a Linen module, is called in another way, or returns
        something else than logits.
    """
    if not isinstance(module, nn.Module):
        what = f"the class {module.__name__}" if isinstance(module, type) else module
        raise TypeError(
            f"module must be an object of a Flax Linen module, not {what!r:.60}. Pass "
            "Transformer(config), or an object of your own class."
        )
    params, batch = param_shapes(module), batch_of_shape((2, 3))
    logits = jax.eval_shape(partial(batch_logits, module), params, batch)
    found, name = f"{logits.dtype}{[*logits.shape]}", type(module).__name__
    if found != (wanted := f"float32{[2, 3, vocab_size]}"):
        raise TypeError(
            f"{name} must return logits of [B, T, V], here {wanted} with "
            f"vocabulary.size={vocab_size}, and returns {found}. Change the module, or "
            "config.vocabulary.size."
        )
    require_head(module, config)
    return params


def require_head(module: nn.Module, config: TrainingConfig) -> None:
    """Checks that a module has what the loss of a training takes the place of.

    Raises:
      ConfigError: it has no `head`, or one of its own, where a key needs another.
    """
    if not has_head(module) and (config.passes > 1 or config.loss_chunks > 1):
        raise ConfigError(
            "training.loss_chunks, training.r_drop and training.simcut replace the "
            "`head` of a Transformer, or of a subclass that leaves head, __call__ and "
            f"decode as they are, and {type(module).__name__} is none. Leave them out."
        )


def batch_of_shape(shape: tuple[int, int]) -> Batch:
    """Returns the shapes of a batch of (B, L), the same on both sides."""
    shapes = [shape] * (len(Batch._fields) - 1) + [shape[:1]]
    return Batch._make(jax.ShapeDtypeStruct(one, jnp.int32) for one in shapes)


def _apply(
    module: nn.Module, params: Params, batch: Batch, *, dropout_key: jax.Array | None
) -> Any:
    """Returns what the head of the model computes.

    Raises:
      TypeError: the module is not called as a `Transformer`.
      UserError: the parameters are those of another module.
    """
    arguments: dict[str, Any] = batch._asdict()
    tokens = (arguments.pop("source"), arguments.pop("target_inputs"))
    del arguments["target_outputs"]
    arguments["deterministic"] = dropout_key is None
    try:
        inspect.signature(module.__call__).bind(*tokens, **arguments)
    except TypeError as error:
        raise TypeError(
            f"{type(module).__name__}.__call__ must take (source, target_inputs, *, "
            f"{', '.join(arguments)}), as Transformer.__call__ does: {error}. Change "
            "its arguments."
        ) from error
    check_params(module, params)
    rngs = None if dropout_key is None else {"dropout": dropout_key}
    try:
        return module.apply({"params": params}, *tokens, **arguments, rngs=rngs)
    except (FlaxError, ValueError):
        require_params_of(module, params)
        raise


def batch_sums(batch: Batch, real_BxT: Array, **sums: Scalar) -> Sums:
    """Adds the numbers of tokens and slots of a batch."""
    return Sums(
        **sums,
        target_tokens=jnp.sum(real_BxT, dtype=jnp.int32),
        source_tokens=jnp.sum(batch.source_segments > 0, dtype=jnp.int32),
        slots=jnp.asarray(real_BxT.size + batch.source.size, jnp.int32),
    )


def _output(pre_softmax: Embedding, y_BxTxD: jax.Array) -> tuple[jax.Array, Weights]:
    """Returns everything needed to compute the logits, as the head of a model."""
    return y_BxTxD, (pre_softmax.table, pre_softmax.bias)
