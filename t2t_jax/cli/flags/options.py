"""The flags of the command line: what each is for, in which modes, and its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t2t_jax.cli.flags.modes import DISTRIBUTED_MODES, MODES
from t2t_jax.cli.flags.translation import TRANSLATION_FLAGS
from t2t_jax.cli.flags.values import PROTOCOLS, Flag
from t2t_jax.config import Config
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.exporting.formats import FORMS, QUANTIZATIONS
from t2t_jax.run.workdir import Workdir

_PAIRS = ("evaluate", "score")
_TEXT = (*_PAIRS, "average", "export")

FORMATS = {
    "describe": ("text", "json"),
    "score": ("tsv", "jsonl"),
    "translate": ("text", "tsv", "jsonl"),
}
"""What `--format` may be, the first where it is not given."""

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
        ("translate", "score", "export"),
        "File for the results; - is stdout.",
        rule="path",
        metavar="FILE",
    ),
    "format": Flag("", tuple(FORMATS), "Format of the results.", metavar="FORMAT"),
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
        "Number format of --to=ctranslate2; float32 if not given.",
        metavar="TYPE",
        choices=QUANTIZATIONS,
    ),
    "max_bleu_loss": Flag(
        "",
        ("export",),
        "By how much BLEU of --to=ctranslate2 may be lower; 1 if not given, of float16 "
        "0.5.",
        rule="loss",
    ),
    "check_lines": Flag(
        "100",
        ("export",),
        "Lines that the exported model is compared on, of --source or else data.dev.",
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
        "Average checkpoints that are not evenly spaced, too.",
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
        "Number of devices to describe; this machine's, or those that the mesh needs, "
        "if not given.",
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
        rule="share",
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
        "Address of process 0, to start processes by hand; not needed under Slurm or "
        "on a TPU pod.",
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
        "Number of this process, from 0.",
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
    ("export", "output"): "Directory to create for the exported model.",
    ("export", "to"): f"Form of the exported model: {', '.join(FORMS)}.",
    ("export", "source"): "Source sentences to compare the exported model on, instead "
    "of data.dev.",
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
"""What a flag is in one mode, if that is more exact than its `help`."""


_METAVARS = {("export", "to"): "FORM", ("export", "output"): "DIR"}


def metavar(flag: str, mode: str) -> str:
    """Returns what stands for the value of a flag in the help of a mode."""
    return _METAVARS.get((mode, flag), FLAGS[flag].metavar)


def meaning(flag: str, mode: str) -> str:
    """Returns the sentence about a flag in a mode."""
    return IN_MODE.get((mode, flag), FLAGS[flag].help)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for; what a mode has no use for keeps its default.

    Attributes:
      mode: one of `MODES`.
      config: of the run; in a workdir that exists, its own with the overrides.
      overrides: the `--config.KEY=VALUE`s, those of earlier commands included.
      workdir: the run's directory.
      config_given: whether there was a `--config`.
      checkpoint: `best`, `last` or a step.
      source: file of source lines.
      reference: file of reference lines.
      input: file to translate; `-` is stdin.
      output: where results go; `-` is stdout.
      stream: whether each line is answered as it comes.
      strict: whether a line that is not UTF-8 ends the job.
      prefixes: file of what each translation begins with, or "".
      token_scores: whether the log-probability of each token is shown.
      alignments: whether it is shown where the model looked for each token.
      shards: number of parts that are worked on; 0 where it was not given.
      resume: whether what is left of an earlier job is gone on with.
      ensemble: directories of more models, which translate together.
      format: of the results; "" is the mode's first.
      protocol: "" or "vaswani2017".
      baseline: file of another system's translations, or "".
      hypotheses: file to write the translations to, or "".
      target_language: code of the reference's language.
      quantization: of an export's numbers; "" is float32.
      max_bleu_loss: by how much an export's BLEU may be lower; None is as usual.
      check_lines: how many lines an export is checked on.
      last: number of periodic checkpoints to average; 0 means `checkpoint.keep`.
      average_steps: the steps to average instead, if any were named.
      force: whether uneven spacing is taken as it is.
      sliding: whether to score a window of checkpoints that slides.
      to: directory of the averaged model, or of pictures; the form of an export.
      devices: number of devices to describe; 0 means this machine's.
      peak_tflops: of one device; 0 where it was not given.
      mfu: share of the peak, in (0, 1].
      text: the sentence whose attention is drawn.
      target: its translation, or "".
      layer: numbers with commas between, or `all`.
      head: likewise.
      step: of training, whose batch is shown; 0 where it was not given.
      coordinator_address: host:port of process 0, or "".
      num_processes: how many run together; 0 where it was not given.
      process_id: which this is; None where it was not given.
      processes: all of them, once they have met.
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
