"""Opens and reads prepared sets of TensorFlow Datasets, and detects damaged ones.

TFDS trusts its files and raises errors of three libraries; all of them are reported
as damage here.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.errors import DataError
from t2t_jax.files import MAX_JSON_BYTES, json_fault, read_limited

_FEATURES = "features.json"
# Keys of feature classes in the old and new formats of TFDS.
_CLASSES = ("pythonClassName", "python_class_name", "type")
_TFDS = "tensorflow_datasets."

_BREAK = re.compile(r"\r?\n|\0")


def import_tfds() -> ModuleType:
    """Imports tensorflow_datasets on first use, as it takes half a second."""
    return importlib.import_module("tensorflow_datasets")


def open_set(directory: Path) -> Any:
    """Opens a prepared set from its metadata files, as TFDS's builder.

    Raises:
      DataError: the metadata are damaged, or name classes outside TFDS.
    """
    try:
        _check_feature_classes(directory / _FEATURES)
        return import_tfds().builder_from_directory(directory)
    except Exception as error:
        raise DataError(
            f"{directory}: not a valid TFDS set ({error}). Remove it, and prepare it "
            "again."
        ) from error


def _check_feature_classes(path: Path) -> None:
    """Refuses a set with other classes: TFDS would import and run their modules."""
    content = read_limited(
        path, max_bytes=MAX_JSON_BYTES, advice="Remove it, and prepare it again."
    )
    try:
        names = list(_classes(json.loads(content)))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path.name}: {json_fault(content, error)}") from error
    for name in names:
        if not name.startswith(_TFDS):
            raise ValueError(f"{path.name} names {name}, whose code would be run")


def _classes(values: Any) -> Iterator[str]:
    """Yields the class names of nested JSON, also of JSON inside strings."""
    if isinstance(values, list):
        for value in values:
            yield from _classes(value)
    elif isinstance(values, dict):
        for name, value in values.items():
            if name in _CLASSES and isinstance(value, str):
                yield value
            elif name == "json" and isinstance(value, str):
                yield from _classes(json.loads(value))
            else:
                yield from _classes(value)


def read_pairs(
    records: Any,
    numbers: Sequence[int],
    *,
    languages: tuple[str, str],
    directory: Path,
) -> list[tuple[bytes, bytes]]:
    """Reads the undecoded sentences of some examples, numbered from 0.

    Raises:
      DataError: a record file is truncated or altered.
    """
    try:
        examples = records.__getitems__(numbers) if numbers else []
        return [(_text(e, languages[0]), _text(e, languages[1])) for e in examples]
    except Exception as error:
        cause = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(
            f"{directory}: a record file is damaged ({cause}). Remove the "
            "directory, and prepare the set again."
        ) from error


def one_line(
    text: bytes, name: str, number: int, problems: LineProblems, *, language: str
) -> str:
    r"""Decodes a sentence, with spaces for line ends and NULs; "" if it is not UTF-8.

    Args:
      number: of the example, from 0.

    Example:
      >>> one_line(b"two\r\nlines", "a", 7, LineProblems(), language="en")
      'two lines'
    """
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        problems.add_line(
            f"{name}, {language}",
            number,
            f"invalid UTF-8 ({error.reason}).",
            location=f"{name}: example {number}, {language}",
        )
        return ""
    return _BREAK.sub(" ", decoded)


def _text(example: Mapping[str, Any], language: str) -> bytes:
    # From a file truncated between two blocks array_record silently reads empty
    # records, which TFDS turns into None.
    text = example[language]
    if not isinstance(text, bytes):
        raise TypeError(f"an example has no text of {language}")
    return text
