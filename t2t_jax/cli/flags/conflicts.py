"""Checks flags against the mode, against one another, and against their types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from t2t_jax.cli.flags.arguments import Argument
from t2t_jax.cli.flags.modes import FLAGS, MODES, OPTIONS, flags_of, modes_of
from t2t_jax.cli.flags.translation import SAMPLING_FLAGS
from t2t_jax.cli.flags.values import Flag
from t2t_jax.config import Config
from t2t_jax.config_keys import alternatives, did_you_mean
from t2t_jax.run.workdir import runs_near

_MAX_RUNS = 5


def flag_errors(mode: str, given: Mapping[str, str], *, has_config: bool) -> list[str]:
    """Lists the errors of all flags, without the configuration.

    Args:
      given: the texts of the flags that were given.
      has_config: whether `--config` was given.
    """
    if mode not in MODES:
        near = did_you_mean(mode, list(MODES))
        return [f"--mode={mode} must be one of {', '.join(MODES)}.{near}"]
    found = _of_other_modes(mode, given)
    own = flags_of(mode)
    for name, flag in own.items():
        # With --config the default is runs/NAME of that configuration, as in training.
        if not (name == "workdir" and has_config):
            found += _missing(name, flag, mode=mode, given=given)
        found += _combination_problems(name, flag, mode=mode, given=given)
    for name in FLAGS:
        flag = own[name] if name in own else FLAGS[name]._replace(choices=())
        try:
            flag.parse(given.get(name, flag.default), name=name, mode=mode)
        except ValueError as error:
            found.append(str(error))
    return found


def unused_flags(given: Collection[str], config: Config) -> list[str]:
    """Returns an error if sampling flags are given without sampling.

    Args:
      given: names of flags.
      config: with all overrides of the command line.
    """
    names = [f"--{name}" for name in SAMPLING_FLAGS if name in given]
    if config.decoding.sample or not names:
        return []
    named = alternatives(names, word="and")
    return [f"Without --sample no mode uses {named}. Pass --sample, or leave them out."]


def unused_config(mode: str, keys: Sequence[Argument], config: str) -> list[str]:
    """Returns an error if a mode has no use for the given configuration.

    Args:
      keys: `--config.KEY=VALUE`, or their short forms.
      config: of `--config`; "" if it was not given.
    """
    if mode not in MODES or OPTIONS[mode].uses_jax or not (keys or config):
        return []
    names = [f"--{key.name}" for key in keys] + ["--config"] * bool(config)
    named = alternatives(names, word="and")
    return [f"--mode={mode} takes no configuration. Leave {named} out."]


def _missing(
    name: str, flag: Flag, *, mode: str, given: Mapping[str, str]
) -> Iterator[str]:
    """Yields an error if a required flag is missing."""
    other, _, value = flag.unless.partition("=")
    text = given.get(other, "")
    is_optional = other and (text == value if value else FLAGS[other].type.parse(text))
    if not flag.required or given.get(name) or is_optional:
        return
    if name == "workdir":
        yield f"--mode={mode} requires --workdir, the run to use.{_runs_hint()}"
        return
    words = f" One of {', '.join(flag.choices)}." if flag.choices else ""
    yield f"--mode={mode} requires --{name}. {flag.help}{words}"


def _runs_hint() -> str:
    """Lists the runs to pass as `--workdir`."""
    runs = runs_near(Path("runs"))
    if not runs:
        return " Train first, or pass the --workdir of a run."
    named = ", ".join(str(run) for run in runs[:_MAX_RUNS])
    more = f" and {len(runs) - _MAX_RUNS} more" if len(runs) > _MAX_RUNS else ""
    return f" Pass --workdir={runs[0]} or another. Runs, newest first: {named}{more}."


def _combination_problems(
    name: str, flag: Flag, *, mode: str, given: Mapping[str, str]
) -> Iterator[str]:
    """Yields errors about other flags that a given one requires or excludes."""
    if name not in given:
        return
    required, _, value = flag.requires.partition("=")
    if required and (not given.get(required) or value not in ("", given[required])):
        yield (
            f"--{name} requires --{flag.requires} with --mode={mode}. Pass both, or "
            "neither."
        )
    if flag.excludes in given:
        yield (
            f"--{name} and --{flag.excludes} are mutually exclusive. Pass one of them."
        )


def _of_other_modes(mode: str, given: Mapping[str, str]) -> list[str]:
    """Lists the flags that the mode does not take; those of the same modes at once."""
    wrong: dict[tuple[str, ...], list[str]] = {}
    for name in FLAGS:
        modes = tuple(modes_of(name))
        if name in given and mode not in modes:
            wrong.setdefault(modes, []).append(f"--{name}")
    return [
        f"--mode={mode} does not take {alternatives(names)}, which only "
        f"--mode={alternatives(modes)} has. Choose another mode, or remove the flag."
        for modes, names in wrong.items()
    ]
