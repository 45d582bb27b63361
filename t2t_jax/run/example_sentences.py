"""Example sentences for a model, from its own text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.phrasebook import examples
from t2t_jax.errors import UserError
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir

MAX_EXAMPLES = 4
"""Number of example sentences."""

_SHORT = 60  # characters; several of these fit on a line or two
_SEARCHED = 50  # sentences searched for short ones
_SAMPLE_SOURCE = re.compile(r"^ *source +(.*\S)", re.MULTILINE)


def example_sentences(workdir: Workdir) -> tuple[str, ...]:
    """Lists sentences that a model should be able to translate.

    An exported or averaged model has them in model.json. A model of the phrasebook has
    its `examples()`, which are not in its training text. Any other run has short
    sentences of its development text, from the samples of its last evaluation.

    Returns:
      Up to `MAX_EXAMPLES` sentences; empty if there is no text.

    Raises:
      UserError: config.json cannot be read.
    """
    if stored := _stored_examples(workdir.path / "model.json"):
        return stored
    if not workdir.has_config:
        return ()
    config = workdir.read_config()
    if config.data.train.startswith("phrasebook:"):
        return tuple(example.english for example in examples()[:MAX_EXAMPLES])
    sampled = _sampled_sources(workdir.path / "samples")
    return _short_lines(sampled) or _short_lines(_dev_sources(config))


def _stored_examples(path: Path) -> tuple[str, ...]:
    """Reads the examples of model.json, which are optional."""
    try:
        examples = read_json_object(path, advice="").get("examples")
    except (UserError, OSError):
        return ()
    return (
        tuple(map(str, examples[:MAX_EXAMPLES])) if isinstance(examples, list) else ()
    )


def _sampled_sources(folder: Path) -> list[str]:
    """Reads the sources of the last evaluation's samples."""
    try:
        files = [path for path in folder.glob("*.txt") if path.stem.isdecimal()]
        latest = max(files, key=lambda path: int(path.stem), default=None)
        text = latest.read_text(encoding="utf-8") if latest else ""
    except (OSError, UnicodeError):
        return []
    return _SAMPLE_SOURCE.findall(text)


def _dev_sources(config: Config) -> list[str]:
    """Reads the first sources of the development text, if it still exists."""
    try:
        data = config.data
        corpus = open_corpus(data.dev, key="data.dev", joiner=data.subword_joiner)
        return [source for source, _ in islice(corpus, _SEARCHED)]
    except (UserError, OSError):
        return []


def _short_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the first short lines, or else the shortest one."""
    lines = [line.strip() for line in lines if line.strip()]
    short = [line for line in lines if len(line) <= _SHORT]
    return tuple(short[:MAX_EXAMPLES] or sorted(lines, key=len)[:1])
