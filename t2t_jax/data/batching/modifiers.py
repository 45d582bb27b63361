"""Modifiers: changes of sentence pairs, so that a model copes with such input.

Each takes a pair and a generator of random numbers, and returns a pair. Training
changes some pairs of each epoch (`modified_pairs`); `--mode=evaluate --robustness`
changes whole test sets. URLs, e-mail addresses, tags and placeholders stay as they are:
what `token_cache.filters` compares.

Departs: the paper trains on the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from t2t_jax.data.token_cache.filters import (
    CLOSING,
    FULL_STOP,
    PLACEHOLDER,
    QUESTION,
    TAG,
    URL,
)

Pair: TypeAlias = tuple[str, str]
_Make: TypeAlias = Callable[[Random], str]

VERSION = "3"
"""Version of the modifiers: others make other text of the same numbers."""

_TAGS = re.compile(rf"\A\s*(?:(?:{TAG})\s*)*")
_ITEM = f"(?:{URL}|{PLACEHOLDER})"
_COPIED = re.compile(f"({_ITEM})")
_GAP = re.compile(rf"{_ITEM}\s?|(?<=\w) (?=\w)(?!{_ITEM})")
_MARKS = f"{FULL_STOP}{QUESTION}"
_FINAL = re.compile(
    rf"(?<!\s)\s*(?<![{_MARKS}])[{_MARKS}]++(?=[{re.escape(CLOSING)}]*\s*$)"
)
_INITIAL = re.compile(r"(?<![\w'\u2019\u0300-\u036f])[^\W\d_]")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(at - 1, 0) : at] + row[at + 1 : at + 2]
    for row in _KEYS
    for at, key in enumerate(row)
}
_LETTERS_PER_FAULT = 40
_SYLLABLES = ("ba", "de", "fi", "ko", "lu", "ma", "ne", "po", "ra", "su", "ti", "ve")
_DOMAINS = ("com", "org", "net", "de", "fr", "io")
_EMOJI = "😀😂😉😍😎😢😡🤔👍👏🙏💪🔥🎉🚀🌍"


def _choose(some: Sequence[str], rng: Random) -> str:
    # The one method whose numbers are promised to stay with versions of Python.
    return some[int(rng.random() * len(some))]


def _digits(least: int, most: int, rng: Random) -> str:
    count = least + int(rng.random() * (most + 1 - least))
    return "".join(_choose("0123456789", rng) for _ in range(count))


def _name(rng: Random) -> str:
    return "".join(_choose(_SYLLABLES, rng) for _ in range(3))


def _number(rng: Random) -> str:
    form = _choose(("{}", "{}.{}", "{}:{}", "{}-{}"), rng)
    return form.format(_digits(1, 4, rng), _digits(2, 2, rng))


ITEMS: Mapping[str, _Make] = {
    "numbers": _number,
    "urls": lambda rng: f"https://{_name(rng)}.{_choose(_DOMAINS, rng)}/{_name(rng)}",
    "emails": lambda rng: f"{_name(rng)}@{_name(rng)}.{_choose(_DOMAINS, rng)}",
    "emoji": partial(_choose, _EMOJI),
}
"""By the name of a modifier, what it puts into both sides, made at random."""


def _put_in(make: _Make, source: str, target: str, rng: Random) -> Pair:
    """Puts an item into both sides: first, or last before the final punctuation."""
    item = make(rng)
    if rng.random() < 0.5:
        return f"{item} {source}", f"{item} {target}"

    ends = [_FINAL.search(side) for side in (source, target)]

    def append(text: str, end: re.Match[str] | None) -> str:
        at = end.start() if end and all(ends) else len(text)
        return f"{text[:at]} {item}{text[at:]}"

    return append(source, ends[0]), append(target, ends[1])


def _change(text: str, change: Callable[[str], str]) -> str:
    """Changes text between what is always copied."""
    parts = _COPIED.split(text)
    return "".join(part if n % 2 else change(part) for n, part in enumerate(parts))


def _both(change: Callable[[str], str], source: str, target: str, rng: Random) -> Pair:
    return _change(source, change), _change(target, change)


def _capitalize(text: str) -> str:
    return _INITIAL.sub(lambda found: found[0].title(), text)


def _no_punctuation(source: str, target: str, rng: Random) -> Pair:
    """Removes the final punctuation of both sides, or of none."""
    bare = _FINAL.sub("", source), _FINAL.sub("", target)
    changed = bare[0] != source and bare[1] != target
    return bare if changed and all(bare) else (source, target)


def _faulty(
    fault: Callable[[str, Random], str], source: str, target: str, rng: Random
) -> Pair:
    """Makes faults in a source, one for about 40 letters."""

    def change(text: str) -> str:
        for _ in range((len(text) + _LETTERS_PER_FAULT - 1) // _LETTERS_PER_FAULT):
            places = [at for at in range(len(text) - 1) if text[at : at + 2].isalpha()]
            if places:
                at = places[int(rng.random() * len(places))]
                head, two, tail = text[:at], text[at : at + 2], text[at + 2 :]
                text = f"{head}{fault(two, rng)}{tail}"
        return text

    return _change(source, change), target


def _typo(two: str, rng: Random) -> str:
    """Of two letters hits a key beside the first, or swaps, doubles or drops it."""
    one, other = two[0], two[1]
    ways: tuple[str, ...] = (other + one, one + two, other)
    if keys := _NEIGHBOURS.get(one.lower()):
        near = _choose(keys, rng)
        ways = ((near.upper() if one.isupper() else near) + other, *ways)
    return _choose(ways, rng)


def _spaces(source: str, target: str, rng: Random) -> Pair:
    """Doubles a space of the source, drops it, or puts one into a word."""
    gaps = [found.start() for found in _GAP.finditer(source) if found[0] == " "]
    kind = int(rng.random() * 3)
    if not gaps or kind == 2:
        return _faulty(lambda two, _: " ".join(two), source, target, rng)
    at = gaps[int(rng.random() * len(gaps))]
    return f"{source[:at]}{'  ' * kind}{source[at + 1 :]}", target


def _double_spaces(source: str, target: str, rng: Random) -> Pair:
    return _change(source, lambda text: text.replace(" ", "  ")), target


_FUNCTIONS: Mapping[str, Callable[[str, str, Random], Pair]] = {
    **{name: partial(_put_in, make) for name, make in ITEMS.items()},
    "no_punctuation": _no_punctuation,
    "lower": partial(_both, str.lower),
    "upper": partial(_both, str.upper),
    "title": partial(_both, _capitalize),
    "typos": partial(_faulty, _typo),
    "spaces": _spaces,
    "double_spaces": _double_spaces,
}


def modify(names: Iterable[str], source: str, target: str, rng: Random) -> Pair:
    """Applies modifiers one after another; tags that a side begins with stay first.

    Example:
      >>> modify(["upper"], ">>de<< A dog barks.", "Ein Hund bellt.", Random(0))
      ('>>de<< A DOG BARKS.', 'EIN HUND BELLT.')
      >>> modify(["typos"], "A dog barks.", "Ein Hund bellt.", Random(0))
      ('A dog barsk.', 'Ein Hund bellt.')
      >>> modify(["no_punctuation"], '"A dog?"', "»Ein Hund?«", Random(0))
      ('"A dog"', '»Ein Hund«')
      >>> modify(["no_punctuation"], "Who?", "Ποιος;", Random(0))
      ('Who?', 'Ποιος;')
      >>> modify(["title"], "ßa in", "ეს არის", Random(0))
      ('Ssa In', 'ეს არის')
    """
    sides = source, target
    source, target = (_TAGS.sub("", side, count=1) for side in sides)
    begins = sides[0].removesuffix(source), sides[1].removesuffix(target)
    for name in names:
        source, target = _FUNCTIONS[name](source, target, rng)
    return begins[0] + source, begins[1] + target
