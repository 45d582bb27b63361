"""How a run is judged while it trains: loss and BLEU on the development set."""

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
    is_given_up: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda text: None,
) -> Evaluator | None:
    """Wires the evaluation of a run.

    The loss is that of global batches on the whole mesh. To translate, each process
    takes a share of the lines and all of the parameters; every process then has all
    translations, and so the same BLEU.

    Args:
      is_given_up: asked now and then whether an evaluation is to be broken off.
      progress: called with a line of text that says how far an evaluation is.

    Returns:
      The evaluator; None where evaluation is turned off.
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
            is_given_up=is_given_up,
        ),
        sources=[source for source, _ in lines],
        references=[reference for _, reference in lines],
        max_unfinished=config.evaluation.max_unfinished,
        progress=progress,
    )
