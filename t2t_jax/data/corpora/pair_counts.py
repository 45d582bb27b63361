"""Counts the pairs of a corpus without encoding it, or estimates their number."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.corpora.base import Corpus, MixtureCorpus, SliceCorpus
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.text_files import TextCorpus, TsvCorpus
from t2t_jax.data.files.line_counts import Count, estimate_lines
from t2t_jax.errors import DataError, InputMissingError

_BUDGET = 2_000_000_000


class PairCount(NamedTuple):
    """Size of a corpus.

    Attributes:
      pairs: None if unknown.
      note: why the number is unknown or what is wrong; "" otherwise.
    """

    spec: str
    pairs: int | None
    note: str


def count_pairs(spec: str, *, key: str, budget: int = _BUDGET) -> PairCount:
    """Counts the pairs of the corpus that a spec names.

    Nothing is decoded, checked or downloaded, except that both sides must have as many
    lines.

    Args:
      budget: uncompressed bytes that may be read of each side.

    Returns:
      The number, or the reason why it is unknown: a missing corpus is not an error.

    Raises:
      ConfigError: the spec is invalid.

    Example:
      >>> count_pairs("phrasebook:dev:500[7:]", key="data.dev")
      PairCount(spec='phrasebook:dev:500[7:]', pairs=493, note='')
    """
    if not spec:
        return PairCount(spec, None, f"config.{key} is empty.")
    try:
        pairs = open_corpus(spec, key=key).num_pairs(budget=budget)
    except (DataError, InputMissingError) as error:
        return PairCount(spec, None, "\n".join(error.problems))
    return PairCount(spec, pairs, "")


def estimate_pairs(corpus: Corpus) -> Count:
    """Counts the pairs of a corpus, or estimates them if counting would take long.

    Raises:
      DataError: a file is broken gzip.
      InputMissingError: a file cannot be read.

    Example:
      >>> estimate_pairs(open_corpus("phrasebook:dev:500[7:]"))
      Count(number=493, is_exact=True)
    """
    if isinstance(corpus, SliceCorpus):
        number, is_exact = estimate_pairs(corpus.base)
        return Count(max(min(number, corpus.stop) - corpus.start, 0), is_exact)
    if isinstance(corpus, MixtureCorpus):
        counts = [estimate_pairs(part) for part, _ in corpus.parts]
        numbers, are_exact = zip(*counts, strict=True)
        return Count(sum(numbers), all(are_exact))
    if isinstance(corpus, TextCorpus):
        return estimate_lines(corpus.source)
    if isinstance(corpus, TsvCorpus):
        return estimate_lines(corpus.path)
    return Count(corpus.num_pairs(), True)
