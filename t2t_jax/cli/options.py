"""The flags of the command line: what each is for, in which modes, and its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from t2t_jax.config import Config
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.workdir import Workdir

MODES = {
    "train": "trains, or resumes what --workdir holds",
    "prepare": "reads, filters and encodes the text of a run; trains nothing",
    "translate": "translates stdin (or --input) to stdout (or --output)",
    "evaluate": "scores --source against --reference, one JSON object on stdout",
    "score": "prints the log-probability of each pair of --source and --reference",
    "average": "writes the mean of several checkpoints to the directory --to",
    "describe": "says what a configuration is and costs; trains nothing",
    "attention": "draws who looks at whom in a --text, into the directory --to",
    "show_batch": "prints the text that a training step has read, or will read",
    "figures": "draws equation 3 and the positional encoding into --to",
}
"""What the program can do, and what each of it is."""


TOGETHER = ("train", "translate", "evaluate")
"""The modes that several processes do together."""

READERS = ("translate", "evaluate", "score")
"""The modes that leave a run as it is, so that a signal may end them at any time."""


class Flag(NamedTuple):
    """One flag beside `--config`.

    Attributes:
      default: its value where it is not given; "false" makes it a switch.
      modes: those in which it means something; in others it is refused.
      help: one sentence.
      needed: the modes that cannot do without it.
      unless: a switch with which they can.
      rule: what a value must be, a name in `t2t_jax.cli.flag_rules`; "" is anything.
    """

    default: str
    modes: tuple[str, ...]
    help: str
    needed: tuple[str, ...] = ()
    unless: str = ""
    rule: str = ""


_PAIRS = ("evaluate", "score")
_TEXT = (*_PAIRS, "average")

COMPANIONS = {
    ("evaluate", "last"): "protocol",
    ("evaluate", "force"): "protocol",
    ("evaluate", "target_language"): "protocol",
    ("describe", "mfu"): "peak_tflops",
}
"""In a mode, a flag that means nothing without another one."""

RIVALS = {("average", "last"): "average_steps"}
"""In a mode, two flags of which one would be ignored."""

FORMATS = {"describe": ("text", "json"), "score": ("tsv", "jsonl")}
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
        ("evaluate", "translate", "score", "attention"),
        "Which to use: best, last, or a step.",
    ),
    "source": Flag("", _TEXT, "Source lines, plain or .gz.", _PAIRS, rule="path"),
    "reference": Flag(
        "", _TEXT, "Raw reference lines, plain or .gz.", _PAIRS, rule="path"
    ),
    "input": Flag("-", ("translate",), "File to translate; - is stdin.", rule="path"),
    "output": Flag(
        "-", ("translate", "score"), "Where results go; - is stdout.", rule="path"
    ),
    "stream": Flag(
        "false", ("translate",), "Answers each line as it comes, not all at the end."
    ),
    "format": Flag(
        "", ("describe", "score"), "describe: text or json; score: tsv or jsonl."
    ),
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
        ("average", "attention", "figures"),
        "Directory of the averaged model, or of the pictures.",
        needed=("average", "attention", "figures"),
        unless="sliding",
        rule="path",
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
      checkpoint: `best`, `last` or a step.
      source: file of source lines.
      reference: file of reference lines.
      input: file to translate; `-` is stdin.
      output: where results go; `-` is stdout.
      stream: whether each line is answered as it comes.
      format: of the results; "" is the mode's first.
      protocol: "" or "vaswani2017".
      baseline: file of another system's translations, or "".
      hypotheses: file to write the translations to, or "".
      target_language: code of the reference's language.
      last: number of periodic checkpoints to average; 0 means `checkpoint.keep`.
      average_steps: the steps to average instead, if any were named.
      force: whether uneven spacing is taken as it is.
      sliding: whether to score a window of checkpoints that slides.
      to: directory of the averaged model, or of pictures.
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
    checkpoint: str
    source: str
    reference: str
    input: str
    output: str
    stream: bool
    format: str
    protocol: str
    baseline: str
    hypotheses: str
    target_language: str
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
