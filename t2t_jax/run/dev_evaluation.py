"""Evaluation during training: loss and BLEU on the development set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import jax
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.decoding.text.distributed_translate import make_translate
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.model.architectures import make_step_model
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.sharding.mesh import local_batch_shard, row_shards
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.training.loss import compile_evaluation
from t2t_jax.types import Batch


def make_evaluator(
    config: Config,
    text: PreparedData,
    *,
    module: nn.Module,
    mesh: Mesh,
    processes: Processes = SINGLE_PROCESS,
    is_cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda text: None,
) -> Evaluator | None:
    """Makes the evaluator of a run.

    The loss is computed on global batches over the full mesh. For BLEU each process
    translates a share of the lines with all parameters; the translations are gathered,
    so that every process computes the same BLEU.

    Args:
      is_cancelled: polled during the evaluation; True cancels it.
      progress: called with a line of text about the progress of the evaluation.

    Returns:
      None if evaluation is off.
    """
    if text.dev is None:
        return None
    lines = text.dev_lines[: config.evaluation.bleu_sentences or None]
    share = local_batch_shard(mesh, process=jax.process_index())

    def batches() -> Iterator[Batch]:
        multiple = row_shards(mesh)
        for batch in text.dev_batches(row_multiple=multiple, share=share):
            yield make_global_batch(batch, mesh)

    return Evaluator(
        sums=compile_evaluation(
            module,
            label_smoothing=config.training.label_smoothing,
            mesh=mesh,
            loss_chunks=config.training.loss_chunks,
        ),
        batches=batches,
        translate=make_translate(
            partial(make_step_model, module),
            vocabularies=text.vocabularies,
            config=config.decoding,
            processes=processes,
            is_cancelled=is_cancelled,
        ),
        sources=[source for source, _ in lines],
        references=[reference for _, reference in lines],
        max_unfinished=config.evaluation.max_unfinished,
        progress=progress,
    )
