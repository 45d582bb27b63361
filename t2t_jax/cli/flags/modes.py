"""The modes of the command line, and the flags of each."""

from __future__ import annotations

import shutil
import sys
from dataclasses import fields
from functools import cache
from keyword import iskeyword
from pathlib import Path

from t2t_jax.cli.flags import options, translation, views
from t2t_jax.cli.flags.key_docs import attribute_docs, key_docs
from t2t_jax.cli.flags.options import DistributedOptions, Options
from t2t_jax.cli.flags.values import Flag

OPTIONS: dict[str, type[Options]] = {
    cls.mode: cls
    for cls in (
        options.TrainOptions,
        options.PrepareOptions,
        translation.TranslateOptions,
        translation.EvaluateOptions,
        translation.ScoreOptions,
        options.AverageOptions,
        options.ExportOptions,
        options.ImportOptions,
        translation.ServeOptions,
        options.RecoverOptions,
        options.DescribeOptions,
        views.AttentionOptions,
        views.ReportOptions,
        views.CompareOptions,
        views.ShowBatchOptions,
        views.FiguresOptions,
        views.InspectDataOptions,
        views.StatusOptions,
        views.DoctorOptions,
    )
}
"""Mode -> the class of its options."""

MODES = {mode: cls.about for mode, cls in OPTIONS.items()}
"""One line about each mode."""

_MODE = Flag(default="train", metavar="MODE", choices=tuple(MODES))


def _flags(cls: type[Options]) -> dict[str, Flag]:
    # `from` is a keyword, so its field is `from_`.
    return {
        f.name.rstrip("_"): f.metadata["flag"]
        for f in fields(cls)
        if "flag" in f.metadata
    }


_OF_PROCESSES = _flags(DistributedOptions).keys() - _flags(Options)


@cache
def flags_of(mode: str) -> dict[str, Flag]:
    """Maps the flags of a mode, but for `mode`, to their declarations in this mode."""
    own = _flags(OPTIONS[mode])
    return {name: own[name] for name in sorted(own, key=_OF_PROCESSES.__contains__)}


def flag_help(name: str, mode: str) -> str:
    """Returns the meaning of a flag in a mode; "" with `python -OO`."""
    for cls in OPTIONS[mode].__mro__:
        if name in (docs := attribute_docs(cls)):
            return docs[name][1]
    key = FLAGS[name].key
    return key_docs()[key].meaning if key else ""


def module_of(mode: str) -> str:
    """Returns the name of a mode's file in `cli/modes`.

    Example:
      >>> module_of("train"), module_of("import")
      ('train', 'import_')
    """
    return f"{mode}_" if iskeyword(mode) else mode


def modes_of(name: str) -> dict[str, Flag]:
    """Maps the modes that take a flag to its declarations.

    Example:
      >>> list(modes_of("step"))
      ['show_batch']
    """
    if name == "mode":
        return dict.fromkeys(MODES, _MODE)
    return {mode: flags_of(mode)[name] for mode in MODES if name in flags_of(mode)}


_ALL = [item for mode in MODES for item in flags_of(mode).items()]
FLAGS = {"mode": _MODE, **dict(sorted(_ALL, key=lambda item: item[0] in _OF_PROCESSES))}
"""Every flag but `config`; `default`, `type` and `key` are equal in all modes."""


def command_of(mode: str) -> list[str]:
    """Returns the first words of a command line for a mode.

    They have the form in which this program was started.
    """
    started = sys.argv[0]
    if Path(started).name == "t2t-jax":
        is_found = shutil.which("t2t-jax") == started
        return ["t2t-jax" if is_found else started, mode]
    module = "t2t_jax" if Path(started).name == "__main__.py" else "t2t_jax.main"
    return ["python", "-m", module, f"--mode={mode}"]
