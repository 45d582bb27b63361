"""What a batch is given beside its sources: prefixes, and randomness."""

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

_NARROWEST = 16  # subwords


class _Vocabulary(Protocol):
    def encode(self, lines: Sequence[str], /) -> list[list[int]]: ...


class BatchInputs(TypedDict, total=False):
    """What is there of it.

    Attributes:
      prefixes_BxP: [B, P] int32 tokens that each output must begin with, then pad.
      keys_BxK: [B, K] uint32, the data of each sentence's PRNG key.
    """

    prefixes_BxP: npt.NDArray[np.int32]
    keys_BxK: npt.NDArray[np.uint32]


def encoded_prefixes(
    prefixes: Sequence[str] | None, vocabulary: _Vocabulary, *, num_lines: int
) -> list[list[int]]:
    """Encodes what the translation of each line must begin with.

    Args:
      prefixes: one for each line, "" for nothing; None: nothing anywhere.

    Returns:
      The subwords of each.

    Raises:
      UserError: there are not as many prefixes as lines.
    """
    if prefixes is None:
        return [[] for _ in range(num_lines)]
    if len(prefixes) != num_lines:
        raise UserError(
            f"Every line must have one prefix, and there are {num_lines} lines and "
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
    """Checks that no prefix is longer than the translation that it begins.

    Args:
      forced: the subwords of each line's prefix.
      config: says how much longer than its source an output may be.
      first: the number of line 0 in the whole text.

    Raises:
      DataError: some prefixes are; it names their lines.

    Example:
      >>> require_room([[7] * 9], [Segment(0, 0, [5, 6])], DecodingConfig(), first=0)
    """
    problems = LineProblems()
    for source in sources:
        limit = len(source.subwords) + config.max_extra_tokens
        needed = 0 if source.part else len(forced[source.line])
        if needed >= max(1, limit):
            problems.add(
                f"Line {first + source.line + 1}: its prefix must be shorter than the "
                f"longest translation allowed, {limit} tokens, and has {needed}. "
                "Shorten it, or raise config.decoding.max_extra_tokens."
            )
    problems.raise_if_any(DataError)


def make_batch_inputs(
    config: DecodingConfig,
    sources: Sequence[Segment],
    forced: Sequence[Sequence[int]],
    *,
    rows: int,
    room: int,
    first: int,
) -> BatchInputs:
    """Makes the arrays of a batch.

    Args:
      config: says whether to draw, and the seed.
      sources: of the batch's first rows.
      forced: of each line, the subwords that its translation must begin with.
      rows: B, of the batch; those beyond the sources are empty.
      room: tokens that an output of this batch may hold.
      first: the number of line 0 in the whole text.

    Returns:
      What is needed; nothing where nothing is forced and nothing drawn.

    Example:
      >>> sources = [Segment(1, 0, [5]), Segment(0, 0, [6])]
      >>> given = make_batch_inputs(
      ...     DecodingConfig(), sources, [[], [7]], rows=2, room=3, first=0
      ... )
      >>> given["prefixes_BxP"].tolist()
      [[7, 0], [0, 0]]
    """
    given = BatchInputs()
    if any(forced):
        begins = [[] if one.part else forced[one.line] for one in sources]
        given["prefixes_BxP"] = _padded(begins, rows, width=_width(forced, room))
    if config.sample:
        numbers_Bx2 = np.zeros((rows, 2), np.uint32)
        for row, one in enumerate(sources):
            numbers_Bx2[row] = first + one.line, one.part
        given["keys_BxK"] = _keys(config.seed, numbers_Bx2)
    return given


def _width(forced: Sequence[Sequence[int]], room: int) -> int:
    """Chooses one width for all batches of a call: each is a program to compile."""
    width = _NARROWEST
    while width < max(map(len, forced)):
        width *= 2
    return max(1, min(width, room - 1))


def _padded(
    begins: Sequence[Sequence[int]], rows: int, *, width: int
) -> npt.NDArray[np.int32]:
    prefixes_BxP = np.full((rows, width), DEFAULT_IDS.pad, np.int32)
    for row, begin in enumerate(begins):
        prefixes_BxP[row, : len(begin)] = begin
    return prefixes_BxP


def _keys(seed: int, numbers_Bx2: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Makes a key of each source's number of line and part."""
    of_lines = row_keys(jax.random.key(seed), numbers_Bx2[:, 0])
    keys = jax.vmap(jax.random.fold_in)(of_lines, numbers_Bx2[:, 1])
    return np.array(jax.random.key_data(keys), np.uint32)
