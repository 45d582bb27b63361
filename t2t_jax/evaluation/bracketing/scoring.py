"""Labelled bracketing precision, recall and F1 by EVALB's rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from t2t_jax.errors import DataError
from t2t_jax.evaluation.bracketing.parameters import STANDARD, Parameters
from t2t_jax.evaluation.bracketing.spans import Span, Spans, read_spans, restore_quotes


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
        matched=_count_matches(gold_spans, test_spans, parameters),
        gold_brackets=len(gold_spans),
        test_brackets=len(test_spans),
        crossing=sum(_crosses(span, gold_spans) for span in test_spans),
        words=len(golden.words),
        correct_tags=sum(parameters.same_label(a[0], b[0]) for a, b in tags),
    )


def _difference_of_words(gold: Spans, test: Spans, parameters: Parameters) -> str:
    """Describes how the words of two trees differ; "" if they do not."""
    if len(gold.words) != len(test.words):
        return f"{len(test.words)} words in place of {len(gold.words)}"
    for (_, expected), (_, word) in zip(gold.words, test.words, strict=True):
        if not parameters.same_word(expected, word):
            return f"the word {word!r} in place of {expected!r}"
    return ""


def _label(span: Span) -> str:
    """Returns the label without functions and indices, as NP of NP-SBJ-1."""
    return span.label.partition("-")[0].partition("=")[0]


def _counts(span: Span, parameters: Parameters) -> bool:
    deleted = any(parameters.same_label(_label(span), x) for x in parameters.deleted)
    return span.start != span.end and not deleted


def _count_matches(
    gold: Sequence[Span], test: Sequence[Span], parameters: Parameters
) -> int:
    """Pairs each gold bracket with the first equal one of the parse that is left."""
    left = defaultdict(list)
    for span in test:
        left[span.start, span.end].append(_label(span))
    matches = 0
    for span in gold:
        labels = left[span.start, span.end]
        for number, label in enumerate(labels):
            if not parameters.labeled or parameters.same_label(_label(span), label):
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
    total = SentenceScore(
        length=sum(score.length for score in scores),
        status=Status.VALID,
        matched=sum(score.matched for score in valid),
        gold_brackets=sum(score.gold_brackets for score in valid),
        test_brackets=sum(score.test_brackets for score in valid),
        crossing=sum(score.crossing for score in valid),
        words=sum(score.words for score in valid),
        correct_tags=sum(score.correct_tags for score in valid),
    )
    complete = sum(s.matched == s.gold_brackets == s.test_brackets for s in valid)
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
        "words": total.words,
        "correct_tags": total.correct_tags,
    }


def _share(valid: Sequence[SentenceScore], crossing: int) -> float:
    """Returns the percentage of sentences with at most so many crossing brackets."""
    count = sum(score.crossing <= crossing for score in valid)
    return _rounded(_percent(count, len(valid)))


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _rounded(value: float) -> float:
    return float(f"{value:.2f}")  # as printf rounds
