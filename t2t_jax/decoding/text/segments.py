"""Encodes lines into segments: lines, or parts of lines that are too long."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, NamedTuple

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.sentences import BREAKS, Sentence, lay_out, split_line

if TYPE_CHECKING:
    from t2t_jax.data.source_lines import SourceLines
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_LOGGER = logging.getLogger(__name__)
# NUL is valid UTF-8 but does not occur in text: files full of it are mostly UTF-16.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class Term(NamedTuple):
    """A word or phrase that a translation must contain.

    Attributes:
      text: as the vocabulary writes it.
      tokens: in the target vocabulary.
      ends_word: whether it ends with a word, which must not go on.
    """

    text: str
    tokens: tuple[int, ...]
    ends_word: bool


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
        length = len(self.subwords)
        limit = min(length + config.max_extra_tokens, config.longest_output(length + 1))
        return max(1, limit)


def make_segments(
    lines: Sequence[str],
    vocabulary: Vocabulary,
    config: DecodingConfig,
    *,
    source_lines: SourceLines | None = None,
    whole: Container[int] = (),
    first: int = 0,
    tags: Sequence[Sequence[int]] | None = None,
) -> list[Segment]:
    """Encodes lines, and splits them by `config.segment`, and those that are too long.

    Args:
      source_lines: the lengths of lines beyond which `auto` splits; None for none.
      whole: numbers of the lines that `auto` does not split.
      first: the number of line 0 in the complete text.
      tags: of each line, the ids with which every segment of it begins; None for none.

    Example:
      >>> class Letters:
      ...     def encode(self, lines):
      ...         return [[ord(letter) for letter in line] for line in lines]
      >>> config = DecodingConfig(max_source_length=5)
      >>> found = make_segments(["", "a b. c d"], Letters(), config)
      >>> [(segment.line, len(segment.subwords), segment.before) for segment in found]
      [(1, 4, ''), (1, 3, ' ')]
    """
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    texts = [replace_lone_surrogates(lines[number]) for number in numbers]
    found: list[Segment] = []
    for number, text, ids in zip(numbers, texts, vocabulary.encode(texts), strict=True):
        tag = tags[number] if tags else ()
        longest = config.max_source_length - 1 - len(tag)
        most = None if number in whole else source_lines
        sentences = _sentences(text, len(ids), config, most)
        if len(sentences) > 1 or len(ids) > longest:
            found += _split(first + number, sentences, vocabulary, longest, tag)
        elif ids:
            words = len(text.split())
            found.append(Segment(first + number, 0, [*tag, *ids], num_words=words))
    return found


def _sentences(
    text: str, subwords: int, config: DecodingConfig, most: SourceLines | None
) -> tuple[Sentence, ...]:
    """Divides a line into its sentences, or leaves it whole."""
    whole = (Sentence("", text),)
    is_always = config.segment == "sentences"
    if not (is_always or (config.segment == "auto" and most)) or not BREAKS.search(
        text
    ):
        return whole
    sentences = lay_out(text, split="sentences").sentences or whole
    if is_always or most is None or subwords > most.subwords.most:
        return sentences
    return sentences if len(sentences) > max(1, most.sentences.most) else whole


def _split(
    line: int,
    sentences: Sequence[Sentence],
    vocabulary: Vocabulary,
    longest: int,
    tag: Sequence[int],
) -> list[Segment]:
    """Encodes sentences; those that are too long in parts."""

    def count(texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in vocabulary.encode(texts)]

    parts = []
    for sentence in sentences:
        begin, *rest = split_line(sentence.text, longest=longest, count=count)
        parts += [begin._replace(before=" " if sentence.gap else ""), *rest]
    encoded = vocabulary.encode([part.text for part in parts])
    found: list[Segment] = []
    for (text, before), ids in zip(parts, encoded, strict=True):
        if ids:
            # A single character may exceed the limit, encoded as bytes.
            kept, cut = [*tag, *ids[:longest]], len(ids) > longest
            own = Segment(line, len(found), kept, before if found else "", cut)
            found.append(own._replace(num_words=len(text.split())))
    return found


def warn_truncated(segments: Sequence[Segment], num_lines: int, longest: int) -> None:
    """Logs how many lines were truncated, if any."""
    num_cut = len({segment.line for segment in segments if segment.cut})
    if num_cut:
        _LOGGER.warning(
            f"Truncated {num_cut} of {num_lines} lines with characters of more than "
            f"{longest} subwords. Raise config.decoding.max_source_length to read them "
            "in full."
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
