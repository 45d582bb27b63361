"""Scores translations against references with sacreBLEU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from t2t_jax.data.line_arguments import as_lines
from t2t_jax.errors import DataError, UserError

METRICS = ("bleu", "chrf", "ter")
"""Supported metrics; for all but the last, higher is better."""

IN_TRAINING = METRICS[:2]
"""Metrics of every evaluation during training."""


class BleuSettings(NamedTuple):
    """How sacreBLEU reads the lines of BLEU; the defaults are its own.

    Attributes:
      tokenize: of `evaluation.config.TOKENIZERS`; "none" for tokenized text.
      lowercase: whether case is ignored.
    """

    tokenize: str = "13a"
    lowercase: bool = False


DEFAULT_BLEU = BleuSettings()


def corpus_scores(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    metrics: Iterable[str] = IN_TRAINING,
    bleu: BleuSettings = DEFAULT_BLEU,
) -> dict[str, Any]:
    """Scores a translated corpus.

    Args:
      hypotheses: translations, detokenized unless `bleu.tokenize` is "none".
      metrics: names from `METRICS`.

    Returns:
      Each metric in percent, unrounded, and its sacreBLEU signature, without which
      scores are not comparable.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side or `metrics` is a single string, or holds something other than
        strings.
      UserError: a metric is not one of `METRICS`.

    Departs: the paper reports tokenized, compound-split BLEU, which is not comparable
      with sacreBLEU; see `t2t_jax.evaluation.tokenized_bleu`.

    Example:
      >>> corpus_scores(["Ein Hund bellt sehr laut."], ["Ein Hund bellt sehr laut."])
      {'bleu': 100.0..., 'bleu_signature': ..., 'chrf': 100.0, 'chrf_signature': ...}
    """
    hypotheses, references = check_aligned(hypotheses, references)
    scores: dict[str, Any] = {}
    for name in as_lines(metrics, caller="corpus_scores", noun="metrics"):
        metric = make_metric(name, references, bleu=bleu)
        scores[name] = metric.corpus_score(hypotheses, None).score
        scores[f"{name}_signature"] = str(metric.get_signature())
    return scores


def scores_by_direction(
    hypotheses: Sequence[str],
    references: Sequence[str],
    directions: Sequence[str],
    *,
    bleu: BleuSettings = DEFAULT_BLEU,
) -> dict[str, Any]:
    """Scores translations in several directions: each of them, and the mean of all.

    Args:
      directions: of each line, such as en-de; () or a single one for scores of all.

    Returns:
      What `corpus_scores` does; of several directions the scores are the means of
      `bleu_by_direction` and `chrf_by_direction`.

    Raises:
      DataError, TypeError: as in `corpus_scores`.

    Example:
      >>> lines = ["a b c d", "x"], ["a b c d", "y"], ["en-de", "de-en"]
      >>> scores_by_direction(*lines)["chrf_by_direction"]
      {'en-de': 100.0, 'de-en': 0.0}
    """
    if len(set(directions)) < 2:
        return corpus_scores(hypotheses, references, bleu=bleu)
    pairs = defaultdict(list)
    for direction, *pair in zip(directions, hypotheses, references, strict=True):
        pairs[direction].append(pair)
    each = {
        direction: corpus_scores(*zip(*some, strict=True), bleu=bleu)
        for direction, some in pairs.items()
    }
    found = dict(next(iter(each.values())))
    for name in IN_TRAINING:
        by_direction = {direction: scores[name] for direction, scores in each.items()}
        found[name] = fmean(by_direction.values())
        found[f"{name}_by_direction"] = by_direction
    return found


def make_metric(
    name: str, references: Sequence[str], *, bleu: BleuSettings = DEFAULT_BLEU
) -> Any:
    """Creates a sacreBLEU metric; all but BLEU have their default settings.

    Args:
      references: preprocessed once; pass None as references to its score methods.

    Raises:
      UserError: the name is not one of `METRICS`.
    """
    if name not in METRICS:
        raise UserError(f"metric {name!r} is not known. Use {', '.join(METRICS)}.")
    from sacrebleu.metrics import BLEU, CHRF, TER

    kinds: dict[str, Any] = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
    settings: dict[str, Any] = {}
    if name == "bleu":
        # force suppresses sacreBLEU's warning that the text is tokenized.
        settings = {**bleu._asdict(), "force": bleu.tokenize == "none"}
    return kinds[name](references=[list(references)], **settings)


def check_aligned(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    caller: str = "corpus_scores",
    noun: str = "hypotheses",
) -> tuple[list[str], list[str]]:
    """Returns translations and references as two lists of the same length.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side is a single string, or holds something other than strings.
    """
    hypotheses = as_lines(hypotheses, caller=caller, noun=noun)
    references = as_lines(references, caller=caller, noun="references")
    if len(hypotheses) != len(references) or not references:
        raise DataError(
            f"Scoring needs as many {noun} as references, and at least one, not "
            f"{len(hypotheses)} and {len(references)}. Pass a reference for each line."
        )
    return hypotheses, references
