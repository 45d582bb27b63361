"""Steps that made no update: what people are told of them, and when it is enough."""

from __future__ import annotations

import shlex
from pathlib import Path

from t2t_jax.errors import DivergedError
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.progress import Record


def skip_message(record: Record, *, workdir: Path) -> str:
    """Says in one line that a step made no update, and how to see what it read.

    Args:
      record: of kind `skipped`.
    """
    step = record["step"]
    return (
        f"WARNING: step {step:,} made no update: {_figures(record)}, from batch "
        f"{record['batch']} of epoch {record['epoch']}. Its text: "
        f"--mode=show_batch --workdir={shlex.quote(str(workdir))} --step={step}"
    )


def check_divergence(record: Record, *, config: TrainingConfig) -> None:
    """Ends a run that goes on without getting on.

    Args:
      record: of kind `skipped`, of the last step.
      config: how many such steps in a row are too many, and whether one is.

    Raises:
      DivergedError: this step is one too many.
    """
    step, number = record["step"], record["in_a_row"]
    is_finite = None not in (record["loss"], record["gradient_norm"])
    if number >= config.max_bad_steps:
        what = f"Steps {step - number + 1:,} to {step:,}" if number > 1 else "A step"
        told = f"{what} made no update (training.max_bad_steps={config.max_bad_steps})"
    elif config.on_nonfinite == "stop" and not is_finite:
        told = "A step made no update (training.on_nonfinite=stop)"
        number = 1
    else:
        return
    raise DivergedError(
        f"{told}. {_places(record, number)}, and step {step:,} had {_figures(record)}."
        "\nAll checkpoints are good: they hold nothing of such steps. --mode=show_batch"
        f" --step={step} with the same flags prints what that step read.\nMend that "
        "text, or begin again in a new workdir with a lower "
        "config.optimizer.peak_learning_rate or more config.optimizer.warmup_steps."
    )


def _figures(record: Record) -> str:
    """Says what was wrong with a step."""
    loss, norm = record["loss"], record["gradient_norm"]
    told = [
        f"{name} {'not finite' if value is None else format(value, '.4g')}"
        for name, value in (("loss", loss), ("gradient norm", norm))
    ]
    is_finite = None not in (loss, norm)
    return ", ".join(told) + is_finite * " (above training.skip_gradient_norm)"


def _places(record: Record, number: int) -> str:
    """Says what the last `number` steps read: batches that follow one another."""
    epoch, last = record["epoch"], record["batch"]
    if number == 1:
        return f"It read batch {last} of epoch {epoch}"
    first = last - number + 1
    if first < 0:  # Where the epoch before ended is not known here.
        return f"They read all up to batch {last} of epoch {epoch}"
    return f"They read batches {first} to {last} of epoch {epoch}"
