"""Lexical shortlists: the few target ids that a source sentence may need. NumPy only.

A search computes logits of all V target ids at every position. With a shortlist it
computes those of its batch's candidates: the ids that the pieces of its sentences are
most probably translated into, and the most frequent ones.
"""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.text.segments import Segment
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.files import check_size, damage_as_data_error
from t2t_jax.types import PAD, UNK

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.pair import VocabularyPair

MAX_BYTES = 1 << 30
"""Size limit of a file, and of its arrays: 1,000 ids for each of 250,000 pieces."""

_MAKE = "Make one of this model, with the mode shortlist of the command line."
_CELLS = 2_000_000  # of a chunk: each two ids of its pairs
_PASSES = 5

Ids = npt.NDArray[np.int32]
Pair = tuple[Sequence[int], Sequence[int]]


class Batch(NamedTuple):
    """The candidates of a batch, which is searched with indices into them for ids.

    Attributes:
      ids_C: [C] int32 target ids; pad, bos, eos and unk are first, then the tags of
        languages, and pad fills the end.
      allowed_BxC: [B, C] bool, which are candidates of a sentence: its outputs and
        their scores do not depend on the others.
      segments: with indices in the place of ids, in prefixes and terms.
    """

    ids_C: Ids
    allowed_BxC: npt.NDArray[np.bool_]
    segments: list[Segment]


class Shortlist(NamedTuple):
    """The candidates of each source piece.

    Attributes:
      always_A: [A] int32 candidates of every sentence: pad, bos, eos, unk, the tags of
        languages, then the most frequent ids of the target text.
      best_VxK: [source V, K] int32 candidates of each source id, and pad; the special
        ids have none.
      target_size: V, of the target vocabulary.
    """

    always_A: Ids
    best_VxK: Ids
    target_size: int

    def of_batch(
        self, source_BxS: npt.NDArray[np.int32], segments: Sequence[Segment]
    ) -> Batch:
        """Returns the candidates of a batch.

        What `segments` force, of the first rows, is among them.
        """
        rows = np.arange(len(source_BxS))[:, None, None]
        allowed_BxV = np.zeros((len(source_BxS), self.target_size), bool)
        allowed_BxV[:, self.always_A] = True
        allowed_BxV[rows, self.best_VxK[source_BxS]] = True
        for row, one in enumerate(segments):
            allowed_BxV[row, [*one.prefix]] = True
            for term in one.terms:
                allowed_BxV[row, [*term.tokens]] = True
        others = np.setdiff1d(np.nonzero(allowed_BxV.any(axis=0)), self.always_A)
        used = np.concatenate([self.always_A, others])
        ids_C = np.full(padded_size(len(used), self.target_size), PAD, np.int32)
        ids_C[: len(used)] = used
        allowed_BxC = allowed_BxV[:, ids_C]
        allowed_BxC[:, len(used) :] = False
        index_V = np.zeros(self.target_size, np.int32)
        index_V[used] = np.arange(len(used))

        def indexed(one: Segment) -> Segment:
            terms = [t._replace(tokens=(*index_V[[*t.tokens]],)) for t in one.terms]
            prefix = index_V[[*one.prefix]].tolist()
            return one._replace(prefix=prefix, terms=(*terms,))

        return Batch(ids_C, allowed_BxC, [*map(indexed, segments)])

    def to_bytes(self, vocabularies: VocabularyPair) -> bytes:
        """Returns the content of a file, an archive of NumPy's arrays."""
        content = io.BytesIO()
        arrays: Any = {"always": self.always_A, "best": self.best_VxK}
        np.savez_compressed(content, vocabulary=vocabularies.fingerprint, **arrays)
        return content.getvalue()


def padded_size(count: int, size: int) -> int:
    """Returns one of five numbers of candidates: each is a program to compile.

    Args:
      count: of candidates.
      size: V, of the target vocabulary.

    Example:
      >>> [padded_size(count, 8000) for count in (7, 501, 1001, 6500, 8000)]
      [500, 1000, 2000, 8000, 8000]
    """
    sizes = (-(-size // share) for share in (16, 8, 4, 2, 1))
    return next(padded for padded in sizes if padded >= count)


def load_shortlist(path: str | Path, vocabularies: VocabularyPair) -> Shortlist:
    """Loads the shortlist of a model.

    Raises:
      DataError: it was made for other vocabularies, is damaged, or is too large.
      InputMissingError: it does not exist.
    """
    path = Path(path)
    if not path.exists():
        raise InputMissingError(
            f"decoding.shortlist={path}: no such file. {_MAKE} Or set "
            "config.decoding.shortlist to another place, or to nothing."
        )
    fingerprint, always_A, best_VxK = _read(path, path.stat().st_mtime_ns)
    if fingerprint != vocabularies.fingerprint:
        raise DataError(
            f"decoding.shortlist={path} was made for other vocabularies than those of "
            f"the model ({fingerprint[:12]}… and {vocabularies.fingerprint[:12]}…). "
            f"{_MAKE}"
        )
    source, target = (side.size for side in vocabularies)
    ids = np.concatenate([always_A, best_VxK.ravel()])
    if len(best_VxK) != source or ids.min() < 0 or ids.max() >= target:
        raise DataError(f"{path} is damaged: it has ids of no piece. {_MAKE}")
    # A search takes the ids that follow the special ones for the tags.
    tags = {*vocabularies.target.tags.values()}
    if {*always_A[UNK + 1 :][: len(tags)].tolist()} != tags:
        raise DataError(f"{path} is damaged: it has tags elsewhere. {_MAKE}")
    return Shortlist(always_A, best_VxK, target)


@functools.lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> tuple[str, Ids, Ids]:
    """Reads a file that is not trusted, once while it stays as it is."""
    del modified
    check_size(path, max_bytes=MAX_BYTES, advice=_MAKE)
    with damage_as_data_error(f"{path} is no shortlist", advice=_MAKE):
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > MAX_BYTES:
                raise ValueError(f"its arrays have more than {MAX_BYTES:,} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            always_A, best_VxK = arrays["always"], arrays["best"]
            fingerprint = str(arrays["vocabulary"])
        if (always_A.ndim, best_VxK.ndim) != (1, 2) or not (
            always_A.dtype == best_VxK.dtype == np.int32
            and always_A[: UNK + 1].tolist() == [*range(UNK + 1)]
            and len(np.unique(always_A)) == len(always_A)
            and not best_VxK[: UNK + 1].any()
        ):
            raise ValueError("its arrays are no candidates")
    return fingerprint, always_A, best_VxK


def learn_shortlist(
    pairs: Iterable[Pair], vocabularies: VocabularyPair, *, best: int, frequent: int
) -> Shortlist:
    """Learns candidates from pairs of sentences.

    Args:
      pairs: ids of source and target, with the tags of the source.
      best: K - 1, most target ids of each source id. The piece that is the same on both
        sides is one more.
      frequent: target ids that every sentence has.

    Raises:
      DataError: there are no pairs.
    """
    source, target = vocabularies
    counts_V = np.zeros(target.size, np.int64)

    def counted() -> Iterator[Pair]:
        for pair in pairs:
            np.add.at(counts_V, np.asarray(pair[1], int), 1)
            yield pair

    keys, probabilities = lexical_table(counted(), target.size)
    sources, targets = np.divmod(keys, target.size)
    order = np.lexsort((-probabilities, sources))
    sources, targets = sources[order], targets[order]
    rank = np.arange(len(order)) - np.searchsorted(sources, sources)
    kept = (rank < best) & (sources > UNK)
    best_VxK = np.full((source.size, best + 1), PAD, np.int32)
    best_VxK[sources[kept], rank[kept]] = targets[kept]
    index = {piece: id_ for id_, piece in enumerate(target.pieces(range(target.size)))}
    pieces = source.pieces(range(source.size))
    best_VxK[UNK + 1 :, -1] = [index.get(one, PAD) for one in pieces[UNK + 1 :]]
    first = [*range(UNK + 1), *target.tags.values()]
    counts_V[first] = -1
    most = np.argsort(-counts_V, kind="stable")[: min(frequent, (counts_V > 0).sum())]
    return Shortlist(np.array([*first, *most], np.int32), best_VxK, target.size)


def lexical_table(
    pairs: Iterable[Pair], target_size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Estimates t(target id | source id) by IBM model 1, in 5 passes of EM.

    Memory grows by 4 bytes for each two ids of a pair, and 40 for each two that ever
    occur together. Pairs are counted in chunks of 2,000,000 such two, or of one longer
    pair, which take about 60 bytes each meanwhile. Each source has pad too, for target
    ids that translate none of its.

    Source: Brown et al. 1993 (J93-2003), model 1.

    Returns:
      keys: ascending, source id * `target_size` + target id.
      probabilities: of each.

    Raises:
      DataError: there are no pairs.

    Example:
      >>> keys, found = lexical_table([([5], [7]), ([5, 6], [7, 8])], 10)
      >>> dict(zip(keys.tolist(), found.round(2).tolist()))
      {7: 0.88, 8: 0.12, 57: 0.88, 58: 0.12, 67: 0.11, 68: 0.89}
    """
    chunks: list[tuple[Any, Any, Any]] = []
    left = (pair for pair in pairs if all(map(len, pair)))
    while chunk := [*_some(left)]:
        # The candidates of one target token follow one another.
        groups = [
            np.add.outer(np.asarray(target), np.array([PAD, *source]) * target_size)
            for source, target in chunk
        ]
        widths = np.concatenate([np.full(*one.shape) for one in groups])
        joined = np.concatenate([one.ravel() for one in groups])
        own, where = np.unique(joined, return_inverse=True)
        chunks.append((own, where.astype(np.int32), widths))
    if not chunks:
        raise DataError("There are no pairs to learn a shortlist from. Pass others.")
    keys = np.unique(np.concatenate([own for own, _, _ in chunks]))
    probabilities, sources = np.ones(len(keys)), keys // target_size
    for _ in range(_PASSES):
        counts = np.zeros(len(keys))
        for own, where, widths in chunks:
            at = np.searchsorted(keys, own)
            shares = probabilities[at][where]
            sums = np.add.reduceat(shares, np.cumsum(widths) - widths)
            counts[at] += np.bincount(where, shares / np.repeat(sums, widths))
        probabilities = counts / np.bincount(sources, counts)[sources]
    return keys, probabilities


def _some(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Yields the pairs of a chunk."""
    cells = 0
    while cells < _CELLS and (pair := next(pairs, None)):
        cells += (len(pair[0]) + 1) * len(pair[1])
        yield pair
