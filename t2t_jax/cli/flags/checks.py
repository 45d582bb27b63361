"""Options of the modes that check a machine, a run or a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.cli.flags.options import ModelOptions, Options, RunOptions
from t2t_jax.cli.flags.values import COUNT, DIRECTORY, PERCENT, flag
from t2t_jax.run.workdir import Workdir


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DoctorOptions(Options):
    """Options of `--mode=doctor`.

    Attributes:
      format: "" is text.
    """

    mode = "doctor"
    about = "checks the machine and the installation, and what to do about problems"
    examples = ("doctor", "doctor --workdir=/data/runs/mine --format=json")
    is_read_only = True
    reads_config = False
    uses_jax = False

    workdir: Workdir = flag(
        "Directory whose disk is checked; it need not exist.", DIRECTORY
    )
    format: str = flag(
        "Format of the results.", metavar="FORMAT", choices=("text", "json")
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StatusOptions(RunOptions):
    """Options of `--mode=status`.

    Attributes:
      format: "" is text.
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

    format: str = flag(
        "Format of the results.", metavar="FORMAT", choices=("text", "json")
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InspectDataOptions(ModelOptions):
    """Options of `--mode=inspect_data`.

    Attributes:
      to: "" is a summary on stdout alone.
      lines: 0 means all.
      drop_worst: share of the scored pairs, from 0 to 1; 0 drops none.
    """

    mode = "inspect_data"
    about = "ranks the text of a run by the model's loss, and finds odd pairs"
    examples = (
        "inspect_data --workdir=runs/mine --to=pairs.tsv",
        "inspect_data --workdir=runs/mine --to=pairs.tsv --drop_worst=1%",
    )
    is_read_only = True

    to: str = flag(
        "File for the results: *.tsv for all pairs, *.html for a page of the worst; a "
        "summary on stdout alone if not given.",
        DIRECTORY,
        metavar="FILE",
    )
    split: str = flag(
        "Text to inspect.",
        default="train",
        metavar="SPLIT",
        choices=("train", "dev"),
    )
    lines: int = flag(
        "Number of pairs to inspect, evenly spaced; all if not given.",
        COUNT,
        excludes="drop_worst",
    )
    drop_worst: float = flag(
        "Also write the text without this share of its pairs, those of the highest "
        "loss, beside --to: *.kept.source.txt and *.kept.target.txt.",
        PERCENT,
        requires="to",
    )
