"""Reads a line of brackets into words and spans, as EVALB does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from t2t_jax.data.trees.tree import SPACES
from t2t_jax.evaluation.bracketing.parameters import Parameters

OPEN = -1
"""End of a bracket that is never closed."""

_ELEMENT = re.compile(rf"[{SPACES}]*(\()([^(){SPACES}]*)|[{SPACES}]*([^{SPACES}])")
_WORD = re.compile(rf"[{SPACES}]+([^(){SPACES}]*)(.?)", re.DOTALL)


@dataclass
class Span:
    """A bracket over the words from `start` up to `end`, exclusive."""

    label: str
    start: int
    end: int = OPEN


@dataclass
class _Quote:
    """A word that may have been left out of one tree only.

    Attributes:
      index: of the word among those that count.
      span: the number of the next bracket.
      around: the numbers of the brackets that are open.
    """

    tag: str
    word: str
    index: int
    span: int
    around: tuple[int, ...]


@dataclass
class Spans:
    """A tree as a list of words and a list of brackets.

    Attributes:
      words: (tag, word) of the words that count.
      spans: in the order in which the brackets open.
      length: number of words, punctuation included.
      error: what is wrong with the brackets, or "".
    """

    words: list[tuple[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    length: int = 0
    error: str = ""
    quotes: list[_Quote] = field(default_factory=list)


def read_spans(line: str, parameters: Parameters) -> Spans:
    """Reads the brackets of a line.

    A bracket with a space and one word, which may be empty, is a word with its tag; all
    others are spans. Text after a mistake is not read.

    Example:
      >>> found = read_spans("(S (NP (PRP We)) (VP (VBP sleep)))", Parameters())
      >>> found.words
      [('PRP', 'We'), ('VBP', 'sleep')]
      >>> [(span.label, span.start, span.end) for span in found.spans]
      [('S', 0, 2), ('NP', 0, 1), ('VP', 1, 2)]
    """
    found, open_spans, position = Spans(), list[int](), 0
    while element := _ELEMENT.match(line, position):
        position = element.end()
        opening, label, other = element.groups()
        if opening:
            word = _WORD.match(line, position)
            if word and word[2] == ")":
                position = word.end()
                _add_word(found, label, word[1], tuple(open_spans), parameters)
                continue
            open_spans.append(len(found.spans))
            found.spans.append(Span(label, len(found.words)))
            if word and word[2] != "(":
                found.error = f"several words in one bracket, after {word[1]!r}"
                break
        elif other == ")" and open_spans:
            found.spans[open_spans.pop()].end = len(found.words)
        elif other == ")":
            found.error = "a bracket is closed that was not opened"
        else:
            found.error = f"{other!r} is outside of all brackets"
            break
    if open_spans and not found.error:
        found.error = f"{len(open_spans)} brackets are not closed"
    return found


def _add_word(
    found: Spans,
    tag: str,
    word: str,
    around: tuple[int, ...],
    parameters: Parameters,
) -> None:
    found.length += tag not in parameters.deleted_for_length
    if parameters.is_quote(tag, word):
        index, span = len(found.words), len(found.spans)
        found.quotes.append(_Quote(tag, word, index, span, around))
    if tag not in parameters.deleted:
        found.words.append((tag, word))


def restore_quotes(gold: Spans, test: Spans, parameters: Parameters) -> None:
    """Puts words back which only one of the trees has left out, in place.

    They are those of `Parameters.quotes` at the same place with different tags, of
    which one is deleted.
    """
    for number, in_test in enumerate(test.quotes):
        index = in_test.index
        for other, in_gold in enumerate(gold.quotes):
            if in_gold.index != index or in_gold.tag == in_test.tag:
                continue
            gold_lost = in_gold.tag in parameters.deleted
            if gold_lost == (in_test.tag in parameters.deleted):
                continue
            if gold_lost:
                _restore(gold, other)
            else:
                _restore(test, number)


def _restore(tree: Spans, number: int) -> None:
    """Puts the word of a quote back, and moves all that follows."""
    quote = tree.quotes[number]
    tree.words.insert(quote.index, (quote.tag, quote.word))
    for span in tree.spans[quote.span :]:
        span.start += 1
        span.end += 1
    for enclosing in quote.around:
        tree.spans[enclosing].end += 1
    for later in tree.quotes[number:]:
        later.index += 1
