"""Plain sentences and docstrings of the code as Markdown."""

import re
from collections.abc import Iterator
from inspect import cleandoc

from t2t_jax.config import defaults, sections

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\`*<>|$~]|(?<!\w)_|_(?!\w)|\](?=\())")
_WORD = re.compile(
    r"(?<![\w.`/-])("
    r'"[^" ]+"|'  # a value
    r"--[a-z][\w.=,/-]*[\w]|"  # a flag
    r"(?:config\.)?[a-z_]+\.[a-z][\w.]*[\w](?:=[\w.]+)?|"  # a key, or a file
    r"[a-z0-9]+_[a-z0-9_]+"  # a name of the code
    r")"
)
_HEAD = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Example|Paper|Departs):")
_INLINE = re.compile(r"^(Paper:|Departs:) ", re.MULTILINE)
_ENTRY = re.compile(r"(\*{0,2}\w[\w.]*(?:, \*{0,2}\w+)*)( \([^)]*\))?: (.*)", re.DOTALL)


def prose(text: str) -> str:
    """Returns a sentence with names as code, keys as links, the rest escaped."""
    parts = _CODE.split(" ".join(text.split()))
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
    if (key in defaults() and "." in key) or (key in sections() and name != key):
        return f"[`{name}`](/docs/reference/configuration.md#{key.replace('.', '')})"
    return f"`{name}`"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["", *("| " + " | ".join(line) + " |" for line in lines), ""]


def docstring(text: str) -> Iterator[str]:
    """Yields a docstring as Markdown: its sections are lists, its examples code."""
    block: list[str] = []
    head = ""
    for line in [*cleandoc(text).splitlines(), "Returns:"]:
        found = _HEAD.fullmatch(line)
        if found or (line and not line.startswith(" ") and head):
            yield from _section(head, "\n".join(block))
            head, block = "", []
        if found:
            head = found[1]
        else:
            block.append(line)


def _section(head: str, text: str) -> Iterator[str]:
    """Yields a section of a docstring; that without a head is its text."""
    if not head:
        yield from [
            "",
            _INLINE.sub(r"**\1** ", _escaped(text)),
            "",
        ]
        return
    yield from ["", f"**{head}:**", ""]
    text = cleandoc(f"\n{text}")
    entries = re.split(r"\n(?=\S)", text)
    if head == "Example":
        for part in text.split("\n\n"):
            is_code = part.startswith(">>>")
            fence = ["```pycon", part, "```"] if is_code else [_escaped(part)]
            yield from [*fence, ""]
    elif head != "Departs" and all(map(_ENTRY.fullmatch, entries)):
        for entry in entries:
            yield _ENTRY.sub(
                lambda m: f"- `{m[1]}`{m[2] or ''}: {_escaped(m[3])}", entry
            )
    else:
        yield _escaped(text)
    yield ""


def _escaped(text: str) -> str:
    """Escapes what Markdown would take for markup, but for code, also indented."""
    parts = re.split(r"(`[^`]*`|^ {4}.*$)", text, flags=re.MULTILINE)
    parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
