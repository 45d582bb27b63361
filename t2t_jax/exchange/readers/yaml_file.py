"""Reads YAML, of which nothing is executed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from t2t_jax.errors import require_package
from t2t_jax.files import damage_as_data_error

MAX_YAML_BYTES = 64 << 10
"""Size limit of options; Marian's take 8 KB, and a second is taken by 64 KiB."""

_MAX_DEPTH = 50
_MAX_LIST_BYTES = 16 << 20  # of pieces and ids: 500,000 of them


def parse_yaml(content: bytes, *, name: str) -> dict[str, Any]:
    """Parses a mapping.

    Args:
      name: of the file, for messages.

    Raises:
      DataError: it is not a mapping, is larger than `MAX_YAML_BYTES`, or has anchors or
        aliases, by which few bytes can make any number of values.
      UserError: the package pyyaml is not installed.
    """
    yaml = _yaml()
    with _faults(name):
        _check_size(content, MAX_YAML_BYTES)
        text = content.decode()
        _check_tokens(yaml, text)
        _check_keys(yaml, yaml.compose(text, Loader=yaml.SafeLoader))
        found: dict[str, Any] = yaml.safe_load(text)
        if not isinstance(found, dict):
            raise ValueError("it is not a mapping")
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
    with _faults(name):
        _check_size(content, _MAX_LIST_BYTES)
        for event in yaml.parse(content.decode(), Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                scalars.append(event.value)
            elif isinstance(event, yaml.SequenceStartEvent | yaml.AliasEvent):
                raise ValueError("it has more than pieces and ids")
        pieces, ids = scalars[::2], [int(number) for number in scalars[1::2]]
        if min(len({*pieces}), len({*ids})) < len(ids) or min(ids, default=0) < 0:
            raise ValueError("a piece or an id occurs twice, or an id is negative")
        return dict(zip(ids, pieces, strict=True))


def _check_tokens(yaml: Any, text: str) -> None:
    """Checks that values are written once each, and that they are not nested deeply."""
    depth = 0
    for token in yaml.scan(text):
        name = type(token).__name__
        depth += ("Start" in name) - ("End" in name)
        if name in ("AnchorToken", "AliasToken"):
            raise ValueError("it has an anchor or an alias")
        if depth > _MAX_DEPTH:  # Each level makes the parser slower.
            raise ValueError(f"it has more than {_MAX_DEPTH} levels")


def _check_keys(yaml: Any, node: Any) -> None:
    """Checks that no key of a mapping occurs twice; the last one would count."""
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len({*keys}) != len(keys):
            raise ValueError("a key occurs twice")
        node = yaml.SequenceNode("", [value for _, value in node.value])
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(yaml, value)


def _check_size(content: bytes, most: int) -> None:
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")


def _yaml() -> Any:
    user = "Reading the YAML of Marian"
    require_package("yaml", user=user, extra="exchange", package="pyyaml")
    import yaml  # type: ignore[import-untyped]

    return yaml


def _faults(name: str) -> AbstractContextManager[None]:
    return damage_as_data_error(f"{name} is not YAML as Marian writes it")
