"""Scores of what a parser outputs: symbols, read as trees over the words of the source.

Brackets are compared by EVALB's rules with the gold tags at the words of both trees,
because the rules leave punctuation out by its tag: so every sentence counts, whatever
tags a model outputs, or if it outputs none. Its own tags decide `tagging_accuracy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2t_jax.data.trees.linearization import WORD, Parse, delinearize, read_parse
from t2t_jax.data.trees.tree import Tree, with_words
from t2t_jax.evaluation.bracketing.parameters import STANDARD, Parameters
from t2t_jax.evaluation.bracketing.scoring import (
    SentenceScore,
    Status,
    score_sentence,
    summarize,
)
from t2t_jax.evaluation.significance import LEVEL, RESAMPLES, SEED

_WITH_INTERVALS = ("recall", "precision", "f1", "complete_match")


def score_parses(
    gold: Sequence[Tree], parses: Sequence[Tree], parameters: Parameters = STANDARD
) -> list[SentenceScore]:
    """Compares parses with gold trees over the same words, in the same order."""
    pairs = zip(gold, parses, strict=True)
    return [_score(*pair, parameters) for pair in pairs]


def _score(gold: Tree, parse: Tree, rules: Parameters) -> SentenceScore:
    words, tags = gold.words(), [leaf.label for leaf in gold.leaves()]
    retagged = str(with_words(parse, words, tags))
    correct = sum(
        tag not in rules.deleted and rules.same_label(tag, own.label)
        for tag, own in zip(tags, parse.leaves(), strict=True)
    )
    return score_sentence(str(gold), retagged, rules)._replace(correct_tags=correct)


def parsing_scores(
    gold: Sequence[Tree], parses: Sequence[Parse], parameters: Parameters = STANDARD
) -> dict[str, Any]:
    """Computes all scores of the protocol `parsing`.

    Returns:
      What `scoring.summarize` returns, with `intervals` from `bracket_intervals` and
      the number of `repaired` outputs; under `short` the same of sentences of at most
      `parameters.cutoff_length` words. `tagging_accuracy` is None for parses without
      tags.

    Paper: §6.3, Table 4.
    """
    scores = score_parses(gold, [parse.tree for parse in parses], parameters)
    pairs = list(zip(scores, parses, strict=True))
    longest = parameters.cutoff_length
    short = [pair for pair in pairs if pair[0].length <= longest]
    return _summary(pairs) | {"short": {"longest": longest, **_summary(short)}}


def _summary(pairs: Sequence[tuple[SentenceScore, Parse]]) -> dict[str, Any]:
    scores = [score for score, _ in pairs]
    found = summarize(scores)
    leaves = (leaf for _, parse in pairs for leaf in parse.tree.leaves())
    if all(leaf.label == WORD for leaf in leaves):
        found["tagging_accuracy"] = found["correct_tags"] = None
    repaired = sum(parse.repaired for _, parse in pairs)
    return found | {"repaired": repaired, "intervals": bracket_intervals(scores)}


def bracket_intervals(scores: Sequence[SentenceScore]) -> dict[str, Any]:
    """Estimates confidence intervals by bootstrap resampling of sentences.

    Returns:
      The level, the number of resamples and the seed; then for each score the `mean`
      over the resampled corpora and the `half_width` of the interval around it, in
      percent, as in `significance.bootstrap_intervals`.

    Example:
      >>> same = score_sentence("(S (NP (NN a)) (VB b))", "(S (NP (NN a)) (VB b))")
      >>> bracket_intervals([same] * 7)["f1"]
      {'mean': 100.0, 'half_width': 0.0}
    """
    from sacrebleu.significance import estimate_ci

    found: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
    valid = [one for one in scores if one.status == Status.VALID]
    raw = [(s.matched, s.gold_brackets, s.test_brackets, s.is_complete) for s in valid]
    counts_Nx4 = np.array(raw, dtype=np.int64).reshape(-1, 4)
    if not len(counts_Nx4):
        return found | dict.fromkeys(_WITH_INTERVALS)
    rng, sums = np.random.default_rng(SEED), []
    for _ in range(RESAMPLES):
        chosen = rng.integers(len(counts_Nx4), size=len(counts_Nx4))
        sums.append(counts_Nx4[chosen].sum(axis=0))
    matched, gold, test, complete = np.array(sums, dtype=np.float64).T
    resampled = (
        matched / np.maximum(gold, 1),
        matched / np.maximum(test, 1),
        2 * matched / np.maximum(gold + test, 1),
        complete / len(counts_Nx4),
    )
    for name, values in zip(_WITH_INTERVALS, resampled, strict=True):
        mean, half_width = map(float, estimate_ci(100 * values))
        found[name] = {"mean": mean, "half_width": half_width}
    return found


def development_scores(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    """Computes the scores of an evaluation during training, by the standard rules.

    Args:
      references: gold trees as symbols. Without parts of speech in them punctuation
        counts, since it is not known.

    Example:
      >>> gold = "(S (NP PRP )NP (VP VBP )VP )S"
      >>> development_scores(["We sleep"], ["(S (VP PRP )VP VBP )S"], [gold])
      {'f1': 40.0, 'precision': 50.0, 'recall': 33.33, 'repaired': 0}
    """
    pairs = zip(sources, references, strict=True)
    gold = [delinearize(symbols.split(), line.split()) for line, symbols in pairs]
    parses = [read_parse(*pair) for pair in zip(sources, outputs, strict=True)]
    found = summarize(score_parses(gold, [parse.tree for parse in parses]))
    scores = {name: found[name] for name in ("f1", "precision", "recall")}
    return scores | {"repaired": sum(parse.repaired for parse in parses)}
