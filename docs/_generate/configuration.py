"""The reference of the configuration: every key, and the shipped files."""

import ast
from collections.abc import Iterator

from markdown_text import prose, table

from t2t_jax.cli.flags.modes import FLAGS, KeyDoc, key_docs, section_doc
from t2t_jax.cli.flags.usage import key_notes
from t2t_jax.config import sections
from t2t_jax.config_files import shipped_directory, shipped_names
from t2t_jax.run.resume_rules import CHANGEABLE_ON_RESUME, FIXED_ON_RESUME


def keys() -> Iterator[str]:
    """Yields a section for each section of the configuration, and its keys."""
    for section in sections():
        yield from ["", f"## {section}", "", prose(section_doc(section)), ""]
        for doc in key_docs().values():
            if doc.key.startswith(f"{section}."):
                yield from _key(doc)
    yield from ["", "## Keys outside sections", ""]
    for doc in key_docs().values():
        if "." not in doc.key:
            yield from _key(doc)


def _key(doc: KeyDoc) -> Iterator[str]:
    default = str(doc.default).lower() if isinstance(doc.default, bool) else doc.default
    shown = f"`{default}`" if default != "" else "empty"
    values = prose(doc.values)
    notes = [f"{values[:1].upper()}{values[1:]}; default {shown}."]
    notes += [
        f"Short form in some modes: `--{name}`."
        for name, flag in FLAGS.items()
        if flag.key == doc.key
    ]
    notes += map(prose, key_notes(doc.key))
    yield from [f"### `{doc.key}`", "", prose(doc.meaning), "", " ".join(notes), ""]


def resume() -> Iterator[str]:
    """Yields the table of what may change when a run is resumed."""
    rows = [[f"`{key}`", "yes", why] for key, why in CHANGEABLE_ON_RESUME.items()]
    rows += [[f"`{key}`", "no", why] for key, why in FIXED_ON_RESUME.items()]
    yield from table(["key", "may change", "why"], rows)


def shipped() -> Iterator[str]:
    """Yields a section for each shipped configuration, with its file."""
    for name in shipped_names():
        path = shipped_directory() / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(text)) or name).splitlines()[0]
        yield from ["", f"## {name}", "", prose(title), ""]
        yield from ["```python", text.rstrip(), "```", ""]
