"""Encodes lines into segments: lines, or parts of lines that are too long."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.search.sampling import row_keys
from t2t_jax.decoding.text.sentences import Sentence, lay_out
from t2t_jax.decoding.text.split_long_lines import split_line
from t2t_jax.decoding.text.terms import Term, terms_within_limit
from t2t_jax.errors import DataError, UserError

if TYPE_CHECKING:
    from t2t_jax.data.source_lines import SourceLines
    from t2t_jax.data.vocabulary.pair import VocabularyPair
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_MIN_PREFIX_WIDTH = 16  # subwords
_LOGGER = logging.getLogger(__name__)
# NUL is valid UTF-8 but does not occur in text: files full of it are mostly UTF-16.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class Segment(NamedTuple):
    """A line, or a part of a long line, that is decoded as one sentence.

    Attributes:
      line: number of the line in the complete text, from 0.
      part: number of the part in its line, from 0.
      subwords: ids without eos, at least one.
      before: separator between the translations of the previous part and this one.
      cut: whether subwords are missing at the end.
      prefix: the subwords with which the translation has to begin.
      terms: what the translation has to contain.
      num_words: words of the source, between spaces.
    """

    line: int
    part: int
    subwords: list[int]
    before: str = ""
    cut: bool = False
    prefix: Sequence[int] = ()
    terms: tuple[Term, ...] = ()
    num_words: int = 0

    def longest_output(self, config: DecodingConfig) -> int:
        """Returns the most tokens of its translation, the eos included.

        Example:
          >>> Segment(0, 0, [5, 6]).longest_output(DecodingConfig())
          52
        """
        limit = min(
            len(self.subwords) + config.max_extra_tokens,
            config.longest_output(len(self.subwords) + 1),
        )
        return max(1, limit)


def make_segments(
    lines: Sequence[str],
    vocabularies: VocabularyPair,
    config: DecodingConfig,
    *,
    source_lines: SourceLines | None = None,
    prefixes: Sequence[str] | None = None,
    terms: Sequence[Sequence[str]] | None = None,
    first: int = 0,
) -> list[Segment]:
    """Encodes lines and prefixes, and splits lines by `config.segment`, and long ones.

    Args:
      source_lines: the lengths of lines beyond which `auto` splits; None for none.
      prefixes: one for each line, "" for none, forced upon its first part; None for no
        prefixes.
      terms: of each line, which `auto` does not split; None for no terms.
      first: the number of line 0 in the complete text.

    Raises:
      UserError: the number of prefixes and lines differs.

    Example:
      >>> from types import SimpleNamespace
      >>> class Letters:
      ...     def encode(self, lines):
      ...         return [[ord(letter) for letter in line] for line in lines]
      >>> pair = SimpleNamespace(source=Letters(), target=Letters())
      >>> config = DecodingConfig(max_source_length=5)
      >>> found = make_segments(["", "a b. c d"], pair, config)
      >>> [(segment.line, len(segment.subwords), segment.before) for segment in found]
      [(1, 4, ''), (1, 3, ' ')]
    """
    forced = _encode_prefixes(prefixes, vocabularies.target, num_lines=len(lines))
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    texts = [replace_lone_surrogates(lines[number]) for number in numbers]
    encoded = vocabularies.source.encode(texts)
    longest = config.max_source_length - 1
    found: list[Segment] = []
    for number, text, ids in zip(numbers, texts, encoded, strict=True):
        sentences: Sequence[Sentence] = (Sentence("", text),)
        is_bound = forced[number] or (terms and terms[number])
        if config.segment == "sentences" or (config.segment == "auto" and not is_bound):
            sentences = _sentences(text, len(ids), config, source_lines)
        if len(sentences) > 1 or len(ids) > longest:
            parts = _split(
                first + number, sentences, vocabularies.source, longest=longest
            )
        else:
            words = len(text.split())
            segment = Segment(first + number, 0, list(ids), num_words=words)
            parts = [segment] if ids else []
        if parts:
            found += [parts[0]._replace(prefix=forced[number]), *parts[1:]]
    return found


def _sentences(
    text: str, subwords: int, config: DecodingConfig, most: SourceLines | None
) -> tuple[Sentence, ...]:
    """Divides a line into its sentences, or leaves it whole."""
    whole = (Sentence("", text),)
    if config.segment == "auto" and most is None:
        return whole
    sentences = lay_out(text, split="sentences").sentences
    if config.segment == "sentences" or most is None:
        return sentences or whole
    is_usual = subwords <= most.subwords.most and (
        len(sentences) <= max(1, most.sentences.most)
    )
    return whole if is_usual else sentences


def _split(
    line: int, sentences: Sequence[Sentence], vocabulary: Vocabulary, *, longest: int
) -> list[Segment]:
    """Encodes sentences; those that are too long in parts."""

    def count(texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in vocabulary.encode(texts)]

    parts = []
    for sentence in sentences:
        begin, *rest = split_line(sentence.text, longest=longest, count=count)
        parts += [begin._replace(before=" " if sentence.gap else ""), *rest]
    encoded = vocabulary.encode([part.text for part in parts])
    # A single character may exceed the limit, encoded as bytes.
    return [
        Segment(
            line,
            number,
            list(ids[:longest]),
            part.before if number else "",
            len(ids) > longest,
            num_words=len(part.text.split()),
        )
        for number, (part, ids) in enumerate(
            (part, ids) for part, ids in zip(parts, encoded, strict=True) if ids
        )
    ]


def _encode_prefixes(
    prefixes: Sequence[str] | None, vocabulary: Vocabulary, *, num_lines: int
) -> list[list[int]]:
    if prefixes is None:
        return [[] for _ in range(num_lines)]
    if len(prefixes) != num_lines:
        raise UserError(
            f"Every line needs one prefix, but there are {num_lines} lines and "
            f'{len(prefixes)} prefixes. Pass as many, "" for none.'
        )
    texts = [replace_lone_surrogates(prefix) for prefix in prefixes]
    return [list(ids) for ids in vocabulary.encode(texts)]


def add_terms(
    segments: Sequence[Segment],
    terms: Sequence[tuple[Term, ...]],
    config: DecodingConfig,
    *,
    first: int = 0,
) -> list[Segment]:
    """Adds the terms of lines to their segments, those that fit the output.

    A line that is split has none: nothing says to which part they belong.

    Args:
      terms: of each line.
      first: the number of line 0 in the complete text.
    """
    split = {segment.line for segment in segments if segment.part}
    return [
        segment
        if segment.line in split
        else segment._replace(
            terms=terms_within_limit(
                terms[segment.line - first],
                limit=segment.longest_output(config),
                prefix=len(segment.prefix),
            )
        )
        for segment in segments
    ]


def check_prefix_lengths(segments: Sequence[Segment], config: DecodingConfig) -> None:
    """Checks that every prefix is shorter than the limit of its translation.

    Raises:
      DataError: some prefixes are too long; the message lists their lines.

    Example:
      >>> segments = [Segment(0, 0, [5, 6], prefix=[7] * 9)]
      >>> check_prefix_lengths(segments, DecodingConfig())
    """
    problems = LineProblems()
    for segment in segments:
        limit = segment.longest_output(config)
        if len(segment.prefix) >= limit:
            problems.add(
                f"Line {segment.line + 1}: its prefix must be shorter than the longest "
                f"translation allowed, {limit} tokens, but has {len(segment.prefix)}. "
                "Shorten it, or raise config.decoding.max_extra_tokens (or "
                "config.decoding.max_length_ratio, if there is one)."
            )
    problems.raise_if_any(DataError)


class BatchInputs(TypedDict, total=False):
    """Optional arrays of a batch."""

    prefixes_BxP: npt.NDArray[np.int32]
    keys_BxK: npt.NDArray[np.uint32]


def make_batch_inputs(
    segments: Sequence[Segment],
    config: DecodingConfig,
    *,
    rows: int,
    max_length: int,
    longest_prefix: int = 0,
) -> BatchInputs:
    """Makes the prefixes and keys of a batch, where they are needed.

    Args:
      longest_prefix: subwords of the longest prefix of all batches, which share one
        width, since each width is a program to compile.

    Example:
      >>> segments = [Segment(1, 0, [5], prefix=[7]), Segment(0, 0, [6])]
      >>> inputs = make_batch_inputs(
      ...     segments, DecodingConfig(), rows=2, max_length=3, longest_prefix=1
      ... )
      >>> inputs["prefixes_BxP"].tolist()
      [[7, 0], [0, 0]]
    """
    inputs = BatchInputs()
    if longest_prefix:
        width = _MIN_PREFIX_WIDTH
        while width < longest_prefix:
            width *= 2
        width = max(1, min(width, max_length - 1))
        inputs["prefixes_BxP"] = np.full((rows, width), DEFAULT_IDS.pad, np.int32)
        for row, segment in enumerate(segments):
            inputs["prefixes_BxP"][row, : len(segment.prefix)] = segment.prefix
    if config.sample:
        numbers_Bx2 = np.zeros((rows, 2), np.uint32)
        for row, segment in enumerate(segments):
            numbers_Bx2[row] = segment.line, segment.part
        line_keys = row_keys(jax.random.key(config.seed), numbers_Bx2[:, 0])
        keys = jax.vmap(jax.random.fold_in)(line_keys, numbers_Bx2[:, 1])
        inputs["keys_BxK"] = np.array(jax.random.key_data(keys), np.uint32)
    return inputs


def warn_truncated(segments: Sequence[Segment], num_lines: int, longest: int) -> None:
    """Logs how many lines were truncated, if any."""
    num_cut = len({segment.line for segment in segments if segment.cut})
    if num_cut:
        _LOGGER.warning(
            "Truncated %d of %d lines with characters of more than %d subwords. Raise "
            "config.decoding.max_source_length to read them in full.",
            num_cut,
            num_lines,
            longest,
        )


def is_text(line: str) -> bool:
    r"""Returns whether a line was valid UTF-8 without NUL characters.

    Args:
      line: decoded with lone surrogates for invalid bytes.

    Example:
      >>> is_text("größe"), is_text("gr\udcf6\udcdfe"), is_text("a\0b")
      (True, False, False)
    """
    return _NO_TEXT.search(line) is None


def replace_lone_surrogates(line: str) -> str:
    r"""Replaces lone surrogates, which JSON allows and UTF-8 does not, by U+FFFD.

    Example:
      >>> ascii(replace_lone_surrogates("a\ud800"))
      "'a\\ufffd'"
    """
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
