"""A vocabulary of words: text is split at its spaces, and each word is one token.

For sides whose text is a sequence of symbols, such as linearized trees, and for words
of a language that are not to be split. The words that are not in the vocabulary of a
source are replaced by their class, after their shape and ending: `<Aa-ing>` is an
unknown word with a capital that ends in "ing". Parsers have long done so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_CLASS_SHARE = 8  # at most one piece in 8 is a class
_LEAST_SUFFIX_WORD = 5  # characters
_SUFFIXES = (3, 2, 1)  # characters, the most specific first


def word_classes(word: str) -> Iterator[str]:
    """Yields the classes of an unknown word, the most specific first.

    Example:
      >>> list(word_classes("Parsing"))
      ['<Aa-ing>', '<Aa-ng>', '<Aa-g>', '<Aa>']
      >>> list(word_classes("1,024")), list(word_classes("x-ray"))
      (['<0>'], ['<a--ray>', '<a--ay>', '<a--y>', '<a->'])
    """
    shape = _shape(word)
    if word[-1:].isalpha() and len(word) >= _LEAST_SUFFIX_WORD:
        for length in _SUFFIXES:
            if (suffix := word[-length:].lower()).isalpha():
                yield f"<{shape}-{suffix}>"
    yield f"<{shape}>"


def _shape(word: str) -> str:
    shape = ""
    if any(character.isalpha() for character in word):
        capital = word[0].isupper()
        lower = any(character.islower() for character in word)
        shape = ("Aa" if lower else "A") if capital else "a"
    if any(character.isdigit() for character in word):
        shape += "0"
    return shape + "-" * ("-" in word) or "?"


class WordList(NamedTuple):
    """Words that have tokens of their own, and classes for others; frequent ones first.

    Attributes:
      classes: none if unknown words are unk.
    """

    words: list[str]
    classes: list[str]


def learn_words(
    lines: Iterable[str], most: int, *, classes: bool, symbols: Sequence[str] = ()
) -> WordList:
    """Lists the most frequent words of a text; the text alone decides ties.

    Args:
      most: words and classes together.
      classes: whether unknown words have classes. Then words that occur once are
        unknown too, since the tokens of classes are trained on unknown words.
      symbols: words that come first, whether the text has them or not.

    Example:
      >>> lines = ["(S (NP XX )NP XX )S", "(NP XX )NP"]
      >>> learn_words(lines, 9, classes=False).words
      ['XX', '(NP', ')NP', '(S', ')S']
      >>> learn_words(["a a walked talked 27"], 9, classes=True)
      WordList(words=['a'], classes=['<a-d>'])
    """
    counts = Counter(word for line in lines for word in line.split())
    for symbol in symbols:
        del counts[symbol]
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    most -= len(symbols)
    if not classes:
        return WordList([*symbols, *ranked[:most]], [])
    room = most // _CLASS_SHARE
    words = [word for word in ranked[: most - room] if counts[word] > 1]
    found: Counter[str] = Counter()
    for word in ranked[len(words) :]:
        for name in word_classes(word):
            found[name] += counts[word]
    best = sorted(found, key=lambda name: (-found[name], name))
    return WordList([*symbols, *words], best[:room])
