"""Optional stages of a translation; lines that need none pass none of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.trees.linearization import read_parse
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.sampling import row_keys
from t2t_jax.decoding.search.tree_constraint import TreeConstraint
from t2t_jax.decoding.text.segments import Segment, is_text, replace_lone_surrogates
from t2t_jax.decoding.text.translation import Translation, is_short
from t2t_jax.errors import DataError
from t2t_jax.types import PAD

if TYPE_CHECKING:
    from t2t_jax.data.token_cache.known_words import KnownWords
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

Inputs: TypeAlias = dict[str, Any]
"""Arguments of `chunked_search`."""

_MIN_PREFIX_WIDTH = 16  # subwords
_TREE_TOKENS = 3  # that opens, that closes, and eos


class Stage:
    """An optional stage of the translation of lines; this one does nothing.

    Attributes:
      key: what the shapes of its arrays depend on, if the programs of a search are not
        those of lines without it.
      whole: numbers of the lines that `config.segment=auto` must not split.
    """

    key: Any = None
    whole: Collection[int] = ()

    def prepare(self, segments: list[Segment]) -> None:
        """Checks the segments of all lines, or replaces some of the list."""

    def inputs(self, segments: Sequence[Segment], rows: int, max_length: int) -> Inputs:
        """Makes arguments of the search for a batch.

        Args:
          segments: of the first rows.
          max_length: most tokens of an output.
        """
        return {}

    def finish(self, number: int, translation: Translation) -> Translation:
        """Adds to the translation of a line."""
        return translation


@dataclasses.dataclass
class Prefixes(Stage):
    """Forces a prefix upon the first part of each line, and a tag upon every part."""

    prefixes: Sequence[str]
    vocabulary: Vocabulary
    config: DecodingConfig
    first: int
    tags: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        self._ids = self.vocabulary.encode(map(replace_lone_surrogates, self.prefixes))
        self.whole = {number for number, ids in enumerate(self._ids) if ids}

    def prepare(self, segments: list[Segment]) -> None:
        """Adds the prefixes.

        Raises:
          DataError: some leave no room for a translation; the message lists them.
        """
        problems = LineProblems()
        for index, segment in enumerate(segments):
            number = segment.line - self.first
            own = () if segment.part else self._ids[number]
            prefix = (*self.tags[number], *own)
            segments[index] = segment._replace(prefix=prefix)
            if len(prefix) >= (limit := segment.longest_output(self.config)):
                problems.add(
                    f"Line {segment.line + 1}: its prefix must be shorter than the "
                    f"longest translation allowed, {limit} tokens, but has "
                    f"{len(prefix)}. Shorten it, or raise "
                    "config.decoding.max_extra_tokens (or "
                    "config.decoding.max_length_ratio, if there is one)."
                )
        problems.raise_if_any(DataError)
        longest = max((len(segment.prefix) for segment in segments), default=0)
        # All batches share one width, since each is a program to compile.
        width = max(_MIN_PREFIX_WIDTH, 1 << (longest - 1).bit_length())
        self.key = width if longest else None

    def inputs(self, segments: Sequence[Segment], rows: int, max_length: int) -> Inputs:
        """Makes the prefixes of a batch."""
        if self.key is None:
            return {}
        width = max(1, min(self.key, max_length - 1))
        prefixes_BxP = np.full((rows, width), PAD, np.int32)
        for row, segment in enumerate(segments):
            prefixes_BxP[row, : len(segment.prefix)] = segment.prefix
        return {"prefixes_BxP": prefixes_BxP}

    def finish(self, number: int, translation: Translation) -> Translation:
        """Notes whether the prefix was not text."""
        is_invalid = translation.invalid_utf8 or not is_text(self.prefixes[number])
        return dataclasses.replace(translation, invalid_utf8=is_invalid)


class Trees(Stage):
    """Makes every translation a tree over the words of its line."""

    def __init__(self, constraint: TreeConstraint, config: DecodingConfig):
        self._constraint, self._config = constraint, config

    def prepare(self, segments: list[Segment]) -> None:
        """Checks that every line is in one part, and that a tree fits its limit.

        Raises:
          DataError: a line is too long, or has a prefix; the message lists them.
        """
        problems = LineProblems()
        for segment in segments:
            limit = segment.longest_output(self._config)
            needed = segment.num_words + _TREE_TOKENS
            line = f"Line {segment.line + 1}"
            if segment.part or segment.cut:
                problems.add(
                    f"{line}: it has more than {self._config.max_source_length - 1} "
                    "subwords and would be split, and the trees of its parts are not "
                    "one tree. Raise config.decoding.max_source_length."
                )
            elif needed > limit:
                problems.add(
                    f"{line}: a tree over its {segment.num_words} words needs {needed} "
                    f"tokens and may have {limit}. Raise "
                    "config.decoding.max_extra_tokens."
                )
            if segment.prefix:
                problems.add(
                    f"{line}: decoding.constraint=tree does not support prefixes. "
                    "Leave them out."
                )
        problems.raise_if_any(DataError)

    def inputs(self, segments: Sequence[Segment], rows: int, max_length: int) -> Inputs:
        """Makes the constraint, and the number of words of each row."""
        words_B = np.zeros(rows, np.int32)
        words_B[: len(segments)] = [segment.num_words for segment in segments]
        return {"constraint": self._constraint, "constraint_rows": words_B}


class Samples(Stage):
    """Gives each line a key: its samples depend on the seed and its number only."""

    def __init__(self, seed: int):
        self._seed = seed

    def inputs(self, segments: Sequence[Segment], rows: int, max_length: int) -> Inputs:
        """Makes the keys of a batch."""
        numbers_Bx2 = np.zeros((rows, 2), np.uint32)
        for row, segment in enumerate(segments):
            numbers_Bx2[row] = segment.line, segment.part
        line_keys = row_keys(jax.random.key(self._seed), numbers_Bx2[:, 0])
        keys = jax.vmap(jax.random.fold_in)(line_keys, numbers_Bx2[:, 1])
        return {"keys_BxK": np.array(jax.random.key_data(keys), np.uint32)}


class MinimumBayesRisk(Stage):
    """Keeps the outputs of a line that are most like all of its outputs, by chrF.

    Of samples, the mean is an estimate of the expected chrF under the model.
    """

    def __init__(self, n_best: int):
        self._n_best = n_best

    def finish(self, number: int, translation: Translation) -> Translation:
        """Orders the outputs of a line, and keeps the first."""
        from sacrebleu.metrics import CHRF

        found, chrf = translation.hypotheses, CHRF()
        counts = Counter(one.text for one in found)

        def utility(text: str) -> Any:
            others = counts.items()
            return sum(n * chrf.sentence_score(text, [one]).score for one, n in others)

        utilities = {text: utility(text) for text in counts}
        best = sorted(found, key=lambda one: (-utilities[one.text], -one.score))
        short = translation.short
        if translation.num_parts == 1:
            short = is_short(len(translation.source_tokens) - 1, best[0])
        kept = tuple(best[: self._n_best])
        return dataclasses.replace(translation, hypotheses=kept, short=short)


class UnseenWords(Stage):
    """Notes which share of a line's words the training text does not contain."""

    def __init__(self, known_words: KnownWords, lines: Sequence[str]):
        self._shares = known_words.unseen_shares(lines)

    def finish(self, number: int, translation: Translation) -> Translation:
        """Notes the share of a line."""
        return dataclasses.replace(translation, unseen_words=self._shares[number])


class Parses(Stage):
    """Reads the translations of a parser as trees."""

    def __init__(self, lines: Sequence[str]):
        self._lines = lines

    def finish(self, number: int, translation: Translation) -> Translation:
        """Reads the tree of a line that is not blank."""
        line = self._lines[number]
        parse = read_parse(line, translation.text) if line.split() else None
        return dataclasses.replace(translation, parse=parse)
