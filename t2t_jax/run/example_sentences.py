"""Sentences to try a model with, from the text that it was made for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.phrasebook.examples import EXAMPLES
from t2t_jax.errors import UserError
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir

MOST = 4
"""How many sentences there are at most."""

_SHORT = 60  # characters; several of these fit on a line or two
_SEARCHED = 50  # sentences among which short ones are looked for
_SAMPLED = re.compile(r"^ *source +(.*\S)", re.MULTILINE)


def example_sentences(workdir: Workdir) -> tuple[str, ...]:
    """Lists sentences that a model should be able to translate.

    An exported or averaged model brings them along. A model of the phrasebook has those
    of `phrasebook_examples`, which its training text does not have; any other run has
    short ones of its development text, as its last evaluation has shown them.

    Args:
      workdir: a run or a model.

    Returns:
      Up to `MOST` sentences; none if there is no text to take them from.

    Raises:
      UserError: config.json cannot be read.
    """
    if kept := _kept(workdir.path / "model.json"):
        return kept
    if not workdir.has_config:
        return ()
    config = workdir.read_config()
    if config.data.train.startswith("phrasebook:"):
        return tuple(example.english for example in EXAMPLES[:MOST])
    sampled = _sampled(workdir.path / "samples")
    return _shortest(sampled) or _shortest(_developed(config))


def _kept(path: Path) -> tuple[str, ...]:
    """Reads what an export has written down; the model works without it."""
    try:
        examples = read_json_object(path, mend="").get("examples")
    except (UserError, OSError):
        return ()
    return tuple(map(str, examples[:MOST])) if isinstance(examples, list) else ()


def _sampled(folder: Path) -> list[str]:
    """Reads the sources of the last evaluation's samples."""
    try:
        files = [path for path in folder.glob("*.txt") if path.stem.isdecimal()]
        latest = max(files, key=lambda path: int(path.stem), default=None)
        text = latest.read_text(encoding="utf-8") if latest else ""
    except (OSError, UnicodeError):
        return []
    return _SAMPLED.findall(text)


def _developed(config: Config) -> list[str]:
    """Reads the first sources of the development text, if it is still there."""
    try:
        corpus = open_corpus(config.data.dev, key="data.dev")
        return [source for source, _ in islice(corpus, _SEARCHED)]
    except (UserError, OSError):
        return []


def _shortest(lines: Iterable[str]) -> tuple[str, ...]:
    """Chooses the first short lines, or else the shortest one."""
    lines = [line.strip() for line in lines if line.strip()]
    short = [line for line in lines if len(line) <= _SHORT]
    return tuple(short[:MOST] or sorted(lines, key=len)[:1])
