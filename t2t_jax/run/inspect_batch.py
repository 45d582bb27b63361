"""What a training step has read, as text: for whoever looks for what went wrong.

Which batch a step reads is a function of the text, the configuration and the seed, so
nothing need have been kept of it. No JAX is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from t2t_jax.data.batching.pipeline import START, find_batch
from t2t_jax.data.corpora.mixture import PairLocation
from t2t_jax.data.token_cache.token_cache import TokenSide
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.training.progress import Record
from t2t_jax.types import DataPosition


class TextPair(NamedTuple):
    """One pair of a batch.

    Attributes:
      place: the corpus and the line that it comes from.
      source: the sentence, put together from its subwords: what the vocabulary cannot
        spell shows as it shows to the model.
      target: its translation, likewise.
    """

    place: PairLocation
    source: str
    target: str


class BatchContents(NamedTuple):
    """What one step reads.

    Attributes:
      place: of the batch, in the run's order.
      num_rows: into which the pairs are packed.
      pairs: row by row.
    """

    place: DataPosition
    num_rows: int
    pairs: tuple[TextPair, ...]


def read_batch(
    text: PreparedData, step: int, *, records: Iterable[Record] = ()
) -> BatchContents:
    """Reads the batch of a step back from the token cache.

    Args:
      step: of training, from 1; made or still to be made.
      records: of the run's metrics.jsonl. From the last one before the step that says
        where its batch stands there are few batches to be planned; without any, all
        from the first step on: 5 to 7 s for each epoch of 4.5 million pairs.
    """
    known, start = _nearest(records, step)
    place, batch = find_batch(
        text.train, text.config, seed=text.seed, start=start, ahead=step - known
    )
    sides = zip(
        _sentences(text.train.source, batch.pairs, text.vocabularies.source),
        _sentences(text.train.target, batch.pairs, text.vocabularies.target),
        strict=True,
    )
    pairs = tuple(
        TextPair(text.train.place(int(pair)), *both)
        for pair, both in zip(batch.pairs, sides, strict=True)
    )
    return BatchContents(place, batch.num_rows, pairs)


def _nearest(records: Iterable[Record], step: int) -> tuple[int, DataPosition]:
    """Finds the last step up to `step` that is known to have read which batch."""
    found = (1, START)
    for record in records:
        values = [record["step"], record.get("epoch"), record.get("batch")]
        if any(type(value) is not int for value in values):
            continue
        known, *place = values
        if found[0] <= known <= step:
            found = (known, DataPosition(*place))
    return found


def _sentences(
    side: TokenSide, pairs: Iterable[int], vocabulary: Vocabulary
) -> Iterator[str]:
    """Joins the subwords of one side of pairs."""
    yield from vocabulary.decode(
        side.tokens[side.offsets[pair] : side.offsets[pair + 1]] for pair in pairs
    )
