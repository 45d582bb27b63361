"""The flags of the command line: what each is for, in which modes, and its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t2t_jax.cli.flag_rules import Flag
from t2t_jax.cli.modes import MODES, TOGETHER
from t2t_jax.cli.translation_flags import TRANSLATION_FLAGS
from t2t_jax.config import Config
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.workdir import Workdir

_PAIRS = ("evaluate", "score")
_TEXT = (*_PAIRS, "average", "export")

COMPANIONS = {
    ("evaluate", "last"): "protocol",
    ("evaluate", "force"): "protocol",
    ("evaluate", "target_language"): "protocol",
    ("describe", "mfu"): "peak_tflops",
    ("export", "source"): "reference",
    ("export", "reference"): "source",
    ("translate", "resume"): "shards",
}
"""In a mode, a flag that means nothing without another one."""

RIVALS = {
    ("average", "last"): "average_steps",
    ("translate", "prefixes"): "stream",
    ("translate", "shards"): "stream",
    ("evaluate", "ensemble"): "protocol",
}
"""In a mode, two flags of which one would be ignored."""

FORMATS = {
    "describe": ("text", "json"),
    "score": ("tsv", "jsonl"),
    "translate": ("text", "tsv", "jsonl"),
}
"""What `--format` may be, the first where it is not given."""

FLAGS = {
    "mode": Flag("train", tuple(MODES), f"One of {', '.join(MODES)}."),
    "workdir": Flag(
        "",
        tuple(MODES),
        "Directory of the run; runs/<config> if not given.",
        rule="path",
    ),
    "checkpoint": Flag(
        "best",
        ("evaluate", "translate", "score", "attention", "export"),
        "Which to use: best, last, or a step.",
    ),
    "source": Flag("", _TEXT, "Source lines, plain or .gz.", _PAIRS, rule="path"),
    "reference": Flag(
        "", _TEXT, "Raw reference lines, plain or .gz.", _PAIRS, rule="path"
    ),
    "output": Flag(
        "-",
        ("translate", "score", "export"),
        "Where results go, - is stdout; the directory that export makes.",
        rule="path",
    ),
    "format": Flag(
        "",
        tuple(FORMATS),
        "describe: text or json; score: tsv or jsonl; translate: text, tsv or jsonl.",
    ),
    **TRANSLATION_FLAGS,
    "protocol": Flag(
        "",
        ("evaluate",),
        "vaswani2017: average, beam, bootstrap and scores of the paper.",
        rule="protocol",
    ),
    "baseline": Flag(
        "", ("evaluate",), "Translations to test against, a file.", rule="path"
    ),
    "hypotheses": Flag(
        "", ("evaluate",), "Where the translations go, a file.", rule="path"
    ),
    "target_language": Flag(
        "de", ("evaluate",), "Language code for the paper's tokenisation."
    ),
    "to": Flag(
        "",
        ("average", "attention", "figures", "export"),
        "Directory of the averaged model, or of the pictures; what export makes: "
        "model_dir, safetensors or ctranslate2.",
        needed=("average", "attention", "figures", "export"),
        unless="sliding",
        rule="path",
    ),
    "quantization": Flag(
        "",
        ("export",),
        "Of --to=ctranslate2: float32, float16, int8, int8_float32, int8_float16.",
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
        "Lines that an export is checked on, of --source or else data.dev.",
        rule="count",
    ),
    "last": Flag(
        "",
        ("average", "evaluate"),
        "How many of the newest periodic checkpoints; checkpoint.keep if not given.",
        rule="count",
    ),
    "average_steps": Flag(
        "", ("average",), "Their steps instead: 1000,2000,3000.", rule="steps"
    ),
    "force": Flag(
        "false", ("average", "evaluate"), "Averages checkpoints however spaced."
    ),
    "sliding": Flag(
        "false", ("average",), "Scores the mean of every --last checkpoints in a row."
    ),
    "devices": Flag(
        "",
        ("describe",),
        "How many; if not given, this machine's, or those that the mesh needs.",
        rule="count",
    ),
    "peak_tflops": Flag(
        "",
        ("describe",),
        "Peak of one device in config.model.compute_dtype, TFLOP/s.",
        rule="positive",
    ),
    "mfu": Flag(
        "0.4", ("describe",), "Share of the peak that training reaches.", rule="share"
    ),
    "text": Flag(
        "", ("attention",), "The sentence that is read.", needed=("attention",)
    ),
    "target": Flag("", ("attention",), "Its translation; the model's if not given."),
    "layer": Flag("all", ("attention",), "Layers to draw, from 0: 0,5 or all."),
    "head": Flag("all", ("attention",), "Heads to draw, from 0: 0,5 or all."),
    "step": Flag(
        "",
        ("show_batch",),
        "Which training step, from 1.",
        needed=("show_batch",),
        rule="count",
    ),
    "coordinator_address": Flag(
        "",
        TOGETHER,
        "host:port of process 0; not with SLURM or a TPU pod.",
        rule="address",
    ),
    "num_processes": Flag("", TOGETHER, "How many run together.", rule="count"),
    "process_id": Flag("", TOGETHER, "Which this is, from 0.", rule="index"),
}


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
    processes: Processes = ALONE
