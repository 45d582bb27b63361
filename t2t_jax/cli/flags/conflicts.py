"""Checks flags against the mode, against one another, and against their rules."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

from absl import flags

from t2t_jax.cli.flags import values as flag_rules
from t2t_jax.cli.flags.arguments import printable
from t2t_jax.cli.flags.modes import MODES, READS_RUN
from t2t_jax.cli.flags.options import FLAGS, FORMATS, flag_help
from t2t_jax.cli.flags.translation import SAMPLING_FLAGS
from t2t_jax.config import Config, alternatives, did_you_mean
from t2t_jax.run.workdir import runs_near

_MAX_RUNS = 5

REQUIRES = {
    ("evaluate", "last"): "protocol",
    ("evaluate", "force"): "protocol",
    ("evaluate", "target_language"): "protocol",
    ("describe", "mfu"): "peak_tflops",
    ("export", "source"): "reference",
    ("export", "reference"): "source",
    ("translate", "resume"): "shards",
}
"""(mode, flag) -> the flag that it requires."""

CONFLICTS = {
    ("average", "last"): "average_steps",
    ("translate", "prefixes"): "stream",
    ("translate", "shards"): "stream",
    ("evaluate", "ensemble"): "protocol",
}
"""(mode, flag) -> the flag that excludes it."""


def flag_value(name: str, values: flags.FlagValues) -> Any:
    """Returns the parsed value of a flag.

    Raises:
      ValueError: the text is invalid.
    """
    given: Any = values[name].value
    rule = FLAGS[name].rule
    return flag_rules.parse_value(rule, given, flag=name) if rule else given


def flag_errors(values: flags.FlagValues, *, has_config: bool) -> list[str]:
    """Lists the errors of all flags, without the configuration.

    Args:
      values: of all flags in `FLAGS`.
      has_config: whether `--config` was given.
    """
    mode = values.mode
    if mode not in MODES:
        near = did_you_mean(mode, list(MODES))
        return [f"--mode={mode} must be one of {', '.join(MODES)}.{near}"]
    renamed = _former_export_flags(values)
    answered = ("format", "output", "to") if renamed else ()
    found = [*renamed, *_of_other_modes(values, except_for=answered)]
    # With --config the default is runs/NAME of that configuration, as in training.
    if mode in READS_RUN and not values["workdir"].present and not has_config:
        found.append(f"--mode={mode} requires --workdir, the run to use.{_runs_hint()}")
    for name, flag in FLAGS.items():
        is_optional = name in answered or (flag.unless and values[flag.unless].value)
        if mode in flag.needed and not values[name].value and not is_optional:
            words = f" One of {', '.join(FORMATS[mode])}." if name == "format" else ""
            found.append(
                f"--mode={mode} requires --{name}. {flag_help(name, mode)}{words}"
            )
        try:
            flag_value(name, values)
        except ValueError as error:
            found.append(str(error))
    return found + _combination_problems(values)


def _runs_hint() -> str:
    """Lists the runs to pass as `--workdir`."""
    runs = runs_near(Path("runs"))
    if not runs:
        return " Train first, or pass the --workdir of a run."
    named = ", ".join(str(run) for run in runs[:_MAX_RUNS])
    more = f" and {len(runs) - _MAX_RUNS} more" if len(runs) > _MAX_RUNS else ""
    return f" Pass --workdir={runs[0]} or another. Runs, newest first: {named}{more}."


def unused_flags(values: flags.FlagValues, config: Config) -> list[str]:
    """Returns an error if sampling flags are given without sampling.

    Args:
      values: of all flags in `FLAGS`.
      config: with all overrides of the command line.
    """
    given = [f"--{name}" for name in SAMPLING_FLAGS if values[name].present]
    if config.decoding.sample or not given:
        return []
    verb = "requires" if len(given) == 1 else "require"
    return [
        f"{alternatives(given, word='and')} {verb} --sample. Pass --sample too, or "
        f"leave {'it' if len(given) == 1 else 'them'} out."
    ]


def _former_export_flags(values: flags.FlagValues) -> list[str]:
    """Answers `--to=FORMAT --output=DIR`, the export of version 0.1.0."""
    named = values.to if values.to in FORMATS["export"] else ""
    has_output = values["output"].present
    if values.mode != "export" or not (has_output or (named and not values.format)):
        return []
    wanted = f"--format={values.format or named or 'FORMAT'}"
    to = printable(values.output if has_output else "DIR")
    return [
        "--mode=export takes the format as --format and the directory as --to, "
        f"instead of --to and --output. Pass {wanted} {shlex.quote(f'--to={to}')}."
    ]


def _of_other_modes(
    values: flags.FlagValues, *, except_for: Collection[str]
) -> list[str]:
    """Lists the flags that the mode does not take; those of the same modes at once."""
    wrong: dict[tuple[str, ...], list[str]] = {}
    for name, flag in FLAGS.items():
        if name in except_for or values.mode in flag.modes:
            continue
        if values[name].present:
            wrong.setdefault(flag.modes, []).append(f"--{name}")
    return [
        f"{alternatives(names, word='and')} {'is' if len(names) == 1 else 'are'} only "
        f"valid with --mode={alternatives(modes)} (mode is {values.mode}). Choose "
        "another mode, or leave "
        f"{'it' if len(names) == 1 else 'them'} out."
        for modes, names in wrong.items()
    ]


def _combination_problems(values: flags.FlagValues) -> list[str]:
    """Lists violations of `REQUIRES`, `CONFLICTS` and `FORMATS`."""
    found = []
    for (mode, name), other in REQUIRES.items():
        if (mode, values[name].present) == (values.mode, 1) and not values[other].value:
            found.append(
                f"--{name} requires --{other} with --mode={mode}. Pass both, or "
                "neither."
            )
    for (mode, name), other in CONFLICTS.items():
        if values.mode == mode and values[name].present and values[other].present:
            found.append(
                f"--{name} and --{other} are mutually exclusive. Pass one of them."
            )
    known = FORMATS.get(values.mode, ())
    if known and values.format not in ("", *known):
        found.append(
            f"--format={values.format} must be one of {', '.join(known)} with "
            f"--mode={values.mode}."
        )
    return found
