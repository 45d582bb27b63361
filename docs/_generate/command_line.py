"""The reference of the command line: every mode and its flags."""

from collections.abc import Iterator

from markdown_text import prose

from t2t_jax.cli.flags import usage
from t2t_jax.cli.flags.modes import MODES, examples_of, flag_help, flags_of
from t2t_jax.cli.flags.values import DIRECTORY, FILE, SWITCH, TEXT, Flag


def modes() -> Iterator[str]:
    """Yields a section for each mode."""
    for mode, about in MODES.items():
        yield from ["", f"## {mode}", "", f"{about[0].upper()}{prose(about[1:])}."]
        yield from ["", "```sh"]
        yield from (f"t2t-jax {example}" for example in examples_of(mode))
        yield from ["```", "", prose(usage.keys_note(mode)), ""]
        if usage.takes_config(mode):
            yield _flag("--config=NAME", ["default phrasebook"], usage.CONFIG_HELP)
        for name, flag in flags_of(mode).items():
            yield _flag(
                flag.usage(name), _notes(name, flag, mode), flag_help(name, mode)
            )


def _notes(name: str, flag: Flag, mode: str) -> list[str]:
    notes = usage.flag_notes(name, mode)
    if not flag.choices and flag.type not in (SWITCH, TEXT, FILE, DIRECTORY):
        notes.insert(int(flag.required), flag.type.valid)
    if flag.requires:
        needed = " and --".join(flag.requires.split()).replace("|", " or ")
        notes.append(f"requires --{needed}")
    if flag.excludes:
        excluded = " or --".join(flag.excludes.split())
        notes.append(f"not with --{excluded}")
    return notes


def _flag(shown: str, notes: list[str], text: str) -> str:
    noted = f" ({prose('; '.join(notes))})" if notes else ""
    return f"- **`{shown}`**{noted}: {prose(text)}"
