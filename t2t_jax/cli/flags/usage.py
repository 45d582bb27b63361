"""Formats `--help`: an overview, and pages for modes, sections, flags and keys."""

from __future__ import annotations

import ast
import shutil
import textwrap
from collections.abc import Iterable

from t2t_jax.cli.flags.arguments import CommandLine
from t2t_jax.cli.flags.modes import (
    FLAGS,
    MODES,
    KeyDoc,
    examples_of,
    flag_help,
    flags_of,
    key_docs,
    modes_of,
    section_doc,
)
from t2t_jax.cli.flags.options import OPTIONS, RunOptions, takes_keys
from t2t_jax.cli.flags.values import SWITCH
from t2t_jax.config import ARCHITECTURES, alternatives, defaults, did_you_mean, sections
from t2t_jax.config_files import default_row, shipped_directory, shipped_names
from t2t_jax.errors import UserError

_NARROWEST, _WIDEST, _USUAL = 60, 100, 88
_COMMON = {
    "--config=NAME": "Configuration: a shipped one (wmt_en_de, table3:C_N2), "
    "FILE.py or FILE.py:ROW.",
    "--workdir=DIR": "Directory of the run. Training creates or resumes it; other "
    "modes need it.",
    "--config.KEY=VALUE": "Change a key of it, such as --config.steps=5000.",
    "--version": "Print the versions of t2t_jax, Python and JAX.",
}
_MORE = {
    "MODE --help": "Flags of a mode, with defaults and examples.",
    "--help=SECTION": f"Keys of one section: {', '.join(sections())}.",
    "--help=KEY": "One key or flag: --help=optimizer.warmup_steps, --help=beam_size.",
    "--help=NAME": "A shipped configuration: --help=own_text.",
    "--help=all": "All modes, flags and keys.",
}
CONFIG_HELP = (
    "Configuration: the name of a shipped one, or a Python file; NAME:ROW and "
    "FILE.py:ROW choose a row of a table. The embedded English-German experiment if "
    "not given."
)


def requested_help(line: CommandLine) -> str | None:
    """Returns the requested help page; None without a help flag.

    Raises:
      UserError: the topic does not exist.
    """
    asked = [flag.value for flag in line.flags if flag.name in ("help", "h")]
    if line.word == "help":
        asked = asked or [text for _, text in line.stray[:1]] or [""]
    if not asked:
        return None
    word = "" if line.word == "help" else line.word
    return help_page(asked[-1] or line.mode or word)


def help_page(topic: str) -> str:
    """Returns the help page of a mode, section, flag, key or configuration.

    Args:
      topic: "" means the overview.

    Raises:
      UserError: the topic does not exist.
    """
    name = topic.strip().lstrip("-").removeprefix("mode=").removeprefix("config.")
    if name in ("", "all"):
        return _everything() if name else _overview()
    if name in MODES:
        return _about_mode(name)
    docs = key_docs()
    parts = [_about_flag(name)] * (name in FLAGS)
    parts += [_about_section(name)] * (name in sections())
    if not parts:
        found = [key for key in docs if name in (key, key.rpartition(".")[2])]
        parts = [_about_key(docs[key]) for key in found]
    if not parts and name.partition(":")[0] in shipped_names():
        parts = [_about_config(name)]
    if not parts:
        near = did_you_mean(name, [*MODES, *sections()])
        near = near or did_you_mean(name, [*FLAGS, *docs])
        raise UserError(
            f"--help={topic}: there is no such topic.{near} Pass a mode "
            f"({', '.join(MODES)}), a section ({', '.join(sections())}), a flag, a "
            "key, a shipped configuration, or all."
        )
    return "\n".join(parts)


def _about_config(name: str) -> str:
    """Returns the docstring of a shipped configuration, and example commands."""
    stem, _, row = name.partition(":")
    path = shipped_directory() / f"{stem}.py"
    page = ast.parse(path.read_text(encoding="utf-8"))
    taken = default_row(str(path))
    row = row or ("ROW" if "choose_row" in ast.unparse(page) else "")
    given = f"--config={stem}:{row}" if row else f"--config={stem}"
    without = f"Without a row, --config={stem} is {stem}:{taken}." if taken else ""
    return _page(
        _paragraph(f"{stem} is a configuration, in {path}:"),
        ast.get_docstring(page) or "",
        *[_paragraph(without)] * bool(without),
        _examples([f"describe {given}", f"train {given}"]),
    )


def _overview() -> str:
    return _page(
        _paragraph(
            "t2t-jax: train, evaluate and run translation Transformers "
            '("Attention Is All You Need").'
        ),
        _usage("[MODE] [--FLAG=VALUE …] [--config.KEY=VALUE …]"),
        _paragraph(
            "MODE can also be written --mode=MODE, and t2t-jax as python -m t2t_jax. "
            "Without arguments, it trains the embedded English-German experiment in "
            "runs/phrasebook."
        ),
        _table("Modes", MODES),
        _table("Common flags", _COMMON),
        _table("More help", _MORE),
        _examples(examples_of("train")[1:] + examples_of("translate")[:1]),
    )


def _about_mode(mode: str) -> str:
    flags = flags_of(mode)
    needed = [flag.usage(name) for name, flag in flags.items() if flag.required]
    config = _entry("--config=NAME", ["default phrasebook"], CONFIG_HELP)
    listed = ["Flags:", *[config] * takes_config(mode)]
    listed += [_flag_entry(name, mode) for name in flags]
    return _page(
        _paragraph(f"t2t-jax {mode}: {MODES[mode]}."),
        _usage(" ".join([mode, *needed, "[--FLAG=VALUE …]"])),
        "\n".join(listed),
        _examples(examples_of(mode)),
        _paragraph(keys_note(mode)),
    )


def takes_config(mode: str) -> bool:
    """Returns whether a mode takes `--config`; the others use that of a run, or none.

    Example:
      >>> takes_config("train"), takes_config("translate")
      (True, False)
    """
    return OPTIONS[mode].reads_config and not issubclass(OPTIONS[mode], RunOptions)


def keys_note(mode: str) -> str:
    """Returns which configuration a mode uses, and how a key of it is changed."""
    if mode in ("translate", "evaluate"):
        return (
            "The configuration of the run takes precedence over these defaults. "
            "--config.decoding.KEY=VALUE changes the search; see --help=decoding."
        )
    if mode == "recover":
        return (
            "Takes the configuration from the checkpoint. If --config=NAME is given, "
            "it must be that one."
        )
    if not takes_keys(mode):
        return "Takes no configuration."
    if not takes_config(mode):
        return "Uses the configuration of the run; --config.KEY=VALUE changes a key."
    return (
        "--config.KEY=VALUE changes a key of the configuration. Sections: "
        f"{', '.join(sections())}; --help=SECTION lists the keys of one."
    )


def flag_notes(name: str, mode: str) -> list[str]:
    """Returns what `--help` notes behind a flag: choices, default, short for which key.

    Example:
      >>> flag_notes("beam_size", "translate")
      ['default 4', 'short for config.decoding.beam_size']
    """
    flag = modes_of(name)[mode]
    notes = [f"one of {', '.join(flag.choices)}"] * bool(flag.choices)
    if flag.required:
        unless = " or ".join(f"--{other}" for other in flag.unless.split())
        unless = f" without {unless}" * bool(unless)
        return [f"required{unless}", *notes]
    default = flag.default
    if flag.type is SWITCH:
        default = "off"
    elif flag.key:
        default = str(defaults()[flag.key])
    elif name == "format" and "if not given" not in flag_help(name, mode):
        default = flag.choices[0]
    notes += [f"default {default}"] * bool(default)
    return notes + [f"short for config.{flag.key}"] * bool(flag.key)


def _flag_entry(name: str, mode: str) -> str:
    """Formats a flag of a mode."""
    usage = modes_of(name)[mode].usage(name)
    return _entry(usage, flag_notes(name, mode), flag_help(name, mode))


def _about_flag(name: str) -> str:
    """Formats a flag, once for all modes that declare it alike."""
    groups: dict[str, list[str]] = {}
    for mode in modes_of(name):
        groups.setdefault(_flag_entry(name, mode), []).append(mode)
    used = {entry: _below(f"Modes: {alternatives(m)}.") for entry, m in groups.items()}
    return _page(*(f"{entry}\n{modes}" for entry, modes in used.items()))


def _about_section(section: str) -> str:
    """Formats the keys of a section; "" means those outside sections."""
    docs = [d for d in key_docs().values() if d.key.rpartition(".")[0] == section]
    title = f"Section {section}: {section_doc(section)}"
    head = _paragraph(title if section else "Keys outside sections:")
    return _page(head, "\n".join(map(_key_entry, docs)))


def key_notes(key: str) -> list[str]:
    """Returns what is noted about a key: the paper's value, and changes on resume.

    Example:
      >>> key_notes("training.ema_decay")
      ['The paper: none; the last checkpoints are averaged (§6.1).']
      >>> key_notes("checkpoint.every_steps")
      ['May change when a run is resumed.']
    """
    # The other pages of --help start faster without them.
    from t2t_jax.run.description.paper_defaults import paper_defaults
    from t2t_jax.run.resume_rules import CHANGEABLE_ON_RESUME

    keys = {key, *(key.replace(f"{s}.", "network.") for s in ARCHITECTURES.values())}
    notes = [f"The paper: {one.paper}." for one in paper_defaults() if one.key in keys]
    if {key, key.partition(".")[0]} & CHANGEABLE_ON_RESUME.keys():
        notes.append("May change when a run is resumed.")
    return notes


def _about_key(doc: KeyDoc) -> str:
    return _page("\n".join([_key_entry(doc), *map(_below, key_notes(doc.key))]))


def _key_entry(doc: KeyDoc) -> str:
    default = str(doc.default).lower() if isinstance(doc.default, bool) else doc.default
    shown = f"--config.{doc.key}={'' if default == '' else default}"
    short = [f"short form --{n}" for n, flag in FLAGS.items() if flag.key == doc.key]
    return _entry(shown, [doc.values, *short], doc.meaning)


def _everything() -> str:
    keys = [_about_section(name) for name in ("", *sections())]
    return "\n".join([_overview(), *map(_about_mode, MODES), *keys])


def _page(*blocks: str) -> str:
    return "\n\n".join(blocks) + "\n"


def _usage(arguments: str) -> str:
    return _paragraph(f"Usage: t2t-jax {arguments}", indent="       ")


def _paragraph(text: str, *, indent: str = "", first: str = "") -> str:
    columns = shutil.get_terminal_size((_USUAL, 24)).columns
    return textwrap.fill(
        text,
        min(max(columns, _NARROWEST), _WIDEST),
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _below(text: str) -> str:
    return _paragraph(text, indent="      ", first="      ")


def _entry(name: str, notes: Iterable[str], text: str) -> str:
    """Formats a flag or key with its values, and its meaning below."""
    head = f"  {name}  ({'; '.join(notes)})" if notes else f"  {name}"
    below = f"\n{_below(text)}" if text else ""
    return _paragraph(head, indent=" " * 10) + below


def _table(title: str, rows: dict[str, str]) -> str:
    left = max(map(len, rows)) + 4
    found = (
        _paragraph(text, indent=" " * left, first=f"  {name}".ljust(left))
        for name, text in rows.items()
    )
    return "\n".join([f"{title}:", *found])


def _examples(lines: Iterable[str]) -> str:
    """Formats command lines; long ones are broken before a flag."""
    found = (_paragraph(f"t2t-jax {x}", first="  ", indent=" " * 6) for x in lines)
    return "\n".join(["Examples:", *(text.replace("\n", " \\\n") for text in found)])
