"""Reads the prepared sets of TensorFlow Datasets, and tells which are damaged.

TFDS trusts its files and raises whatever comes of that, from three libraries: all of
it is taken for damage here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_jax.data.corpora.tfds_prepare import import_tfds
from t2t_jax.data.files.lines import LineProblems
from t2t_jax.errors import DataError
from t2t_jax.files import MOST_JSON_BYTES, json_fault, read_limited

_FEATURES = "features.json"
# The keys under which TFDS writes the classes of features, in its forms old and new.
_CLASSES = ("pythonClassName", "python_class_name", "type")
_TFDS = "tensorflow_datasets."

_BREAK = re.compile(r"\r?\n|\0")


def open_set(directory: Path) -> Any:
    """Opens a prepared set by what its own files say of it.

    Args:
      directory: holds the set's files, of one version.

    Returns:
      TFDS's builder of the set.

    Raises:
      DataError: the files that describe the set are damaged, or name code of others.
    """
    try:
        _require_classes_of_tfds(directory / _FEATURES)
        return import_tfds().builder_from_directory(directory)
    except Exception as error:
        raise DataError(
            f"{directory}: is not what TFDS has written ({error}). Remove it, to have "
            "it prepared again."
        ) from error


def _require_classes_of_tfds(path: Path) -> None:
    """Refuses a set that names other classes, whose modules TFDS would import."""
    content = read_limited(path, most=MOST_JSON_BYTES, mend="No set needs so much.")
    try:
        names = list(_classes(json.loads(content)))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path.name}: {json_fault(content, error)}") from error
    for name in names:
        if not name.startswith(_TFDS):
            raise ValueError(f"{path.name} names {name}, whose code would be run")


def _classes(told: Any) -> Iterator[str]:
    """Yields the names of classes, however deep, in JSON within JSON too."""
    if isinstance(told, list):
        for value in told:
            yield from _classes(value)
    elif isinstance(told, dict):
        for name, value in told.items():
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
    """Reads some examples of a split.

    Args:
      records: TFDS's data source of the split.
      numbers: which of its examples, from 0; none are no examples.
      languages: names of the source's feature and of the target's.
      directory: holds the set's files, for the message.

    Returns:
      The two sentences of each example, not decoded yet.

    Raises:
      DataError: a file that holds them is cut short or altered.
    """
    try:
        examples = records.__getitems__(numbers) if numbers else []
        return [(_text(e, languages[0]), _text(e, languages[1])) for e in examples]
    except Exception as error:
        cause = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(
            f"{directory}: a file of records is damaged ({cause}). Remove the "
            "directory, to have the set prepared again."
        ) from error


def one_line(
    text: bytes, name: str, number: int, problems: LineProblems, *, language: str
) -> str:
    r"""Decodes a sentence, with spaces for what would break a line in two.

    Args:
      text: the sentence as TFDS gives it.
      name: of the set, for the message.
      number: of the example, from 0.
      problems: where invalid UTF-8 is noted; the sentence is then empty.

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
    # Of a file cut between two blocks array_record reads empty records, and says
    # nothing; TFDS makes None of them.
    text = example[language]
    if not isinstance(text, bytes):
        raise TypeError(f"an example has no text of {language}")
    return text
