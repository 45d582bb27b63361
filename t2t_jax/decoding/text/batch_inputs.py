"""Optional per-batch inputs: forced prefixes and PRNG keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypedDict

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.search.sampling import row_keys
from t2t_jax.decoding.text.segments import Segment, replace_lone_surrogates
from t2t_jax.errors import DataError, UserError

_MIN_PREFIX_WIDTH = 16  # subwords


class _Vocabulary(Protocol):
    def encode(self, lines: Sequence[str], /) -> list[list[int]]: ...


class BatchInputs(TypedDict, total=False):
    """Optional arrays of a batch.

    Attributes:
      prefixes_BxP: [B, P] int32 forced prefixes, then pad.
      keys_BxK: [B, K] uint32, the data of each sentence's PRNG key.
    """

    prefixes_BxP: npt.NDArray[np.int32]
    keys_BxK: npt.NDArray[np.uint32]


def encode_prefixes(
    prefixes: Sequence[str] | None, vocabulary: _Vocabulary, *, num_lines: int
) -> list[list[int]]:
    """Encodes the forced prefix of each line into subwords.

    Args:
      prefixes: one for each line, "" for none; None for no prefixes.

    Raises:
      UserError: the number of prefixes and lines differs.
    """
    if prefixes is None:
        return [[] for _ in range(num_lines)]
    if len(prefixes) != num_lines:
        raise UserError(
            f"Every line needs one prefix, but there are {num_lines} lines and "
            f'{len(prefixes)} prefixes. Pass as many, "" for none.'
        )
    texts = [replace_lone_surrogates(prefix) for prefix in prefixes]
    return [list(ids) for ids in vocabulary.encode(texts)]


def check_prefix_lengths(
    forced: Sequence[Sequence[int]],
    sources: Sequence[Segment],
    config: DecodingConfig,
    *,
    first: int,
) -> None:
    """Checks that every prefix is shorter than the limit of its translation.

    Args:
      forced: the subwords of each line's prefix.
      first: the number of line 0 in the complete text.

    Raises:
      DataError: some prefixes are too long; the message lists their lines.

    Example:
      >>> sources = [Segment(0, 0, [5, 6])]
      >>> check_prefix_lengths([[7] * 9], sources, DecodingConfig(), first=0)
    """
    problems = LineProblems()
    for source in sources:
        limit = len(source.subwords) + config.max_extra_tokens
        needed = 0 if source.part else len(forced[source.line])
        if needed >= max(1, limit):
            problems.add(
                f"Line {first + source.line + 1}: its prefix must be shorter than the "
                f"longest translation allowed, {limit} tokens, but has {needed}. "
                "Shorten it, or raise config.decoding.max_extra_tokens."
            )
    problems.raise_if_any(DataError)


def make_batch_inputs(
    config: DecodingConfig,
    sources: Sequence[Segment],
    forced: Sequence[Sequence[int]],
    *,
    rows: int,
    max_length: int,
    first: int,
) -> BatchInputs:
    """Makes the prefixes and keys of a batch, where they are needed.

    Args:
      sources: the segments of the batch's first rows.
      forced: the subwords of each line's prefix.
      rows: B; rows beyond the sources are empty.
      max_length: T, capacity of the outputs.
      first: the number of line 0 in the complete text.

    Example:
      >>> sources = [Segment(1, 0, [5]), Segment(0, 0, [6])]
      >>> inputs = make_batch_inputs(
      ...     DecodingConfig(), sources, [[], [7]], rows=2, max_length=3, first=0
      ... )
      >>> inputs["prefixes_BxP"].tolist()
      [[7, 0], [0, 0]]
    """
    inputs = BatchInputs()
    if any(forced):
        begins = [[] if one.part else forced[one.line] for one in sources]
        inputs["prefixes_BxP"] = _pad_prefixes(
            begins, rows, width=_width(forced, max_length)
        )
    if config.sample:
        numbers_Bx2 = np.zeros((rows, 2), np.uint32)
        for row, one in enumerate(sources):
            numbers_Bx2[row] = first + one.line, one.part
        inputs["keys_BxK"] = _keys(config.seed, numbers_Bx2)
    return inputs


def _width(forced: Sequence[Sequence[int]], max_length: int) -> int:
    """Chooses one width for all batches of a call: each is a program to compile."""
    width = _MIN_PREFIX_WIDTH
    while width < max(map(len, forced)):
        width *= 2
    return max(1, min(width, max_length - 1))


def _pad_prefixes(
    begins: Sequence[Sequence[int]], rows: int, *, width: int
) -> npt.NDArray[np.int32]:
    prefixes_BxP = np.full((rows, width), DEFAULT_IDS.pad, np.int32)
    for row, begin in enumerate(begins):
        prefixes_BxP[row, : len(begin)] = begin
    return prefixes_BxP


def _keys(seed: int, numbers_Bx2: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Derives a key from each source's numbers of line and part."""
    of_lines = row_keys(jax.random.key(seed), numbers_Bx2[:, 0])
    keys = jax.vmap(jax.random.fold_in)(of_lines, numbers_Bx2[:, 1])
    return np.array(jax.random.key_data(keys), np.uint32)
