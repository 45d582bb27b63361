"""Ranks the pairs of a corpus by the loss of a trained model, and finds odd ones.

Memory grows by less than 100 bytes a pair; the text is in a temporary file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from t2t_jax.data.token_cache.filters import DuplicateFilter, pair_hashes, text_hashes
from t2t_jax.data.vocabulary.tokenizers import tag_piece
from t2t_jax.decoding.scoring.scorer import Scorer
from t2t_jax.report.inspection.findings import (
    KINDS,
    Pair,
    PairFile,
    Trigrams,
    script_of,
)
from t2t_jax.types import UNK

_WINDOW = 4_096
_SUSPECTS, _MAX_SUSPECTS = 0.05, 20_000
"""Share of the pairs, those of the highest loss, that are scored a second time; more
if more are outliers."""
_SAMPLE = 1_000
_OUTLIER = 3.5
"""Robust standard deviations from the median."""
_LEAST_GAIN = 0.1
"""Nats a token by which sources must help, for a model to find misaligned pairs."""
_MISALIGNED_GAIN = 0.25
"""Share of the usual gain below which a pair may be misaligned."""
_OTHER_SIDE = 0.5
"""Nats a character by which a line is likelier as text of the other side."""
_RARE_SHARE = 1e-5
_SHOWN = ("unscored", "copy", "duplicate", "unknown_tokens")
"""Kinds that a pair shows by itself."""

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


@dataclass
class Inspection:
    """A corpus with the loss and the findings of each pair.

    Attributes:
      pairs: as inspected, in the order of the corpus.
      numbers: [P] of each pair in the corpus, from 0.
      losses: [P] nats a target token, eos included; NaN if unscored.
      gains: [P] nats a token by which the source helps, beside another source; NaN
        where that was not computed.
      lengths: [P, 2] subwords of both sides, with eos.
      findings: by kind [P] whether a pair has it.
      notes: on what could not be found.
      directions: [P] such as en-de; "" of pairs without tags.
    """

    pairs: PairFile
    numbers: Indices
    losses: Floats
    gains: Floats
    lengths: npt.NDArray[np.int32]
    findings: dict[str, npt.NDArray[np.bool_]]
    notes: list[str] = field(default_factory=list)
    directions: Sequence[str] = ()

    @property
    def is_scored(self) -> npt.NDArray[np.bool_]:
        """[P] which pairs have a loss."""
        return ~np.isnan(self.losses)

    def ranking(self) -> Indices:
        """Returns [P] the pairs by falling loss, unscored ones last, ties in order."""
        return np.argsort(np.where(self.is_scored, -self.losses, np.inf), kind="stable")

    def worst(self, share: float) -> Indices:
        """Returns the pairs of the highest loss, a share of those scored."""
        return self.ranking()[: round(share * int(self.is_scored.sum()))]

    def counts(self, of: npt.NDArray[Any] | None = None) -> dict[str, int]:
        """Counts the pairs of each kind.

        Args:
          of: indices of pairs; None means all.
        """
        chosen = slice(None) if of is None else of
        return {kind: int(mask[chosen].sum()) for kind, mask in self.findings.items()}

    def kinds(self, pair: int) -> list[str]:
        """Lists the kinds of a pair."""
        return [kind for kind, mask in self.findings.items() if mask[pair]]


def select(
    pairs: Iterable[tuple[str, str]], *, total: int, most: int
) -> Iterator[tuple[int, Pair]]:
    """Yields at most `most` of `total` pairs, evenly spaced, with their numbers.

    Args:
      most: 0 means all.

    Example:
      >>> [number for number, _ in select([("a", "b")] * 10, total=10, most=4)]
      [2, 4, 7, 9]
    """
    share = min(most, total) if most else total
    for number, pair in enumerate(pairs):
        if (number + 1) * share // total > number * share // total:
            yield number, Pair(*pair)


def inspect(
    pairs: Iterable[tuple[int, Pair]],
    *,
    scorer: Scorer,
    max_length: int,
    directions: Sequence[str] = (),
    seed: int = 0,
    advance: Callable[[int], None] = lambda number: None,
) -> Inspection:
    """Scores pairs of text, and finds odd ones.

    Args:
      pairs: with their numbers in the corpus.
      directions: of each pair of the corpus, such as en-de; "" of one without tags.
      max_length: subwords of a side, with eos, above which a pair is not scored.
      seed: of the sample of ordinary pairs.
      advance: called with numbers of pairs done.
    """
    columns = _Columns(directions)
    try:
        rest = iter(pairs)
        while window := list(islice(rest, _WINDOW)):
            columns.add(window, scorer, max_length=max_length)
            advance(len(window))
        found = columns.finish()
        ratios = np.log(found.lengths[:, 1] / found.lengths[:, 0])
        found.findings["length_ratio"] = unusual_ratios(ratios, among=found.is_scored)
        _find_rare_text(found, columns)
        _find_suspects(found, columns, scorer, seed=seed)
    except BaseException:
        columns.pairs.close()
        raise
    return found


class _Columns:
    """What is known of each pair after the first pass."""

    def __init__(self, directions: Sequence[str] = ()) -> None:
        self.pairs = PairFile()
        self._directions = directions
        self.characters: Counter[str] = Counter()
        self.scripts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self.trigrams = (Trigrams(), Trigrams())
        self._seen = DuplicateFilter()
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []

    def add(
        self, window: Sequence[tuple[int, Pair]], scorer: Scorer, *, max_length: int
    ) -> None:
        """Scores consecutive pairs, and finds what each shows by itself."""
        texts = [pair for _, pair in window]
        sides = tuple(zip(*texts, strict=True))
        both = zip(scorer.vocabularies, sides, strict=True)
        ids = [vocabulary.encode(side) for vocabulary, side in both]
        lengths = np.array([[len(one) + 1 for one in side] for side in ids]).T
        is_scored = (lengths.min(1) > 1) & (lengths.max(1) <= max_length)
        unknown = [UNK in one or UNK in other for one, other in zip(*ids, strict=True)]
        copies = [bool(s.strip()) and s.strip() == t.strip() for s, t in texts]
        for counts, side in zip(self.trigrams, sides, strict=True):
            counts.add(side)
        is_new = self._seen.is_new(pair_hashes(*map(text_hashes, sides)))
        findings = np.array((~is_scored, copies, ~is_new, unknown), np.bool_).T
        numbers = np.array([number for number, _ in window])
        languages = self._directions_of(numbers)
        losses = _losses(scorer, texts, np.flatnonzero(is_scored), languages)
        self._parts.append((numbers, losses, lengths, findings))
        for pair in texts:
            self.pairs.add(pair)
            self.characters.update(set(pair.source) | set(pair.target))
            for scripts, line in zip(self.scripts, pair, strict=True):
                scripts[script_of(line)] += 1

    def _directions_of(self, numbers: npt.NDArray[Any]) -> list[str]:
        known = self._directions
        return [known[int(number)] if known else "" for number in numbers]

    def finish(self) -> Inspection:
        """Joins the windows."""
        empty = (np.zeros(0), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 4)))
        columns = zip(*(self._parts or [empty]), strict=True)
        numbers, losses, lengths, shown = map(np.concatenate, columns)
        findings = {kind: np.zeros(len(losses), np.bool_) for kind in KINDS}
        findings |= zip(_SHOWN, shown.T > 0, strict=True)
        return Inspection(
            pairs=self.pairs,
            numbers=numbers.astype(np.int64),
            losses=losses.astype(np.float32),
            gains=np.full(len(losses), np.nan, np.float32),
            lengths=lengths.astype(np.int32),
            findings=findings,
            directions=self._directions_of(numbers),
        )


def _losses(
    scorer: Scorer, pairs: Sequence[Pair], chosen: Indices, directions: Sequence[str]
) -> Floats:
    """Returns [P] the loss a token of the chosen pairs, NaN for the others."""
    losses = np.full(len(pairs), np.nan, np.float32)
    tags = [tag_piece(one) if one else "" for one in directions]
    sources = [tags[number] + pairs[number].source for number in chosen]
    targets = [pairs[number].target for number in chosen]
    for number, score in scorer.iter_scores(sources, targets):
        losses[chosen[number]] = -score.per_token
    return losses


def unusual_ratios(
    ratios: npt.NDArray[Any], *, among: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Returns [P] which logarithms of ratios are far from the usual one.

    That is 3.5 robust standard deviations, and a factor of two, from the median.

    Args:
      among: [P] which ones count; the others are not unusual.
    """
    if not among.any():
        return among
    center, spread = robust_normal(ratios[among])
    is_odd = np.abs(ratios - center) > max(_OUTLIER * spread, np.log(2))
    return np.asarray(among & is_odd)


def robust_normal(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Returns the median, and the standard deviation that its quartiles suggest.

    Example:
      >>> robust_normal(np.array([1.0, 2.0, 3.0, 1000.0, 2.0]))
      (2.0, 1.4826)
    """
    center = float(np.median(values))
    return center, 1.4826 * float(np.median(np.abs(values - center)))


def _find_rare_text(found: Inspection, columns: _Columns) -> None:
    """Marks pairs with rare characters, or a side of another script than usual."""
    most = max(1, round(_RARE_SHARE * len(found.pairs)))
    rare = {one for one, count in columns.characters.items() if count <= most}
    usual = [_usual_script(counts) for counts in columns.scripts]
    if len({*found.directions}) > 1:  # of a side, which has several languages
        usual = ["", ""]
    for number, pair in enumerate(found.pairs):
        found.findings["rare_characters"][number] = not rare.isdisjoint("".join(pair))
        found.findings["script"][number] = any(
            script and script_of(line) not in ("", script)
            for line, script in zip(pair, usual, strict=True)
        )


def _usual_script(counts: Counter[str]) -> str:
    """Returns the script of more than half of the lines that have one; else ""."""
    total = counts.total() - counts[""]
    return next((one for one, count in counts.items() if one and 2 * count > total), "")


def _find_suspects(
    found: Inspection, columns: _Columns, scorer: Scorer, *, seed: int
) -> None:
    """Finds the likely reason for a high loss: another language, or another source."""
    if len(scored := np.flatnonzero(found.is_scored)) < 2:
        return
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(scored, min(_SAMPLE, len(scored)), replace=False))
    suspects = _suspects(found)
    found.gains[:] = _gains(found, np.union1d(sample, suspects), scorer, rng, sample)
    is_single = len({*found.directions}) == 1
    if not is_single:
        several = "The text has several directions: no wrong languages or scripts "
        several += "are looked for."
        found.notes.append(several)
    for side in range(2 * is_single):
        own, other = columns.trigrams[side], columns.trigrams[1 - side]
        lines = [found.pairs[int(index)][side] for index in suspects]
        usual = own.scores([found.pairs[int(index)][side] for index in sample])
        center, spread = robust_normal(usual)
        scores = own.scores(lines)
        is_foreign = scores < center - _OUTLIER * spread
        is_foreign |= scores < other.scores(lines, are_counted=False) - _OTHER_SIDE
        found.findings["language"][suspects[is_foreign]] = True
    if (usual_gain := float(np.median(found.gains[sample]))) < _LEAST_GAIN:
        found.notes.append(
            f"The source helps this model by {usual_gain:.2f} nats a token, too little "
            "to find misaligned pairs. Train longer."
        )
        return
    is_misaligned = found.gains[suspects] < _MISALIGNED_GAIN * usual_gain
    found.findings["misaligned"][suspects[is_misaligned]] = True


def _suspects(found: Inspection) -> Indices:
    """Returns the pairs of the highest loss: a share of all, or all outliers."""
    losses = found.losses[found.is_scored]
    center, spread = robust_normal(losses)
    outliers = int((losses > center + _OUTLIER * spread).sum())
    most = max(round(_SUSPECTS * len(losses)), outliers)
    return found.ranking()[: min(most, _MAX_SUSPECTS)]


def _gains(
    found: Inspection, chosen: Indices, scorer: Scorer, rng: Generator, sample: Indices
) -> Floats:
    """Returns [P] how much lower a loss is than with the source of a sampled pair.

    Args:
      chosen: indices of the pairs; the others get NaN.
      sample: sorted indices of the pairs whose sources are used.
    """
    others = rng.choice(sample, len(chosen))
    same = others == chosen  # The next one instead of its own.
    others[same] = sample[(np.searchsorted(sample, others[same]) + 1) % len(sample)]
    pairs = [
        Pair(found.pairs[int(other)].source, found.pairs[int(own)].target)
        for own, other in zip(chosen, others, strict=True)
    ]
    languages = [found.directions[index] for index in chosen]
    gains = np.full(len(found.losses), np.nan, np.float32)
    losses = _losses(scorer, pairs, np.arange(len(pairs)), languages)
    gains[chosen] = losses - found.losses[chosen]
    return gains
