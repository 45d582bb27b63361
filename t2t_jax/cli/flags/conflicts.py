"""Which flags go together: with the mode, with one another, and with their rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from absl import flags

from t2t_jax.cli.flags import values as flag_rules
from t2t_jax.cli.flags.modes import MODES, READS_RUN
from t2t_jax.cli.flags.options import FLAGS, FORMATS, meaning
from t2t_jax.cli.flags.translation import OF_SAMPLES
from t2t_jax.config import Config, alternatives, did_you_mean
from t2t_jax.run.workdir import runs_near

_MOST_RUNS = 5

REQUIRES = {
    ("evaluate", "last"): "protocol",
    ("evaluate", "force"): "protocol",
    ("evaluate", "target_language"): "protocol",
    ("describe", "mfu"): "peak_tflops",
    ("export", "source"): "reference",
    ("export", "reference"): "source",
    ("translate", "resume"): "shards",
}
"""In a mode, a flag that means nothing without another one."""

CONFLICTS = {
    ("average", "last"): "average_steps",
    ("translate", "prefixes"): "stream",
    ("translate", "shards"): "stream",
    ("evaluate", "ensemble"): "protocol",
}
"""In a mode, two flags of which one would be ignored."""


def flag_value(name: str, values: flags.FlagValues) -> Any:
    """Returns what a flag's rule makes of its text.

    Raises:
      ValueError: the text breaks the rule.
    """
    given: Any = values[name].value
    rule = FLAGS[name].rule
    return flag_rules.read(rule, given, flag=name) if rule else given


def flag_errors(values: flags.FlagValues, *, has_config: bool) -> list[str]:
    """Lists what is wrong with flags that were read, beside the configuration.

    Args:
      values: all flags of the table.
      has_config: whether `--config` was given.

    Returns:
      One message for each mistake.
    """
    mode = values.mode
    if mode not in MODES:
        near = did_you_mean(mode, list(MODES))
        return [f"--mode={mode} must be one of {', '.join(MODES)}.{near}"]
    found = _of_other_modes(values)
    # With --config it is runs/NAME of that configuration, as in training.
    if mode in READS_RUN and not values["workdir"].present and not has_config:
        found.append(f"--mode={mode} requires --workdir, the run to use.{_runs_hint()}")
    for name, flag in FLAGS.items():
        spared = flag.unless and values[flag.unless].value
        if mode in flag.needed and not values[name].value and not spared:
            found.append(f"--mode={mode} requires --{name}. {meaning(name, mode)}")
        try:
            flag_value(name, values)
        except ValueError as error:
            found.append(str(error))
    return found + _combination_problems(values)


def _runs_hint() -> str:
    """Advises which `--workdir` to pass."""
    runs = runs_near(Path("runs"))
    if not runs:
        return " Train first, or pass the --workdir of a run."
    named = ", ".join(str(run) for run in runs[:_MOST_RUNS])
    more = f" and {len(runs) - _MOST_RUNS} more" if len(runs) > _MOST_RUNS else ""
    return f" Pass --workdir={runs[0]} or another. Runs, newest first: {named}{more}."


def unused_flags(values: flags.FlagValues, config: Config) -> list[str]:
    """Lists the flags that a configuration has no use for.

    Args:
      values: all flags of the table.
      config: of the run, with all that the command line changes.

    Returns:
      One message, or none.
    """
    given = [f"--{name}" for name in OF_SAMPLES if values[name].present]
    if config.decoding.sample or not given:
        return []
    verb = "is" if len(given) == 1 else "are"
    return [
        f"{alternatives(given, word='and')} {verb} for samples, and without --sample "
        "the best translation is searched for. Pass --sample too, or leave "
        f"{'it' if len(given) == 1 else 'them'} out."
    ]


def _of_other_modes(values: flags.FlagValues) -> list[str]:
    """Lists the flags that the mode does not take; those of the same modes at once."""
    wrong: dict[tuple[str, ...], list[str]] = {}
    for name, flag in FLAGS.items():
        if values.mode not in flag.modes and values[name].present:
            wrong.setdefault(flag.modes, []).append(f"--{name}")
    return [
        f"{alternatives(names, word='and')} {'is' if len(names) == 1 else 'are'} only "
        f"valid with --mode={alternatives(modes)} (mode is {values.mode}). Choose "
        "another mode, or leave "
        f"{'it' if len(names) == 1 else 'them'} out."
        for modes, names in wrong.items()
    ]


def _combination_problems(values: flags.FlagValues) -> list[str]:
    """Says which flags would be ignored because of what others are."""
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
