"""Variants of our own work: the same contest, with some settings changed."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from contest import Work

_SECTIONS = ("model", "training", "data")
_OF_THE_STEP = (
    *("label_smoothing", "micro_batches", "loss_chunks", "gradient_dtype"),
    *("simcut", "simcut_probability", "r_drop"),
)
"""What a single step reads of the section training."""


def changes(variant: str) -> dict[str, Any]:
    """Reads what a variant changes.

    Example:
      >>> changes("model.remat=True,model.compute_dtype=bfloat16")
      {'model.remat': True, 'model.compute_dtype': 'bfloat16'}
    """
    pairs = (change.partition("=") for change in filter(None, variant.split(",")))
    return {key: text if key.isupper() else _value(text) for key, _, text in pairs}


def varied(work: Work, changed: Mapping[str, Any]) -> Work:
    """Changes some settings.

    Args:
      work: has the settings as they are.
      changed: values by key: those of a configuration's sections model, training and
        data, the last where the work is on text; a key in capitals is a variable that
        the process begins with, such as XLA_FLAGS.

    Raises:
      ValueError: there is no such key.
      ConfigError: a value cannot be.
    """
    sections = {
        "model": work.config,
        "training": work.training,
        "data": work.text and work.text.data,
    }
    environment = dict(work.environment)
    new: dict[str, dict[str, Any]] = {section: {} for section in sections}
    for key, value in changed.items():
        section, _, name = key.partition(".")
        if key.isupper():
            environment[key] = str(value)
        elif name in _fields(sections.get(section)) and (
            section != "training" or name in _OF_THE_STEP
        ):
            new[section][name] = value
        else:
            raise ValueError(
                f"{key} is no key of {', '.join(_SECTIONS)} that this work has, nor a "
                "variable in capitals"
            )
    for section, values in new.items():  # at once, for some hang together
        if values:
            sections[section] = dataclasses.replace(sections[section], **values)
    return dataclasses.replace(
        work,
        config=sections["model"],
        training=sections["training"],
        text=work.text and dataclasses.replace(work.text, data=sections["data"]),
        environment=environment,
    )


def _fields(settings: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)} if settings else set()


def add_variant_flag(parser: argparse.ArgumentParser) -> None:
    """Adds `--variant`, which may be given several times."""
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="the same with settings changed, such as model.remat=True",
    )


def _value(text: str) -> Any:
    try:
        return json.loads(text.lower())
    except json.JSONDecodeError:
        return text
