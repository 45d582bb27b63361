"""Which flags go together: with the mode, with one another, and with their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from absl import flags

from t2t_jax.cli import flag_rules
from t2t_jax.cli.modes import MODES
from t2t_jax.cli.options import COMPANIONS, FLAGS, FORMATS, RIVALS
from t2t_jax.cli.translation_flags import OF_SAMPLES
from t2t_jax.config import Config
from t2t_jax.parsing import nearest


def value(name: str, values: flags.FlagValues) -> Any:
    """Returns what a flag's rule makes of its text.

    Raises:
      ValueError: the text breaks the rule.
    """
    given: Any = values[name].value
    rule = FLAGS[name].rule
    return flag_rules.read(rule, given, flag=name) if rule else given


def problems(values: flags.FlagValues) -> list[str]:
    """Lists what is wrong with flags that were read, beside the configuration.

    Args:
      values: all flags of the table.

    Returns:
      One message for each mistake.
    """
    mode = values.mode
    if mode not in MODES:
        near = nearest(mode, list(MODES))
        return [f"--mode={mode} must be one of {', '.join(MODES)}.{near}"]
    found = []
    for name, flag in FLAGS.items():
        if mode not in flag.modes and values[name].present:
            found.append(
                f"--{name} belongs to --mode={_alternatives(flag.modes)}, and the "
                f"mode is {mode}. Remove it or change --mode."
            )
        spared = flag.unless and values[flag.unless].value
        if mode in flag.needed and not values[name].value and not spared:
            found.append(f"--mode={mode} needs --{name}. {flag.help}")
        try:
            value(name, values)
        except ValueError as error:
            found.append(str(error))
    return found + _combination_problems(values)


def ignored(values: flags.FlagValues, config: Config) -> list[str]:
    """Lists the flags that a configuration has no use for, a message for each.

    Args:
      values: all flags of the table.
      config: of the run, with all that the command line changes.
    """
    if config.decoding.sample:
        return []
    return [
        f"--{name} is for samples, and without --sample the best translation is "
        "searched for. Give both, or neither."
        for name in OF_SAMPLES
        if values[name].present
    ]


def _combination_problems(values: flags.FlagValues) -> list[str]:
    """Says which flags would be ignored because of what others are."""
    found = []
    for (mode, name), other in COMPANIONS.items():
        if (mode, values[name].present) == (values.mode, 1) and not values[other].value:
            found.append(
                f"--{name} means nothing to --mode={mode} without --{other}. Give "
                "both, or neither."
            )
    for (mode, name), other in RIVALS.items():
        if values.mode == mode and values[name].present and values[other].present:
            found.append(f"--{name} and --{other} exclude each other. Give one.")
    known = FORMATS.get(values.mode, ())
    if known and values.format not in ("", *known):
        found.append(
            f"--format={values.format} must be one of {', '.join(known)} with "
            f"--mode={values.mode}."
        )
    return found


def _alternatives(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
