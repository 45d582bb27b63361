"""Declares the flags of the command line, and `Options`, their parsed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t2t_jax.cli.flags.modes import DISTRIBUTED_MODES, MODES
from t2t_jax.cli.flags.translation import TRANSLATION_FLAGS
from t2t_jax.cli.flags.values import PROTOCOLS, Flag
from t2t_jax.config import Config
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.exporting.formats import EXPORT_FORMATS, QUANTIZATIONS
from t2t_jax.run.workdir import Workdir

_PAIRS = ("evaluate", "score")
_TEXT = (*_PAIRS, "average", "export")

FORMATS = {
    "describe": ("text", "json"),
    "export": EXPORT_FORMATS,
    "score": ("tsv", "jsonl"),
    "translate": ("text", "tsv", "jsonl"),
}
"""Mode -> valid values of `--format`, the default first."""

FLAGS = {
    "mode": Flag(
        "train",
        tuple(MODES),
        "What to do; the mode's name may also stand first, without --mode=.",
        metavar="MODE",
        choices=tuple(MODES),
    ),
    "workdir": Flag(
        "",
        tuple(mode for mode in MODES if mode != "figures"),
        "Directory of the run, or of an averaged or exported model.",
        rule="path",
        metavar="DIR",
    ),
    "checkpoint": Flag(
        "best",
        ("evaluate", "translate", "score", "attention", "export"),
        "Checkpoint to use: the one with the best development BLEU, the last one, or "
        "the one of a step.",
        metavar="best|last|STEP",
    ),
    "source": Flag(
        "",
        _TEXT,
        "Source sentences, one per line; plain text or .gz.",
        _PAIRS,
        rule="path",
        metavar="FILE",
    ),
    "reference": Flag(
        "",
        _TEXT,
        "Untokenized reference translations, one per line; plain text or .gz.",
        _PAIRS,
        rule="path",
        metavar="FILE",
    ),
    "output": Flag(
        "-",
        ("translate", "score"),
        "File for the results; - is stdout.",
        rule="path",
        metavar="FILE",
    ),
    "format": Flag(
        "",
        tuple(FORMATS),
        "Format of the results.",
        needed=("export",),
        metavar="FORMAT",
    ),
    **TRANSLATION_FLAGS,
    "protocol": Flag(
        "",
        ("evaluate",),
        "Evaluate as the paper does: checkpoint averaging, its beam search, bootstrap "
        "intervals and its tokenized BLEU.",
        rule="protocol",
        metavar="NAME",
        choices=PROTOCOLS,
    ),
    "baseline": Flag(
        "",
        ("evaluate",),
        "Another system's translations of --source, for a paired significance test.",
        rule="path",
        metavar="FILE",
    ),
    "hypotheses": Flag(
        "",
        ("evaluate",),
        "File to write the translations to.",
        rule="path",
        metavar="FILE",
    ),
    "target_language": Flag(
        "de",
        ("evaluate",),
        "Language code of the target, for the paper's tokenization.",
        metavar="CODE",
    ),
    "to": Flag(
        "",
        ("average", "attention", "figures", "export"),
        "Directory to create for the result.",
        needed=("average", "attention", "figures", "export"),
        unless="sliding",
        rule="path",
        metavar="DIR",
    ),
    "quantization": Flag(
        "",
        ("export",),
        "Number format of --format=ctranslate2; float32 if not given.",
        metavar="TYPE",
        choices=QUANTIZATIONS,
    ),
    "max_bleu_loss": Flag(
        "",
        ("export",),
        "Largest accepted loss of BLEU by --format=ctranslate2; 1 if not given, 0.5 "
        "for float16.",
        rule="loss",
    ),
    "check_lines": Flag(
        "100",
        ("export",),
        "Number of lines, of --source or else data.dev, for the comparison with the "
        "exported model.",
        rule="count",
        metavar="N",
    ),
    "last": Flag(
        "",
        ("average", "evaluate"),
        "Number of newest periodic checkpoints to average; checkpoint.keep if not "
        "given.",
        rule="count",
        metavar="N",
    ),
    "average_steps": Flag(
        "",
        ("average",),
        "Steps of the checkpoints to average instead, such as 1000,2000,3000.",
        rule="steps",
        metavar="STEPS",
    ),
    "force": Flag(
        "false",
        ("average", "evaluate"),
        "Also average checkpoints that are not evenly spaced.",
    ),
    "sliding": Flag(
        "false",
        ("average",),
        "Score the averages of all --last consecutive checkpoints instead of writing "
        "one.",
    ),
    "devices": Flag(
        "",
        ("describe",),
        "Number of devices to describe; those of this machine or of the mesh if not "
        "given.",
        rule="count",
        metavar="N",
    ),
    "peak_tflops": Flag(
        "",
        ("describe",),
        "Peak of one device in model.compute_dtype, in TFLOP/s, to estimate hours.",
        rule="positive",
        metavar="X",
    ),
    "mfu": Flag(
        "0.4",
        ("describe",),
        "Fraction of --peak_tflops that training reaches (model FLOP utilization).",
        rule="fraction",
        metavar="X",
    ),
    "text": Flag(
        "",
        ("attention",),
        "Source sentence to translate and plot.",
        needed=("attention",),
        metavar="SENTENCE",
    ),
    "target": Flag(
        "",
        ("attention",),
        "Its translation; the model's own if not given.",
        metavar="SENTENCE",
    ),
    "layer": Flag(
        "all",
        ("attention",),
        "Layers to plot, from 0, such as 0,5; or all.",
        metavar="LAYERS",
    ),
    "head": Flag(
        "all",
        ("attention",),
        "Heads to plot, from 0, such as 0,5; or all.",
        metavar="HEADS",
    ),
    "step": Flag(
        "",
        ("show_batch",),
        "Training step whose batch is printed, from 1.",
        needed=("show_batch",),
        rule="count",
        metavar="STEP",
    ),
    "coordinator_address": Flag(
        "",
        DISTRIBUTED_MODES,
        "Address of process 0, for processes started by hand; not needed under Slurm "
        "or on a TPU pod.",
        rule="address",
        metavar="HOST:PORT",
    ),
    "num_processes": Flag(
        "",
        DISTRIBUTED_MODES,
        "Number of processes started by hand.",
        rule="count",
        metavar="N",
    ),
    "process_id": Flag(
        "",
        DISTRIBUTED_MODES,
        "Rank of this process, from 0.",
        rule="index",
        metavar="I",
    ),
}

IN_MODE = {
    ("train", "workdir"): "Directory of the run, created or resumed; runs/NAME of the "
    "configuration if not given.",
    ("prepare", "workdir"): "Directory of the run to prepare; runs/NAME of the "
    "configuration if not given.",
    ("describe", "workdir"): "Directory of a run to describe; the configuration alone "
    "if there is none.",
    ("export", "to"): "Directory to create for the exported model.",
    ("export", "format"): "Format of the exported model.",
    ("export", "source"): "Source sentences for the comparison with the exported "
    "model, instead of data.dev.",
    ("export", "reference"): "Their reference translations.",
    ("average", "source"): "With --sliding: sentences to score on, instead of "
    "data.dev.",
    ("average", "reference"): "With --sliding: their reference translations.",
    ("average", "to"): "Directory to create for the averaged model; optional with "
    "--sliding.",
    ("attention", "to"): "Directory to create for the arrays and plots.",
    ("figures", "to"): "Directory to create for the plots.",
    ("evaluate", "last"): "With --protocol: number of newest periodic checkpoints to "
    "average; checkpoint.keep if not given.",
}
"""(mode, flag) -> a help text that replaces `Flag.help` in this mode."""


def flag_help(flag: str, mode: str) -> str:
    """Returns the help text of a flag in a mode."""
    return IN_MODE.get((mode, flag), FLAGS[flag].help)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Parsed flags; those of other modes have their defaults.

    The attributes without an entry here are the flags of the same name in `FLAGS`.

    Attributes:
      config: of the run; for an existing workdir its own, with the overrides.
      overrides: the `--config.KEY=VALUE` flags, including those of earlier commands.
      config_given: whether `--config` was given.
      input: file; `-` is stdin.
      output: file; `-` is stdout.
      shards: 0 if not given.
      ensemble: directories of more models.
      format: "" is the default of the mode.
      quantization: "" is float32.
      max_bleu_loss: None is the default of the format.
      last: number of checkpoints to average; 0 means `checkpoint.keep`.
      devices: 0 means those of this machine.
      peak_tflops: of one device, in TFLOP/s; 0 if not given.
      mfu: fraction of the peak, in (0, 1].
      layer: numbers separated by commas, or `all`.
      head: likewise.
      step: 0 if not given.
      num_processes: 0 if not given.
      process_id: rank; None if not given.
      processes: set once they are initialized.
    """

    mode: str
    config: Config
    overrides: dict[str, Any]
    workdir: Workdir
    config_given: bool
    checkpoint: str
    source: str
    reference: str
    input: str
    output: str
    stream: bool
    strict: bool
    prefixes: str
    token_scores: bool
    alignments: bool
    shards: int
    resume: bool
    ensemble: tuple[str, ...]
    format: str
    protocol: str
    baseline: str
    hypotheses: str
    target_language: str
    quantization: str
    max_bleu_loss: float | None
    check_lines: int
    last: int
    average_steps: tuple[int, ...]
    force: bool
    sliding: bool
    to: str
    devices: int
    peak_tflops: float
    mfu: float
    text: str
    target: str
    layer: str
    head: str
    step: int
    coordinator_address: str
    num_processes: int
    process_id: int | None
    processes: Processes = SINGLE_PROCESS
