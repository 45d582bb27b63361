"""Labelled bracketing precision, recall and F1 by EVALB's rules."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from t2t_jax.data.trees.tree import SPACES
from t2t_jax.errors import DataError
from t2t_jax.evaluation.bracketing.parameters import STANDARD, Parameters

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


def read_spans(line: str, rules: Parameters) -> Spans:
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
                _add_word(found, label, word[1], tuple(open_spans), rules)
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
    found: Spans, tag: str, word: str, around: tuple[int, ...], rules: Parameters
) -> None:
    found.length += tag not in rules.deleted_for_length
    if rules.is_quote(tag, word):
        index, span = len(found.words), len(found.spans)
        found.quotes.append(_Quote(tag, word, index, span, around))
    if tag not in rules.deleted:
        found.words.append((tag, word))


def restore_quotes(gold: Spans, test: Spans, rules: Parameters) -> None:
    """Puts words back which only one of the trees has left out, in place.

    They are those of `Parameters.quotes` at the same place with different tags, of
    which one is deleted.
    """
    for number, in_test in enumerate(test.quotes):
        index = in_test.index
        for other, in_gold in enumerate(gold.quotes):
            gold_lost, test_lost = (q.tag in rules.deleted for q in (in_gold, in_test))
            if in_gold.index == index and gold_lost != test_lost:
                _restore(*((gold, other) if gold_lost else (test, number)))


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


class Status(IntEnum):
    """Whether a sentence counts, by EVALB's numbers."""

    VALID = 0
    ERROR = 1
    SKIPPED = 2


class SentenceScore(NamedTuple):
    """The columns that EVALB prints for a sentence.

    Attributes:
      length: words of the gold tree.
      error: why the sentence does not count, or "".
      matched: brackets of both trees.
      crossing: brackets of the parse that cross one of the gold tree.
      words: words that count; `correct_tags` of them have the gold tag.
    """

    length: int
    status: Status
    error: str = ""
    matched: int = 0
    gold_brackets: int = 0
    test_brackets: int = 0
    crossing: int = 0
    words: int = 0
    correct_tags: int = 0

    @property
    def recall(self) -> float:
        """Of the gold brackets, in percent."""
        return _percent(self.matched, self.gold_brackets)

    @property
    def precision(self) -> float:
        """Of the parse's brackets, in percent."""
        return _percent(self.matched, self.test_brackets)

    @property
    def tagging_accuracy(self) -> float:
        """In percent."""
        return _percent(self.correct_tags, self.words)

    @property
    def is_complete(self) -> bool:
        """Whether the brackets are those of the gold tree."""
        return self.matched == self.gold_brackets == self.test_brackets


def score_sentence(
    gold: str, test: str, parameters: Parameters = STANDARD
) -> SentenceScore:
    """Compares a parse with its gold tree.

    Args:
      gold: a tree in Penn brackets, on one line.
      test: a parse of the same words.

    Returns:
      Counts. A parse without words is skipped, and one of other words or of brackets
      that do not match is an error, as EVALB has it.

    Example:
      >>> score = score_sentence(
      ...     "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))",
      ...     "(S (NP (DT the)) (VP (NN cat) (VBZ sleeps)))",
      ... )
      >>> score.matched, score.gold_brackets, score.crossing, round(score.recall, 2)
      (1, 3, 1, 33.33)
    """
    golden, found = read_spans(gold, parameters), read_spans(test, parameters)
    error = golden.error or found.error
    if not found.words:
        return SentenceScore(golden.length, Status.SKIPPED, "the parse has no words")
    if len(golden.words) != len(found.words):
        restore_quotes(golden, found, parameters)
    different = _difference_of_words(golden, found, parameters)
    if different:
        return SentenceScore(golden.length, Status.ERROR, error or different)
    gold_spans = [span for span in golden.spans if _counts(span, parameters)]
    test_spans = [span for span in found.spans if _counts(span, parameters)]
    tags = zip(golden.words, found.words, strict=True)
    return SentenceScore(
        golden.length,
        Status.ERROR if error else Status.VALID,
        error,
        matched=_num_matches(gold_spans, test_spans, parameters),
        gold_brackets=len(gold_spans),
        test_brackets=len(test_spans),
        crossing=sum(_crosses(span, gold_spans) for span in test_spans),
        words=len(golden.words),
        correct_tags=sum(parameters.same_label(a[0], b[0]) for a, b in tags),
    )


def _difference_of_words(gold: Spans, test: Spans, rules: Parameters) -> str:
    """Describes how the words of two trees differ; "" if they do not."""
    if len(gold.words) != len(test.words):
        return f"{len(test.words)} words in place of {len(gold.words)}"
    for (_, expected), (_, word) in zip(gold.words, test.words, strict=True):
        if not rules.same_word(expected, word):
            return f"the word {word!r} in place of {expected!r}"
    return ""


def _label(span: Span) -> str:
    """Returns the label without functions and indices, as NP of NP-SBJ-1."""
    return span.label.partition("-")[0].partition("=")[0]


def _counts(span: Span, rules: Parameters) -> bool:
    deleted = any(rules.same_label(_label(span), x) for x in rules.deleted)
    return span.start != span.end and not deleted


def _num_matches(gold: Sequence[Span], test: Sequence[Span], rules: Parameters) -> int:
    """Pairs each gold bracket with the first equal one of the parse that is left."""
    left = defaultdict(list)
    for span in test:
        left[span.start, span.end].append(_label(span))
    matches = 0
    for span in gold:
        labels = left[span.start, span.end]
        for number, label in enumerate(labels):
            if not rules.labeled or rules.same_label(_label(span), label):
                del labels[number]
                matches += 1
                break
    return matches


def _crosses(span: Span, gold: Sequence[Span]) -> bool:
    """Returns whether a bracket overlaps a gold bracket without nesting."""
    return any(
        other.start < span.start < other.end < span.end
        or span.start < other.start < span.end < other.end
        for other in gold
    )


def score_corpus(
    gold: Iterable[str], test: Iterable[str], parameters: Parameters = STANDARD
) -> list[SentenceScore]:
    """Compares parses with their gold trees, line by line.

    Raises:
      DataError: there are more lines on one side.
    """
    golden, found = list(gold), list(test)
    if len(golden) != len(found):
        raise DataError(
            f"The parses must be of the gold trees, line by line: found {len(found):,} "
            f"parses of {len(golden):,} gold trees. Pass files of one length."
        )
    pairs = zip(golden, found, strict=True)
    return [score_sentence(a, b, parameters) for a, b in pairs]


def summarize(scores: Sequence[SentenceScore]) -> dict[str, Any]:
    """Sums the scores of sentences up, in EVALB's units: percent, to two decimals.

    Returns:
      `recall`, `precision` and `f1` of all brackets of valid sentences,
      `complete_match`, `no_crossing` and `two_or_less_crossing` as percent of valid
      sentences, `average_crossing` per sentence, `tagging_accuracy`; then the counts.
    """
    valid = [score for score in scores if score.status == Status.VALID]
    counts = SentenceScore._fields[3:]  # from `matched` on
    sums = {name: sum(getattr(score, name) for score in valid) for name in counts}
    total = SentenceScore(0, Status.VALID, **sums)
    complete = sum(score.is_complete for score in valid)
    both = total.precision + total.recall
    return {
        "recall": _rounded(total.recall),
        "precision": _rounded(total.precision),
        "f1": _rounded(2 * total.precision * total.recall / both if both else 0.0),
        "complete_match": _rounded(_percent(complete, len(valid))),
        "average_crossing": _rounded(total.crossing / len(valid) if valid else 0.0),
        "no_crossing": _share(valid, 0),
        "two_or_less_crossing": _share(valid, 2),
        "tagging_accuracy": _rounded(total.tagging_accuracy),
        "sentences": len(scores),
        "errors": sum(score.status == Status.ERROR for score in scores),
        "skipped": sum(score.status == Status.SKIPPED for score in scores),
        "valid": len(valid),
        "matched_brackets": total.matched,
        "gold_brackets": total.gold_brackets,
        "test_brackets": total.test_brackets,
        "crossing_brackets": total.crossing,
        **{name: sums[name] for name in ("words", "correct_tags")},
    }


def _share(valid: Sequence[SentenceScore], crossing: int) -> float:
    """Returns the percentage of sentences with at most so many crossing brackets."""
    count = sum(score.crossing <= crossing for score in valid)
    return _rounded(_percent(count, len(valid)))


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _rounded(value: float) -> float:
    return float(f"{value:.2f}")  # as printf rounds
