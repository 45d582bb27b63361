"""Warnings of divergence: skipped updates, and a loss worse than a uniform guess."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from t2t_jax.errors import DivergedError
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.progress import Record


def skip_message(record: Record, *, workdir: Path) -> str:
    """Returns the one-line warning of a skipped update."""
    step = record["step"]
    return (
        f"WARNING: Skipped the update of step {step:,} ({_reasons(record)}; epoch "
        f"{record['epoch']}, batch {record['batch']}). To print its text: "
        f"--mode=show_batch --workdir={shlex.quote(str(workdir))} --step={step}"
    )


def check_divergence(record: Record, *, config: TrainingConfig) -> None:
    """Aborts after too many consecutive skipped updates.

    Raises:
      DivergedError: `max_bad_steps` is reached, or the loss is not finite and
        `on_nonfinite` is "stop".
    """
    step, number = record["step"], record["in_a_row"]
    is_finite = None not in (record["loss"], record["gradient_norm"])
    if number >= config.max_bad_steps:
        limit = f"training.max_bad_steps={config.max_bad_steps}"
    elif config.on_nonfinite == "stop" and not is_finite:
        limit, number = "training.on_nonfinite=stop", 1
    else:
        return
    steps = f"s of steps {step - number + 1:,} to" if number > 1 else " of step"
    raise DivergedError(
        f"Training diverged: skipped the update{steps} {step:,} ({limit}; "
        f"{_batches(record, number)}). Step {step:,} had {_reasons(record)}.\n"
        "All checkpoints are valid: skipped updates do not change them. "
        f"--mode=show_batch --step={step} with the same flags prints the text of that "
        "step.\nFix that text, or train in a new workdir with a lower "
        "config.optimizer.peak_learning_rate or more config.optimizer.warmup_steps."
    )


def uniform_guess_warning(record: Record, *, vocab_size: int, warmup_steps: int) -> str:
    """Returns the warning of a development loss worse than a uniform guess, or "".

    Before the end of the warm-up, where the model has hardly learned, the loss may be
    twice that of the guess.

    Args:
      record: an evaluation.
    """
    step, nll, uniform = record["step"], record["nll"], math.log(vocab_size)
    if nll <= uniform * (1 if step >= warmup_steps else 2):
        return ""
    return (
        f"WARNING: The development loss at step {step:,}, {nll:.4g} nats per token "
        f"without smoothing, is worse than a uniform guess, log({vocab_size:,}) = "
        f"{uniform:.2f}: training may have diverged. Train in a new workdir with a "
        "lower config.optimizer.peak_learning_rate or more "
        "config.optimizer.warmup_steps."
    )


def _reasons(record: Record) -> str:
    loss, norm = record["loss"], record["gradient_norm"]
    values = [
        f"{name} {'not finite' if value is None else format(value, '.4g')}"
        for name, value in (("loss", loss), ("gradient norm", norm))
    ]
    is_finite = None not in (loss, norm)
    return ", ".join(values) + is_finite * " (above training.skip_gradient_norm)"


def _batches(record: Record, number: int) -> str:
    epoch, last = record["epoch"], record["batch"]
    if number == 1:
        return f"epoch {epoch}, batch {last}"
    first = last - number + 1
    if first < 0:  # The number of batches of the epoch before is unknown here.
        return f"up to epoch {epoch}, batch {last}"
    return f"epoch {epoch}, batches {first} to {last}"
