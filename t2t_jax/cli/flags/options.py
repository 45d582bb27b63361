"""Declares the options of each mode: a dataclass whose fields are its flags.

The docstring of a class has the meaning of its fields, which `--help` shows.
"""

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
    LANGUAGES,
    LICENSE,
    LOSS,
    PATHS,
    PERCENT,
    POSITIVE,
    STEPS,
    SWITCH,
    flag,
)
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.exchange.formats import (
    EXPORT_FORMATS,
    IMPORT_FORMATS,
    POSITIONS,
    QUANTIZATIONS,
    QUANTIZED_FORMATS,
)

if TYPE_CHECKING:
    from t2t_jax.config import Config
    from t2t_jax.run.workdir import Workdir

_QUANTIZED = f"format={'|'.join(QUANTIZED_FORMATS)}"


# Without eq and repr a class is made in a third of the time, which every start takes.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """What every mode takes.

    Attributes:
      mode: What to do; the mode's name may also stand first, without --mode=.
      examples: Command lines, without the program's name.
      is_read_only: Whether the mode never writes to a run: a signal may end it at any
        time.
      reads_config: Whether it uses the configuration of the run in `workdir`.
      uses_jax: Whether it computes with JAX; else no cache of programs is set up, and
        a configuration has no effect and is refused.
      config: Of the run; for an existing workdir its own, with the overrides.
      overrides: The `--config.KEY=VALUE` flags, including those of earlier commands.
      workdir: Directory of the run, or of an averaged or exported model.
    """

    mode: ClassVar[str]
    about: ClassVar[str]
    examples: ClassVar[tuple[str, str]]
    is_read_only: ClassVar[bool] = False
    reads_config: ClassVar[bool] = True
    uses_jax: ClassVar[bool] = True

    config: Config
    overrides: dict[str, Any]
    config_given: bool
    workdir_given: bool = False
    workdir: Workdir = flag(DIRECTORY)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunOptions(Options):
    """Of the modes that use an existing run or model."""

    workdir: Workdir = flag(DIRECTORY, required=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelOptions(RunOptions):
    """Of the modes that load one checkpoint.

    Attributes:
      checkpoint: Checkpoint to use: the one with the best development BLEU, the last
        one, or the one of a step.
    """

    checkpoint: str = flag(default="best", metavar="best|last|STEP")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DistributedOptions(Options):
    """Of the modes that can run on several processes.

    Attributes:
      coordinator_address: Address of process 0, for processes started by hand; not
        needed under Slurm or on a TPU pod.
      num_processes: Number of processes started by hand.
      process_id: Rank of this process, from 0.
      processes: Set once they are initialized.
    """

    coordinator_address: str = flag(ADDRESS)
    num_processes: int = flag(COUNT)
    process_id: int | None = flag(INDEX)
    processes: Processes = SINGLE_PROCESS


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainOptions(DistributedOptions):
    """Options of `--mode=train`.

    Attributes:
      workdir: Directory of the run, created or resumed; runs/NAME of the configuration
        if not given.
    """

    mode = "train"
    about = "trains a model, or resumes the run in --workdir"
    examples = (
        "train",
        "train --config=own_text:small --config.steps=5000",
    )

    workdir: Workdir = flag(DIRECTORY)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrepareOptions(Options):
    """Options of `--mode=prepare`.

    Attributes:
      workdir: Directory of the run to prepare; runs/NAME of the configuration if not
        given.
    """

    mode = "prepare"
    about = "reads, filters and encodes the text of a run, without training"
    examples = (
        "prepare --config=own_text:small",
        "prepare --config=wmt_en_de --config.data.workers=8",
    )

    workdir: Workdir = flag(DIRECTORY)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AverageOptions(RunOptions):
    """Options of `--mode=average`.

    Attributes:
      source: With --sliding: sentences to score on, instead of data.dev.
      reference: With --sliding: their reference translations.
      to: Directory to create for the averaged model.
      last: Number of newest periodic checkpoints to average; checkpoint.keep if not
        given.
      average_steps: Steps of the checkpoints to average instead, such as
        1000,2000,3000.
      force: Also average checkpoints that are not evenly spaced.
      trained: Average the parameters that are trained, where those that are evaluated
        are their moving average or a schedule-free optimizer's.
      sliding: Score the averages of all --last consecutive checkpoints instead of
        writing one.
    """

    mode = "average"
    about = "averages several checkpoints into the model directory --to"
    examples = (
        "average --workdir=runs/mine --last=5 --to=runs/mine-average",
        "average --workdir=runs/mine --sliding --last=3",
    )

    source: str = flag(FILE, requires="reference sliding")
    reference: str = flag(FILE, requires="source sliding")
    to: str = flag(DIRECTORY, required=True, unless="sliding")
    last: int = flag(COUNT, excludes="average_steps")
    average_steps: tuple[int, ...] = flag(STEPS)
    force: bool = flag(SWITCH)
    trained: bool = flag(SWITCH)
    sliding: bool = flag(SWITCH, excludes="average_steps")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExportOptions(ModelOptions):
    """Options of `--mode=export`.

    Attributes:
      source: Source sentences for the comparison with the exported model, instead of
        data.dev.
      reference: Their reference translations.
      format: Format of the exported model.
      to: Directory to create for the exported model; for --format=argos also a file,
        *.argosmodel.
      quantization: Number format of --format=ctranslate2 and argos; float32 if not
        given.
      max_bleu_loss: Largest accepted loss of BLEU by --format=ctranslate2 and argos; 1
        if not given, 0.5 for float16.
      languages: Codes of the source and the target language, such as en,de, for
        README.md; those in the names of the training files if not given.
      license: License of the model for README.md, an identifier of Hugging Face's hub
        such as apache-2.0.
      check_lines: Number of lines, of --source or else data.dev, for the comparison
        with the exported model.
    """

    mode = "export"
    about = "exports the model for other software, as --format, into directory --to"
    examples = (
        "export --workdir=runs/mine --format=model_dir --to=mine",
        "export --workdir=runs/mine --format=ctranslate2 --quantization=int8 "
        "--to=mine-ct2",
    )

    source: str = flag(FILE, requires="reference")
    reference: str = flag(FILE, requires="source")
    format: str = flag(metavar="FORMAT", choices=EXPORT_FORMATS, required=True)
    to: str = flag(DIRECTORY, required=True)
    quantization: str = flag(metavar="TYPE", choices=QUANTIZATIONS, requires=_QUANTIZED)
    max_bleu_loss: float | None = flag(LOSS, requires=_QUANTIZED)
    languages: tuple[str, str] | None = flag(LANGUAGES)
    license: str = flag(LICENSE)
    check_lines: int = flag(COUNT, default="100")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImportOptions(Options):
    """Options of `--mode=import`.

    Attributes:
      from_: Model to import, a file or a directory; or hf://ORGANIZATION/NAME.
      to: Directory to create for the model.
      format: Toolkit of the model; found from its files if not given.
      vocabularies: With models of Marian, fairseq or tensor2tensor: vocabularies of
        source and target, or one for both; those beside the model if not given.
      positions: With models of Marian or Hugging Face: positions as this program
        computes them, to reproduce its outputs; those of the training if not given.
      normalize: With models of Hugging Face: normalize the punctuation of sources as
        Moses does, and as the training text of OPUS-MT was.
    """

    mode = "import"
    about = "imports a model of another toolkit into the model directory --to"
    examples = (
        "import --from=marian/model.npz --to=mine",
        "import --from=marian --format=marian --vocabularies=en.spm,de.spm --to=mine",
    )
    reads_config = False

    workdir: Workdir  # not a flag
    from_: str = flag(FILE, metavar="PATH", required=True)
    to: str = flag(DIRECTORY, required=True)
    format: str = flag(metavar="TOOLKIT", choices=IMPORT_FORMATS)
    vocabularies: tuple[str, ...] = flag(PATHS, metavar="SOURCE,TARGET")
    positions: str = flag(metavar="KIND", choices=POSITIONS)
    normalize: bool = flag(SWITCH)


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
      workdir: Directory of a run to describe; the configuration alone if there is none.
      format: Format of the results.
      devices: Number of devices to describe; those of this machine or of the mesh if
        not given.
      topology: Devices that need not be here, to compile the step for and estimate its
        time: gpu:h100:8, gpu:h100:2x8 (hosts x GPUs), tpu:v5e:2x4 (chips).
      decode: With --topology: also compile the search.
      save_hlo: With --topology: file to write the compiled step to.
      peak_tflops: Peak of one device in model.compute_dtype, in TFLOP/s, to estimate
        hours; with --topology instead of its data sheet's.
      mfu: Fraction of --peak_tflops that training reaches (model FLOP utilization).
    """

    mode = "describe"
    about = "shows a configuration, its size and its costs, without training"
    examples = (
        "describe --config=table3:C_N2",
        "describe --config=wmt_en_de_big --devices=8 --peak_tflops=312 --format=json",
    )

    workdir: Workdir = flag(DIRECTORY)
    format: str = flag(metavar="FORMAT", choices=("text", "json"))
    devices: int = flag(COUNT, excludes="topology")
    topology: str = flag(metavar="TARGET")
    decode: bool = flag(SWITCH, requires="topology")
    save_hlo: str = flag(FILE, requires="topology")
    peak_tflops: float = flag(POSITIVE)
    mfu: float = flag(
        FRACTION, default="0.4", requires="peak_tflops", excludes="topology"
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AttentionOptions(ModelOptions):
    """Options of `--mode=attention`.

    Attributes:
      to: Directory to create for the arrays and plots.
      text: Source sentence to translate and plot.
      target: Its translation; the model's own if not given.
      layer: Layers to plot, from 0, such as 0,5; or all.
      head: Heads to plot, from 0, such as 0,5; or all.
    """

    mode = "attention"
    about = "plots the attention weights for a --text into the directory --to"
    examples = (
        'attention --workdir=runs/mine --text="A dog barks." --to=maps',
        'attention --workdir=runs/mine --text="A dog barks." --layer=0,1 --head=all '
        "--to=maps",
    )

    to: str = flag(DIRECTORY, required=True)
    text: str = flag(metavar="SENTENCE", required=True)
    target: str = flag(metavar="SENTENCE")
    layer: str = flag(default="all", metavar="LAYERS")
    head: str = flag(default="all", metavar="HEADS")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportOptions(ModelOptions):
    """Options of `--mode=report`.

    Attributes:
      to: HTML file to write; report.html in the run if not given.
    """

    mode = "report"
    about = "writes a page about a run: curves, samples, attention, scores, data"
    examples = (
        "report --workdir=runs/mine",
        "report --workdir=runs/mine --to=mine.html",
    )

    to: str = flag(DIRECTORY, metavar="FILE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompareOptions(Options):
    """Options of `--mode=compare`.

    Attributes:
      workdirs: Directories of the runs, separated by commas; the others are compared
        with the first.
      to: HTML file to write, beside the text on stdout.
    """

    mode = "compare"
    about = "compares the settings, scores, curves and samples of several runs"
    examples = (
        "compare --workdirs=runs/a,runs/b",
        "compare --workdirs=runs/a,runs/b,runs/c --to=comparison.html",
    )
    reads_config = False

    workdir: Workdir  # not a flag
    workdirs: tuple[str, ...] = flag(PATHS, metavar="DIR,DIR", required=True)
    to: str = flag(DIRECTORY, metavar="FILE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShowBatchOptions(RunOptions):
    """Options of `--mode=show_batch`.

    Attributes:
      step: Training step whose batch is printed, from 1.
    """

    mode = "show_batch"
    about = "prints the text of the batch of a training --step"
    examples = (
        "show_batch --workdir=runs/mine --step=1",
        "show_batch --workdir=runs/mine --step=4000",
    )

    step: int = flag(COUNT, metavar="STEP", required=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiguresOptions(Options):
    """Options of `--mode=figures`.

    Attributes:
      to: Directory to create for the plots.
    """

    mode = "figures"
    about = "plots equation 3 and the positional encoding into the directory --to"
    examples = ("figures --to=figures", "figures --to=runs/figures")
    reads_config = False

    workdir: Workdir  # not a flag
    to: str = flag(DIRECTORY, required=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InspectDataOptions(ModelOptions):
    """Options of `--mode=inspect_data`.

    Attributes:
      to: File for the results: *.tsv for all pairs, *.html for a page of the worst; a
        summary on stdout alone if not given.
      split: Text to inspect.
      lines: Number of pairs to inspect, evenly spaced; all if not given.
      drop_worst: Also write the text without this share of its pairs, those of the
        highest loss, beside --to: *.kept.source.txt and *.kept.target.txt.
    """

    mode = "inspect_data"
    about = "ranks the text of a run by the model's loss, and finds odd pairs"
    examples = (
        "inspect_data --workdir=runs/mine --to=pairs.tsv",
        "inspect_data --workdir=runs/mine --to=pairs.tsv --drop_worst=1%",
    )
    is_read_only = True

    to: str = flag(DIRECTORY, metavar="FILE")
    split: str = flag(default="train", metavar="SPLIT", choices=("train", "dev"))
    lines: int = flag(COUNT, excludes="drop_worst")
    drop_worst: float = flag(PERCENT, requires="to")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StatusOptions(RunOptions):
    """Options of `--mode=status`.

    Attributes:
      format: Format of the results.
    """

    mode = "status"
    about = "shows where a run is, what holds it and when it will be done"
    examples = (
        "status --workdir=runs/mine",
        "status --workdir=runs/mine --format=json",
    )
    is_read_only = True
    reads_config = False
    uses_jax = False

    format: str = flag(metavar="FORMAT", choices=("text", "json"))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DoctorOptions(Options):
    """Options of `--mode=doctor`.

    Attributes:
      workdir: Directory whose disk is checked; it need not exist.
      format: Format of the results.
    """

    mode = "doctor"
    about = "checks the machine and the installation, and what to do about problems"
    examples = ("doctor", "doctor --workdir=/data/runs/mine --format=json")
    is_read_only = True
    reads_config = False
    uses_jax = False

    workdir: Workdir = flag(DIRECTORY)
    format: str = flag(metavar="FORMAT", choices=("text", "json"))
