"""Declares the options of the modes that show runs, batches and formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_jax.cli.flags.options import ModelOptions, Options, RunOptions
from t2t_jax.cli.flags.values import COUNT, DIRECTORY, PATHS, flag

if TYPE_CHECKING:
    from t2t_jax.run.workdir import Workdir


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
class ReportOptions(ModelOptions):
    """Options of `--mode=report`."""

    mode = "report"
    about = "writes a page about a run: curves, samples, attention, scores, data"
    examples = (
        "report --workdir=runs/mine",
        "report --workdir=runs/mine --to=mine.html",
    )

    to: str = flag(
        "HTML file to write; report.html in the run if not given.",
        DIRECTORY,
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompareOptions(Options):
    """Options of `--mode=compare`."""

    mode = "compare"
    about = "compares the settings, scores, curves and samples of several runs"
    examples = (
        "compare --workdirs=runs/a,runs/b",
        "compare --workdirs=runs/a,runs/b,runs/c --to=comparison.html",
    )
    reads_config = False

    workdir: Workdir  # not a flag
    workdirs: tuple[str, ...] = flag(
        "Directories of the runs, separated by commas; the others are compared with "
        "the first.",
        PATHS,
        metavar="DIR,DIR",
        required=True,
    )
    to: str = flag(
        "HTML file to write, beside the text on stdout.", DIRECTORY, metavar="FILE"
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
