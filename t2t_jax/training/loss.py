"""The forward pass of a batch, and its loss over the real target tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.functional.chunked_loss import chunked_loss_sums
from t2t_jax.functional.losses import LossSums, loss_sums
from t2t_jax.model.embedding import Embedding
from t2t_jax.sharding.rules import batch_sharding, replicated
from t2t_jax.training.metrics import Sums
from t2t_jax.types import Batch, Params


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
      module: its `__call__` takes the arrays of a `Batch`.
      label_smoothing: probability mass spread over the vocabulary.
      dropout_key: PRNG key of dropout; None for no dropout.
      loss_chunks: chunks of each target for which logits and loss are computed one
        after the other. Above 1 the module must have a `head`, as `Transformer` has.

    Paper: §5.4.
    """
    real_BxT = batch.target_segments > 0
    if loss_chunks > 1:
        in_chunks = partial(
            _loss_head, batch, label_smoothing=label_smoothing, chunks=loss_chunks
        )
        module = module.clone(head=in_chunks)
    found: Any = module.apply(
        {"params": params},
        batch.source,
        batch.target_inputs,
        source_segments=batch.source_segments,
        target_segments=batch.target_segments,
        source_positions=batch.source_positions,
        target_positions=batch.target_positions,
        rows=batch.rows,
        deterministic=dropout_key is None,
        rngs=None if dropout_key is None else {"dropout": dropout_key},
    )
    if loss_chunks == 1:
        found = loss_sums(
            found,
            batch.target_outputs,
            real_x=real_BxT,
            label_smoothing=label_smoothing,
        )
    return Sums(
        **found._asdict(),
        target_tokens=jnp.sum(real_BxT, dtype=jnp.int32),
        source_tokens=jnp.sum(batch.source_segments > 0, dtype=jnp.int32),
        slots=jnp.asarray(real_BxT.size + batch.source.size, jnp.int32),
    )


def _loss_head(
    batch: Batch,
    pre_softmax: Embedding,
    y_BxTxD: jax.Array,
    *,
    label_smoothing: float,
    chunks: int,
) -> LossSums:
    """Computes the loss in place of the logits, as the head of a model."""
    return chunked_loss_sums(
        y_BxTxD,
        pre_softmax.table,
        batch.target_outputs,
        real_BxT=batch.target_segments > 0,
        label_smoothing=label_smoothing,
        chunks=chunks,
    )


def compile_evaluation(
    module: nn.Module, *, label_smoothing: float, mesh: Mesh, loss_chunks: int = 1
) -> Callable[[Params, Batch], Sums]:
    """Returns a jitted `(params, batch) -> Sums` without dropout."""
    sums = partial(
        forward_loss, module, label_smoothing=label_smoothing, loss_chunks=loss_chunks
    )
    return jax.jit(
        sums,
        in_shardings=(None, batch_sharding(mesh)),
        out_shardings=replicated(mesh),
    )
