import math
from statistics import fmean

import pytest
import sacrebleu

from t2t_jax.decoding.text.distributed_translate import Output
from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.evaluation.evaluator import PROBE, Evaluator
from t2t_jax.training.loss import Sums

SOURCES = ["one two three four", "five", "six seven eight nine"]
REFERENCES = ["eins zwei drei vier", "fünf", "sechs sieben acht neun"]
PARTS = {"first": Sums(8.0, 6.0, 1, 2, 3, 10), "second": Sums(4.0, 2.0, 5, 6, 9, 30)}


class LongSet:
    """A development set of 100 sentences, of which the first so many do not end."""

    def __init__(self, endless, max_unfinished=0.25, count=100):
        self.sources = [f"sentence number {n} of the set" for n in range(count)]
        self.endless, self.calls, self.said = endless, [], []
        self.evaluator = Evaluator(
            sums=lambda params, batch: PARTS[batch],
            batches=lambda: iter(PARTS),
            translate=self.translate,
            pairs=[(line, line) for line in self.sources],
            directions=["en-de", "en-fr"] * (count // 2),
            max_unfinished=max_unfinished,
            progress=self.said.append,
        )

    def translate(self, params, lines, *, first, progress):
        self.calls.append((first, len(lines)))
        # As one of two processes counts, whose share is half of the lines.
        progress(len(lines) // 2, len(lines) // 2)
        return [Output(x, first + n >= self.endless) for n, x in enumerate(lines)]


def test_a_model_whose_translations_do_not_end_translates_the_first_ones_only():
    case = LongSet(endless=17)
    record, hypotheses = case.evaluator.evaluate(0.0, step=12)
    assert case.calls == [(0, PROBE)]
    assert hypotheses == case.sources[:PROBE]
    assert "bleu" not in record
    assert (record["sentences"], record["unfinished"]) == (PROBE, 17)
    assert record["loss"] == 12 / 8
    assert record["bleu_skipped"] == (
        "17 of the first 64 translations reached their length limit, so the other 36 "
        "sentences were not translated (evaluation.max_unfinished=0.25)"
    )
    assert case.evaluator.samples(hypotheses, 2).count("source") == 2


def test_bleu_is_the_mean_of_that_of_each_direction():
    case = LongSet(endless=0)
    said = [*SOURCES[:1] * 50, *case.sources[50:]]
    case.evaluator.directions = ["en-de"] * 50 + ["en-fr"] * 50
    samples = case.evaluator.samples(said, 3)
    shown = [f"number {n} of the set\n  reference" in samples for n in (0, 1, 50, 51)]
    assert shown == [True, True, True, False]
    scores = case.evaluator._scores(said)
    assert scores["bleu_by_direction"] == {
        "en-de": corpus_scores(said[:50], case.sources[:50])["bleu"],
        "en-fr": pytest.approx(100),
    }
    assert scores["bleu"] == pytest.approx(fmean(scores["bleu_by_direction"].values()))
    assert scores["chrf"] == pytest.approx(fmean(scores["chrf_by_direction"].values()))


EVALUATOR = Evaluator(
    sums=lambda params, batch: PARTS[batch],
    batches=lambda: iter(PARTS),
    translate=lambda *_, **__: [Output(t, True) for t in (REFERENCES[0], "", "sechs")],
    pairs=list(zip(SOURCES, REFERENCES, strict=True)),
)


def test_the_loss_is_over_all_tokens_of_all_batches():
    figures = EVALUATOR.loss(0.0)
    assert figures["loss"] == 12 / 8
    assert figures["nll"] == 8 / 8
    assert figures["perplexity"] == math.e
    assert figures["accuracy"] == 6 / 8
    assert "padding_fraction" not in figures


def test_a_record_holds_loss_and_scores_of_the_raw_lines():
    record, hypotheses = EVALUATOR.evaluate(0.0, step=17)
    assert (record["step"], record["kind"], record["sentences"]) == (17, "eval", 3)
    assert record["loss"] == 12 / 8
    assert record["bleu"] == sacrebleu.corpus_bleu(hypotheses, [REFERENCES]).score
    assert "tok:13a" in record["bleu_signature"]
    assert record["seconds"] >= 0
