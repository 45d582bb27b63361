"""Filters of sentence pairs; a dropped pair counts for the first reason that applies.

Paper: §5.1 mentions no filter but the length of a batch.
Departs: web corpora hold lines that are empty, very long, of unequal length, copied
  from the other side, or repeated, or do not belong together; all filters but the first
  two are off by default.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import GOLDEN, Flags, Hashes, Lengths
from t2t_jax.data.config import FILTERS, SIDES, DataConfig

ALWAYS_COUNTED = ("empty", "too_long", "ratio", "copies", "duplicates")
"""Reasons that a cache counts, whether they drop a pair or not."""

REASONS = (*ALWAYS_COUNTED, *FILTERS)
"""Reasons to drop a pair; duplicates are looked for last."""

KEPT = len(REASONS)

VERSION = "5"
"""Version of the filters by name: others keep other pairs of the same text."""

LENGTHS_VERSION = "2"
"""Version of the lengths whose ratio text with tags is filtered by; without tags 1."""

SPACELESS = (
    r"\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces: Thai to Myanmar, Khmer, kana, Han, Yi."""

# Scripts without spaces, their punctuation, and Korean, which adds particles to links.
_BESIDE = rf"{SPACELESS}\u3000-\u303f\uac00-\ud7a3\uff00-\uffef"
_LETTER = rf"[^\W{_BESIDE}]"  # or a digit, or _
URL = (
    rf"(?:(?i:https?|ftp|git)://|www\.)[^\s<>\"{_BESIDE}]*(?:{_LETTER}|/)"
    # An e-mail address.
    rf"|(?<!{_LETTER})(?<![.+-])(?:{_LETTER}|[.+-])+@(?:{_LETTER}|[.-])+{_LETTER}"
)
"""What the filter `urls` compares; a regular expression without groups."""

TAG = r">>[^\s<>]+<<|<[^\s<>]+>|</?\w[^<>]*>"
"""A tag of a language, of a corpus, or of markup."""

PLACEHOLDER = (
    # 50%-i is a word of Hungarian.
    r"%(?!(?<=\d%)-)(?:\d+\$|\(\w+\))?[-+#0]*(?:[1-9]\d*)?(?:\.\d+)?"
    r"l?[sdifuxXceg@](?!\w)|(?<![\d%])%\d\b"
    rf"|\$?\{{\{{?[\w.:]*\}}?\}}|&(?:#\w+|[^\W\d_]\w+);|{TAG}"
)
"""What the filter `placeholders` compares."""

QUESTION = "?\uff1f\u061f\u037e\u055e\u1367"
"""Characters that end a question; in Greek, `;` does too."""

FULL_STOP = (
    ".!\u2026\u3002\uff01\uff0e\uff61\u0964\u0965\u06d4\u0589\u1362\u104b\u17d4\u17d5"
)
"""Characters that end other sentences."""

CLOSING = (
    "\"')]}\u00ab\u00bb\u2018\u2019\u201c\u201d\u2039\u203a\u300b\u300d\u300f\u3011"
    "\uff09"
)
"""Quotes and brackets that may follow the end of a sentence."""

_BLANKS = " \t\u00a0\u3000\u200b\u200e\u200f"  # and marks of direction
_GREEK = re.compile("[\u0370-\u03ff]")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(
    r"(?<![\d,])\d{1,2}(?:,\d\d)+,\d{3}(?!\d)"  # as in India
    r"|\d{1,3}(?:[.,'\u2019\u066c\s]\d{3})+(?!\d)|\d+"
)
# Wide ones, too.
_BRACKET = re.compile(r"[()\[\]{}\uff08\uff09\uff3b\uff3d\uff5b\uff5d]")
_UNSEEN, _CLEAR, _SHORTEST = -13.0, 0.5, 20
_MOST_TRIGRAMS = 20_000

Reasons: TypeAlias = npt.NDArray[np.int8]
Trigrams: TypeAlias = Mapping[str, float]
"""The most frequent trigrams of a language -> the logarithm of their share."""


def drop_reasons(
    lengths: Lengths, *, copies: Flags, config: DataConfig, tags: Sequence[int] = (0, 0)
) -> Reasons:
    """Returns [P] why each pair is dropped: an index into `REASONS`, or `KEPT`.

    Duplicates are not considered.

    Args:
      lengths: [P] tokens of each source, and [P] of each target, eos included.
      copies: [P] whether the two sides are the same text.
      tags: how many of the tokens of each source and of each target are its tags, which
        the ratio does not count.

    Example:
      >>> source, target = np.array([1, 9, 7, 3]), np.array([4, 4, 3, 3])
      >>> copies = np.array([False, False, False, True])
      >>> config = DataConfig(max_length=8, max_length_ratio=2.5, drop_copies=True)
      >>> found = drop_reasons((source, target), copies=copies, config=config)
      >>> [REASONS[reason] for reason in found]
      ['empty', 'too_long', 'ratio', 'copies']
    """
    longer, shorter = np.maximum(*lengths), np.minimum(*lengths)
    bare = [length - 1 - tag for length, tag in zip(lengths, tags, strict=True)]
    ratio = config.max_length_ratio or np.inf
    applies = [
        shorter <= 1,
        longer > config.max_length,
        np.maximum(*bare) > ratio * np.maximum(np.minimum(*bare), 1),
        copies & config.drop_copies,
    ]
    return np.select(applies, list(range(len(applies))), KEPT).astype(np.int8)


def mark_filtered(
    reasons: Reasons,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    config: DataConfig,
    languages: tuple[str, str] = SIDES,
    trigrams: Mapping[str, Trigrams] | None = None,
) -> Reasons:
    """Returns the reasons with kept pairs that `data.filters` drops.

    Not those for a repeated target, which need all of the text.

    Args:
      languages: of the sources and of the targets; the sides of text that names none.
      trigrams: of each language, for the filter `language`.

    Example:
      >>> sources = ["at 9 or 10", "1,200 at 12.30", "12 cats", "see %s"]
      >>> targets = ["um 10 oder 9", "1 200 um 12:30", "21 Katzen", "siehe"]
      >>> config = DataConfig(filters="digits,placeholders")
      >>> reasons = np.full(4, KEPT, np.int8)
      >>> found = mark_filtered(reasons, sources, targets, config=config)
      >>> [[*REASONS, "kept"][number] for number in found]
      ['kept', 'kept', 'digits', 'placeholders']
    """
    names, marked = config.filter_names, reasons.copy()
    known: dict[str, Any] = {
        "script": [names.get("script", {}).get(one, "") for one in languages],
        "language": _gains(*((trigrams or {}).get(one, {}) for one in languages)),
    }
    chosen = [name for name in FILTERS if name in names and name in _FILTERS]
    for pair in np.flatnonzero(reasons == KEPT).tolist() if chosen else ():
        both = sources[pair], targets[pair]
        why = (name for name in chosen if _FILTERS[name](*both, known.get(name)))
        marked[pair] = next(map(REASONS.index, why), KEPT)
    return marked


def _digits(number: str) -> str:
    # Languages write thousands in other ways.
    return "".join(str(unicodedata.digit(one)) for one in number if one.isdecimal())


_ITEMS: Mapping[str, tuple[re.Pattern[str], Callable[[str], str]]] = {
    "digits": (_NUMBER, _digits),
    "urls": (re.compile(URL), str),
    "placeholders": (re.compile(PLACEHOLDER), str),
    "brackets": (_BRACKET, partial(unicodedata.normalize, "NFKC")),
}
"""Filter -> what must be the same on both sides, and how it is compared."""


def _has_other_items(name: str, source: str, target: str, _: Any) -> bool:
    pattern, read = _ITEMS[name]
    # Sorted, as languages have them in other orders.
    found = [sorted(map(read, pattern.findall(side))) for side in (source, target)]
    return found[0] != found[1]


def first_differences(name: str, source: str, target: str) -> tuple[int, int]:
    """Returns where each side has the first item that the other lacks; 0 without one.

    Args:
      name: of a filter.

    Example:
      >>> first_differences("digits", "from 9 on", "von 9, Raum 12, an")
      (0, 12)
    """
    if name == "punctuation":
        return len(source) - 1, len(target) - 1
    if name not in _ITEMS:
        return 0, 0
    pattern, read = _ITEMS[name]
    found = [
        [(read(match[0]), match.start()) for match in pattern.finditer(side)]
        for side in (source, target)
    ]
    alone = {item for item, _ in found[0]} ^ {item for item, _ in found[1]}
    first, second = (next((at for x, at in own if x in alone), 0) for own in found)
    return first, second


def _final(text: str) -> str:
    """Returns the kind of the final punctuation: `?`, `.` or none."""
    bare = text.rstrip(CLOSING + _BLANKS)
    words = bare.rstrip(QUESTION + FULL_STOP)
    marks = bare[len(words) :]
    is_greek = bare.endswith(";") and _GREEK.search(bare)
    # Armenian marks a question within the sentence.
    is_armenian = marks == "\u0589" and "\u055e" in words.rpartition("\u0589")[2]
    is_question = is_greek or is_armenian or any(mark in QUESTION for mark in marks)
    return "?" if is_question else marks and "."


def _has_other_capitals(source: str, target: str, _: Any) -> bool:
    firsts = [next(filter(str.isalnum, side), "") for side in (source, target)]
    # As 9, or in Chinese, or in Georgian, which begins no sentence with a capital.
    if any(first.lower() == first.title() for first in firsts):
        return False
    loud = [" " in side.strip() and side.isupper() for side in (source, target)]
    return firsts[0].isupper() != firsts[1].isupper() or loud[0] != loud[1]


def _lacks_letters(source: str, target: str, _: Any) -> bool:
    def is_letter(one: str) -> bool:
        return unicodedata.category(one)[0] in "LM"

    sides = ("".join(text.split()) for text in (source, target))
    return any(2 * sum(map(is_letter, side)) < len(side) for side in sides)


def _is_other_script(source: str, target: str, scripts: Sequence[str]) -> bool:
    for text, script in zip((source, target), scripts, strict=True):
        letters = [unicodedata.name(one, "") for one in text if one.isalpha()]
        own = ("CJK", "HIRAGANA", "KATAKANA") if script == "cjk" else script.upper()
        if 2 * sum(name.startswith(own) for name in letters) < len(letters):
            return True
    return False


def learn_trigrams(counts: Counter[str]) -> Trigrams:
    """Returns the shares of the most frequent trigrams, of all that were counted."""
    total = counts.total()
    most = counts.most_common(_MOST_TRIGRAMS)
    return {trigram: math.log(count / total) for trigram, count in most}


def trigrams_of(text: str) -> list[str]:
    """Returns the trigrams of the words of a text, in small letters.

    Example:
      >>> trigrams_of("Go, 4U!")
      [' go', 'go ', 'o u', ' u ']
    """
    words = f" {' '.join(_WORD.findall(text.lower()))} "
    return [words[at : at + 3] for at in range(len(words) - 2)]


def _gains(own: Trigrams, other: Trigrams) -> dict[str, float]:
    """Returns by how much each trigram is likelier in the other language, in nats."""
    # What a language has rarely is never likelier in one that lacks it.
    least = min([_UNSEEN, *own.values(), *other.values()])
    either = own.keys() | other.keys()
    return {one: other.get(one, least) - own.get(one, least) for one in either}


def _is_other_language(source: str, target: str, gains: Mapping[str, float]) -> bool:
    """Compares the likelihoods of each side's trigrams in both languages (naive Bayes).

    Source: character n-grams of a text's own languages, Cavnar and Trenkle 1994.
    """
    for text, sign in ((source, 1), (target, -1)):
        found = trigrams_of(text)
        gain = sign * sum(gains.get(one, 0.0) for one in found)
        if len(found) >= _SHORTEST and gain > _CLEAR * len(found):
            return True
    return False


_FILTERS: Mapping[str, Callable[[str, str, Any], bool]] = {
    **{name: partial(_has_other_items, name) for name in _ITEMS},
    "punctuation": lambda source, target, _: _final(source) != _final(target),
    "capitals": _has_other_capitals,
    "letters": _lacks_letters,
    "script": _is_other_script,
    "language": _is_other_language,
}


def hash_strings(strings: Iterable[str]) -> Hashes:
    """Hashes strings to 64 bits."""
    texts = (one.encode("utf-8", "surrogatepass") for one in strings)
    digests = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), "<u8")


def text_hashes(lines: Iterable[str]) -> Hashes:
    """Hashes lines, without surrounding blanks, to 64 bits."""
    return hash_strings(line.strip() for line in lines)


def pair_hashes(source_hashes: Hashes, target_hashes: Hashes) -> Hashes:
    """Combines the hashes of both sides; not symmetric."""
    # An odd factor (golden ratio) is a bijection modulo 2^64.
    return source_hashes * GOLDEN + target_hashes


def lacks(hashes: Hashes, values: Hashes) -> Flags:
    """Returns which values are not among some sorted hashes."""
    if not len(hashes):
        return np.ones(len(values), np.bool_)
    places = np.minimum(np.searchsorted(hashes, values), len(hashes) - 1)
    missing: Flags = hashes[places] != values
    return missing


class DuplicateFilter:
    """A set of 64-bit hashes, 8 bytes each, that detects repetitions.

    Hashes are kept in sorted runs, each at least twice as long as the next, so there
    are few runs to search and each hash moves only when its run doubles.

    Example:
      >>> seen = DuplicateFilter()
      >>> seen.is_new(np.array([7, 3, 7], np.uint64)).tolist()
      [True, True, False]
      >>> seen.is_new(np.array([5, 3], np.uint64)).tolist()
      [True, False]
    """

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def is_new(self, hashes: Hashes) -> Flags:
        """Returns [P] which hashes [P] occur for the first time, and adds them."""
        values, first_indices = np.unique(hashes, return_index=True)
        new = self._unseen(values)
        self._add(values[new])
        answer = np.zeros(len(hashes), np.bool_)
        answer[first_indices[new]] = True
        return answer

    def add(self, hashes: Hashes, *, most: int) -> int:
        """Adds at most `most` new hashes; returns how many were added."""
        new = hashes[self._unseen(hashes)][:most]
        self._add(new)
        return len(new)

    def values(self) -> Hashes:
        """Returns all hashes, sorted."""
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *self._runs]))

    def _unseen(self, values: Hashes) -> Flags:
        new = np.ones(len(values), np.bool_)
        for run in self._runs:
            new &= lacks(run, values)
        return new

    def _add(self, run: Hashes) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            # numpy's stable sort merges sorted runs in linear time.
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)
