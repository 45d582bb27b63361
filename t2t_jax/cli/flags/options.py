"""Declares the options of each mode: a dataclass whose fields are its flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_jax.cli.flags.values import (
    ADDRESS,
    COUNT,
    DIRECTORY,
    FILE,
    FRACTION,
    INDEX,
    LOSS,
    POSITIVE,
    STEPS,
    SWITCH,
    flag,
)
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.exporting.formats import EXPORT_FORMATS, QUANTIZATIONS

if TYPE_CHECKING:
    from t2t_jax.config import Config
    from t2t_jax.run.workdir import Workdir

_RUN = "Directory of the run, or of an averaged or exported model."


# Without eq and repr a class is made in a third of the time, which every start takes.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """What every mode takes.

    Attributes:
      mode: also the name of its file in `cli/modes`.
      examples: command lines, without the program's name.
      is_read_only: whether the mode never writes to a run: a signal may end it at any
        time.
      reads_config: whether it uses the configuration of the run in `workdir`.
      config: of the run; for an existing workdir its own, with the overrides.
      overrides: the `--config.KEY=VALUE` flags, including those of earlier commands.
    """

    mode: ClassVar[str]
    about: ClassVar[str]
    examples: ClassVar[tuple[str, str]]
    is_read_only: ClassVar[bool] = False
    reads_config: ClassVar[bool] = True

    config: Config
    overrides: dict[str, Any]
    config_given: bool
    workdir: Workdir = flag(_RUN, DIRECTORY)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunOptions(Options):
    """Of the modes that use an existing run or model."""

    workdir: Workdir = flag(_RUN, DIRECTORY, required=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelOptions(RunOptions):
    """Of the modes that load one checkpoint."""

    checkpoint: str = flag(
        "Checkpoint to use: the one with the best development BLEU, the last one, or "
        "the one of a step.",
        default="best",
        metavar="best|last|STEP",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DistributedOptions(Options):
    """Of the modes that can run on several processes.

    Attributes:
      processes: set once they are initialized.
    """

    coordinator_address: str = flag(
        "Address of process 0, for processes started by hand; not needed under Slurm "
        "or on a TPU pod.",
        ADDRESS,
    )
    num_processes: int = flag("Number of processes started by hand.", COUNT)
    process_id: int | None = flag("Rank of this process, from 0.", INDEX)
    processes: Processes = SINGLE_PROCESS


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainOptions(DistributedOptions):
    """Options of `--mode=train`."""

    mode = "train"
    about = "trains a model, or resumes the run in --workdir"
    examples = (
        "train",
        "train --config=own_text --workdir=runs/mine --config.steps=5000",
    )

    workdir: Workdir = flag(
        "Directory of the run, created or resumed; runs/NAME of the configuration if "
        "not given.",
        DIRECTORY,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrepareOptions(Options):
    """Options of `--mode=prepare`."""

    mode = "prepare"
    about = "reads, filters and encodes the text of a run, without training"
    examples = (
        "prepare --config=own_text --workdir=runs/mine",
        "prepare --config=wmt_en_de --config.data.workers=8",
    )

    workdir: Workdir = flag(
        "Directory of the run to prepare; runs/NAME of the configuration if not given.",
        DIRECTORY,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AverageOptions(RunOptions):
    """Options of `--mode=average`.

    Attributes:
      last: 0 means `checkpoint.keep`.
    """

    mode = "average"
    about = "averages several checkpoints into the model directory --to"
    examples = (
        "average --workdir=runs/mine --last=5 --to=runs/mine-average",
        "average --workdir=runs/mine --sliding --last=3",
    )

    source: str = flag(
        "With --sliding: sentences to score on, instead of data.dev.", FILE
    )
    reference: str = flag("With --sliding: their reference translations.", FILE)
    to: str = flag(
        "Directory to create for the averaged model; optional with --sliding.",
        DIRECTORY,
        required=True,
        unless="sliding",
    )
    last: int = flag(
        "Number of newest periodic checkpoints to average; checkpoint.keep if not "
        "given.",
        COUNT,
        excludes="average_steps",
    )
    average_steps: tuple[int, ...] = flag(
        "Steps of the checkpoints to average instead, such as 1000,2000,3000.", STEPS
    )
    force: bool = flag("Also average checkpoints that are not evenly spaced.", SWITCH)
    sliding: bool = flag(
        "Score the averages of all --last consecutive checkpoints instead of writing "
        "one.",
        SWITCH,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExportOptions(ModelOptions):
    """Options of `--mode=export`.

    Attributes:
      quantization: "" is float32.
      max_bleu_loss: None is the default of the quantization.
    """

    mode = "export"
    about = "exports the model for other software, as --format, into directory --to"
    examples = (
        "export --workdir=runs/mine --format=model_dir --to=mine",
        "export --workdir=runs/mine --format=ctranslate2 --quantization=int8 "
        "--to=mine-ct2",
    )

    source: str = flag(
        "Source sentences for the comparison with the exported model, instead of "
        "data.dev.",
        FILE,
        requires="reference",
    )
    reference: str = flag("Their reference translations.", FILE, requires="source")
    format: str = flag(
        "Format of the exported model.",
        metavar="FORMAT",
        choices=EXPORT_FORMATS,
        required=True,
    )
    to: str = flag(
        "Directory to create for the exported model.", DIRECTORY, required=True
    )
    quantization: str = flag(
        "Number format of --format=ctranslate2; float32 if not given.",
        metavar="TYPE",
        choices=QUANTIZATIONS,
    )
    max_bleu_loss: float | None = flag(
        "Largest accepted loss of BLEU by --format=ctranslate2; 1 if not given, 0.5 "
        "for float16.",
        LOSS,
    )
    check_lines: int = flag(
        "Number of lines, of --source or else data.dev, for the comparison with the "
        "exported model.",
        COUNT,
        default="100",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RecoverOptions(RunOptions):
    """Options of `--mode=recover`."""

    mode = "recover"
    about = "restores config.json and vocab.model of a run from a checkpoint"
    examples = (
        "recover --workdir=runs/mine",
        "recover --workdir=runs/mine --config=own_text:small",
    )
    reads_config = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DescribeOptions(Options):
    """Options of `--mode=describe`.

    Attributes:
      devices: 0 means those of this machine.
      peak_tflops: 0 if not given.
    """

    mode = "describe"
    about = "shows a configuration, its size and its costs, without training"
    examples = (
        "describe --config=table3:C_N2",
        "describe --config=wmt_en_de_big --devices=8 --peak_tflops=312 --format=json",
    )

    workdir: Workdir = flag(
        "Directory of a run to describe; the configuration alone if there is none.",
        DIRECTORY,
    )
    format: str = flag(
        "Format of the results.", metavar="FORMAT", choices=("text", "json")
    )
    devices: int = flag(
        "Number of devices to describe; those of this machine or of the mesh if not "
        "given.",
        COUNT,
    )
    peak_tflops: float = flag(
        "Peak of one device in model.compute_dtype, in TFLOP/s, to estimate hours.",
        POSITIVE,
    )
    mfu: float = flag(
        "Fraction of --peak_tflops that training reaches (model FLOP utilization).",
        FRACTION,
        default="0.4",
        requires="peak_tflops",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AttentionOptions(ModelOptions):
    """Options of `--mode=attention`."""

    mode = "attention"
    about = "plots the attention weights for a --text into the directory --to"
    examples = (
        'attention --workdir=runs/mine --text="A dog barks." --to=maps',
        'attention --workdir=runs/mine --text="A dog barks." --layer=0,1 --head=all '
        "--to=maps",
    )

    to: str = flag(
        "Directory to create for the arrays and plots.", DIRECTORY, required=True
    )
    text: str = flag(
        "Source sentence to translate and plot.", metavar="SENTENCE", required=True
    )
    target: str = flag(
        "Its translation; the model's own if not given.", metavar="SENTENCE"
    )
    layer: str = flag(
        "Layers to plot, from 0, such as 0,5; or all.", default="all", metavar="LAYERS"
    )
    head: str = flag(
        "Heads to plot, from 0, such as 0,5; or all.", default="all", metavar="HEADS"
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShowBatchOptions(RunOptions):
    """Options of `--mode=show_batch`."""

    mode = "show_batch"
    about = "prints the text of the batch of a training --step"
    examples = (
        "show_batch --workdir=runs/mine --step=1",
        "show_batch --workdir=runs/mine --step=4000",
    )

    step: int = flag(
        "Training step whose batch is printed, from 1.",
        COUNT,
        metavar="STEP",
        required=True,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiguresOptions(Options):
    """Options of `--mode=figures`."""

    mode = "figures"
    about = "plots equation 3 and the positional encoding into the directory --to"
    examples = ("figures --to=figures", "figures --to=runs/figures")
    reads_config = False

    workdir: Workdir  # not a flag
    to: str = flag("Directory to create for the plots.", DIRECTORY, required=True)
