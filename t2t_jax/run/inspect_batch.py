"""Reconstructs the batch of a training step as text, for debugging; needs no JAX.

The batch of a step is a function of the text, the configuration and the seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from t2t_jax.data.batching.pipeline import START, find_batch
from t2t_jax.data.config import SIDES
from t2t_jax.data.corpora.corpus import PairLocation
from t2t_jax.data.files.progress_bar import Log
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.training.progress_and_patience import Record
from t2t_jax.types import DataPosition


class TextPair(NamedTuple):
    """One pair of a batch.

    Attributes:
      source: decoded from its subwords, as the model reads it, unknown ones included.
      target: the same of the target.
      pieces: the subwords of source and target, separated by spaces; "" for a side
        without BPE-dropout.
    """

    location: PairLocation
    source: str
    target: str
    pieces: tuple[str, str] = ("", "")


class BatchContents(NamedTuple):
    """The batch of one step."""

    position: DataPosition
    num_rows: int
    pairs: tuple[TextPair, ...]


def read_batch(
    text: PreparedData,
    step: int,
    *,
    records: Iterable[Record] = (),
    log: Log = lambda text: None,
) -> BatchContents:
    """Reads the batch of a step from the token cache.

    With BPE-dropout or modifiers its epoch is sampled again.

    Args:
      step: of training, from 1; past or future.
      log: gets lines on the sampling of subwords, if there is any.
      records: of the run's metrics.jsonl. Planning starts at the last one before the
        step that has the position of its batch; without any it starts at step 1, which
        takes 5 to 7 s per epoch of 4.5 million pairs.
    """
    known, start = _last_position(records, step)
    seed, ahead = text.seed, step - known
    sampled = text.sampled_epochs(log=log, ahead=False)
    position, batch, tokens = find_batch(
        text.train, text.config, seed=seed, start=start, ahead=ahead, tokens=sampled
    )
    columns: list[list[str]] = []
    for number, name in enumerate(SIDES):
        vocabulary, side = getattr(text.vocabularies, name), getattr(tokens, name)
        ends = ((side.offsets[pair], side.offsets[pair + 1]) for pair in batch.pairs)
        ids = [side.tokens[first:end] for first, end in ends]
        is_sampled = bool(text.config.bpe_dropout[number])
        pieces = [" ".join(vocabulary.pieces(one[:-1])) * is_sampled for one in ids]
        columns += [vocabulary.decode(ids), pieces]
    places = map(text.train.locate, map(int, batch.pairs))
    pairs = tuple(
        TextPair(place, source, target, (pieces, others))
        for place, source, pieces, target, others in zip(places, *columns, strict=True)
    )
    return BatchContents(position, batch.num_rows, pairs)


def _last_position(records: Iterable[Record], step: int) -> tuple[int, DataPosition]:
    """Returns the last step up to `step` whose batch position is known, and that."""
    found = (1, START)
    for record in records:
        values = [record["step"], record.get("epoch"), record.get("batch")]
        if any(type(value) is not int for value in values):
            continue
        known, *position = values
        if found[0] <= known <= step:
            found = (known, DataPosition(*position))
    return found
