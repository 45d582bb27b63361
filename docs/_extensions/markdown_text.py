"""Plain sentences of the code as Markdown."""

import re

from t2t_jax.config import defaults, sections

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$~])")
_WORD = re.compile(
    r"(?<![\w.`-])("
    r'"[^" ]+"|'  # a value
    r"--[a-z][\w.=,/-]*[\w]|"  # a flag
    r"(?:config\.)?[a-z_]+\.[a-z][\w.]*[\w](?:=[\w.]+)?|"  # a key, or a file
    r"[a-z0-9]+_[a-z0-9_]+"  # a name of the code
    r")"
)


def prose(text: str) -> str:
    """Returns a sentence with names as code, keys as references, the rest escaped."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    for number, part in enumerate(parts):
        if part.startswith("`"):
            parts[number] = named(part.strip("`"))
            continue
        pieces = _WORD.split(part)
        pieces[1::2] = [named(piece) for piece in pieces[1::2]]
        pieces[::2] = [_SPECIAL.sub(r"\\\1", piece) for piece in pieces[::2]]
        parts[number] = "".join(pieces)
    return "".join(parts)


def named(name: str) -> str:
    """Returns a name as code; that of a key leads to its description."""
    name = name.strip('"')
    key = name.removeprefix("config.")
    if key in defaults() and "." in key:
        return f"{{confval}}`{key}`"
    if key in sections() and name != key:
        return f"[`{name}`](#section-{key})"
    return f"`{name}`"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["", *("| " + " | ".join(line) + " |" for line in lines), ""]
