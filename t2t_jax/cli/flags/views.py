"""Declares the options of the modes that show runs, data, formulas and the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_jax.cli.flags.options import ModelOptions, Options, RunOptions
from t2t_jax.cli.flags.values import COUNT, DIRECTORY, PATHS, PERCENT, flag

if TYPE_CHECKING:
    from t2t_jax.run.workdir import Workdir


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
