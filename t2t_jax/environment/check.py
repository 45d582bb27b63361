"""One checked fact about the machine or the installation, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["ok", "warning", "error"]

_SEVERITY: tuple[Status, ...] = ("ok", "warning", "error")


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
      group: of the report, such as "devices".
      name: unique within the group, and stable.
      status: an error prevents training or translation; a warning makes it slower, or
        less reliable.
      message: what was found.
      advice: what to do about it; "" for nothing.
      details: the same as JSON values.
    """

    group: str
    name: str
    status: Status
    message: str
    advice: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)


def worst(checks: Iterable[Check]) -> Status:
    """Returns the most severe status of checks, "ok" for none.

    Example:
      >>> worst([Check("a", "b", "ok", ""), Check("a", "c", "warning", "")])
      'warning'
    """
    return max((check.status for check in checks), key=_SEVERITY.index, default="ok")
