"""Scores a model on a development set: loss on tokens, BLEU on text, F1 on trees."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat, zip_longest
from typing import Any

from t2t_jax.decoding.text.distributed_translate import Output, Translate
from t2t_jax.devices.distributed.gather import fetch_pipelined
from t2t_jax.evaluation.bleu import (
    DEFAULT_BLEU,
    BleuSettings,
    make_metric,
    scores_by_direction,
)
from t2t_jax.evaluation.bracketing.parses import development_scores
from t2t_jax.training.loss import Sums, summarise, total
from t2t_jax.types import Batch, Params


def first_of_each(names: Sequence[str], most: int) -> list[int]:
    """Returns the numbers of the first lines of each name.

    Example:
      >>> first_of_each(["en-de", "en-de", "de-en", "en-de"], 1)
      [0, 2]
    """
    numbers = defaultdict(list)
    for number, name in enumerate(names):
        numbers[name].append(number)
    return sorted(chain.from_iterable(some[:most] for some in numbers.values()))


PROBE = 64  # sentences translated first, to detect translations that do not end


@dataclass(kw_only=True)
class Evaluator:
    """A development set: batches for the loss, raw lines for BLEU.

    Args:
      sums: compiled `(params, batch) -> Sums`, without dropout.
      batches: yields every pair of the set once, on the devices.
      pairs: of source and reference.
      directions: of each pair, such as en-de; () for one direction. BLEU of each is
        computed, and their mean decides which checkpoint is best.
      max_unfinished: share of the first sentences that may reach their length limit;
        above it the others are not translated.
      bleu: how BLEU reads lines.
    """

    sums: Callable[[Params, Batch], Sums]
    batches: Callable[[], Iterable[Batch]]
    translate: Translate
    pairs: Sequence[tuple[str, str]]
    directions: Sequence[str] = ()
    max_unfinished: float = 1.0
    bleu: BleuSettings = DEFAULT_BLEU
    progress: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        self.sources = tuple(source for source, _ in self.pairs)
        self.references = tuple(reference for _, reference in self.pairs)
        # Import sacreBLEU now: on import it searches for a writable directory.
        make_metric("bleu", self.references or [""], bleu=self.bleu)

    def loss(self, params: Params) -> dict[str, float]:
        """Returns loss, nll, perplexity and accuracy over every pair of the set."""
        batches = self._batches_with_progress()
        sums = fetch_pipelined(self.sums(params, batch) for batch in batches)
        metrics = summarise(total([*sums]))
        del metrics["padding_fraction"]  # of these batches, not of training
        return metrics

    def evaluate(self, params: Params, step: int) -> tuple[dict[str, Any], list[str]]:
        """Scores `params`.

        Returns:
          The `eval` record of metrics.jsonl, and the translations of `sources`. If the
          model does not end its translations yet, only the first sources are
          translated, and the record has `bleu_skipped` (the reason) instead of scores.
        """
        began = time.perf_counter()
        record: dict[str, Any] = {"step": step, "kind": "eval", **self.loss(params)}
        outputs, is_complete = self._translate_all(params)
        hypotheses = [output.text for output in outputs]
        unfinished = sum(not output.ended for output in outputs)
        if not is_complete:
            record["bleu_skipped"] = (
                f"{unfinished} of the first {len(outputs)} translations reached their "
                f"length limit, so the other {len(self.sources) - len(outputs):,} "
                "sentences were not translated "
                f"(evaluation.max_unfinished={self.max_unfinished:g})"
            )
        else:
            record.update(self._scores(hypotheses))
        record |= {"sentences": len(outputs), "unfinished": unfinished}
        record["seconds"] = time.perf_counter() - began
        return record, hypotheses

    def _scores(self, hypotheses: Sequence[str]) -> dict[str, Any]:
        lines = hypotheses, self.references, self.directions
        return scores_by_direction(*lines, bleu=self.bleu)

    def _translate_all(self, params: Params) -> tuple[list[Output], bool]:
        """Translates the first sentences, and the others if enough of these end."""
        # Depends on the parameters only, not on time or the number of processes, so
        # that a resumed run writes the same record.
        outputs = self._translate_part(params, 0, PROBE)
        if len(self.sources) <= PROBE:
            return outputs, True
        unfinished = sum(not output.ended for output in outputs)
        if unfinished > self.max_unfinished * len(outputs):
            return outputs, False
        outputs += self._translate_part(params, PROBE, len(self.sources))
        return outputs, True

    def _translate_part(self, params: Params, start: int, stop: int) -> list[Output]:
        lines = self.sources[start:stop]

        def progress(done: int, total: int) -> None:
            done = start + round(len(lines) * done / total)
            self.progress(f"translated {done:,}/{len(self.sources):,} sentences")

        progress(0, 1)  # The first line appears only after a batch.
        return self.translate(params, lines, first=start, progress=progress)

    def _batches_with_progress(self) -> Iterator[Batch]:
        for number, batch in enumerate(self.batches(), start=1):
            self.progress(f"computing the loss, batch {number:,}")
            yield batch

    def samples(self, hypotheses: Sequence[str], count: int) -> str:
        """Formats `count` sources, references and translations.

        They are the first of each direction in turn.
        """
        # Fewer translations than sources if the others were skipped.
        triples = zip(self.sources, self.references, hypotheses, strict=False)
        names, of_direction = self.directions or repeat(""), defaultdict(list)
        for direction, triple in zip(names, triples, strict=False):
            of_direction[direction].append(triple)
        in_turn = chain.from_iterable(zip_longest(*of_direction.values()))
        return "\n\n".join(
            f"  source       {source}\n"
            f"  reference    {reference}\n"
            f"  translation  {hypothesis}"
            for source, reference, hypothesis in islice(filter(None, in_turn), count)
        )


class TreeEvaluator(Evaluator):
    """A development set of trees: F1 of brackets too, which decides what is best."""

    def _scores(self, hypotheses: Sequence[str]) -> dict[str, Any]:
        found = super()._scores(hypotheses)
        return found | development_scores(self.sources, hypotheses, self.references)
