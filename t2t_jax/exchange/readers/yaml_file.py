"""Reads YAML, of which nothing is executed."""

from __future__ import annotations

from typing import Any

from t2t_jax.errors import DataError, UserError

_MAX_DEPTH = 50
_MAX_PLAIN = 10_000  # characters of a scalar without quotes, such as a number
_MERGE = "<<"
_MERGE_TAG = "tag:yaml.org,2002:merge"

# What the parser raises for values that do not fit their tags, such as !!int ''.
_BAD_VALUES = (
    *(ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)


def parse_yaml(content: bytes, *, name: str) -> dict[str, Any]:
    """Parses a mapping.

    Args:
      name: of the file, for messages.

    Raises:
      DataError: it is not a mapping, or has anchors, aliases or merge keys, by which
        few bytes can make any number of values.
      UserError: the package pyyaml is not installed.
    """
    yaml = _yaml()
    try:
        text = content.decode()
        _check_events(yaml, text)
        # The parser in C crashes on deep nesting.
        found = yaml.safe_load(text)
    except (yaml.YAMLError, *_BAD_VALUES) as error:
        raise _error(name, error) from error
    if not isinstance(found, dict):
        raise DataError(f"{name} is not a mapping of YAML. Pass a model of Marian.")
    return found


def parse_ids(content: bytes, *, name: str) -> dict[int, str]:
    """Parses a list of pieces with their ids, `piece: id`, to pieces by id.

    Raises:
      DataError: it is something else.
      UserError: the package pyyaml is not installed.
    """
    yaml = _yaml()
    # Of 60,000 pieces in a second. Events, unlike nodes, are not nested.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    scalars = []
    try:
        for event in yaml.parse(content.decode(), Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                scalars.append(event.value)
            elif isinstance(event, yaml.SequenceStartEvent | yaml.AliasEvent):
                raise ValueError("it has more than pieces and ids")
        pieces, ids = scalars[::2], [int(number) for number in scalars[1::2]]
        return dict(zip(ids, pieces, strict=True))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _error(name, error) from error


def _check_events(yaml: Any, text: str) -> None:
    """Checks that values are written once each, and that they are not nested deeply.

    Raises:
      ValueError: they are not.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if getattr(event, "anchor", None) is not None:
            raise ValueError("it has an anchor or an alias")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent):
            is_plain = event.implicit[0] or event.tag is not None
            if event.tag == _MERGE_TAG or (is_plain and event.value == _MERGE):
                raise ValueError("it has a merge key")
            if is_plain and len(event.value) > _MAX_PLAIN:
                raise ValueError(f"it has a value of {len(event.value):,} characters")
        if depth > _MAX_DEPTH:
            raise ValueError(f"it has more than {_MAX_DEPTH} levels")


def _yaml() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise UserError(
            "Files of Marian are YAML, which requires the package pyyaml. Install it: "
            "pip install 't2t-jax[exchange]'."
        ) from error
    return yaml


def _error(name: str, error: Exception) -> DataError:
    return DataError(f"{name} is not YAML as Marian writes it: {_line(error)}.")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
