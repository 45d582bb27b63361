"""Scores a model on a development set: loss on tokens, BLEU on raw text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from t2t_jax.evaluation.bleu import corpus_scores, make_metric
from t2t_jax.parallelism.in_flight import fetched
from t2t_jax.training.metrics import Sums, summarise, total
from t2t_jax.types import Batch, Params


class Evaluator:
    """Holds a development set: its batches for the loss, its raw lines for BLEU.

    Args:
      sums: compiled `(params, batch) -> Sums`, without dropout.
      batches: yields every pair of the set once, on the devices.
      translate: `(params, lines) -> lines`.
      sources: raw source lines to translate.
      references: their raw references.
    """

    def __init__(
        self,
        *,
        sums: Callable[[Params, Batch], Sums],
        batches: Callable[[], Iterable[Batch]],
        translate: Callable[[Params, Sequence[str]], list[str]],
        sources: Sequence[str],
        references: Sequence[str],
    ):
        self._sums, self._batches, self._translate = sums, batches, translate
        self.sources, self.references = tuple(sources), tuple(references)
        # Loaded now, as sacreBLEU looks for a disk with room when it is loaded.
        make_metric("bleu", self.references or [""])

    def loss(self, params: Params) -> dict[str, float]:
        """Returns loss, nll, perplexity and accuracy over every pair of the set."""
        sums = fetched(self._sums(params, batch) for batch in self._batches())
        figures = summarise(total([*sums]))
        del figures["padding_fraction"]  # of these batches, not of the training's
        return figures

    def evaluate(
        self, params: Params, *, step: int
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores `params`.

        Args:
          params: parameters, on the devices.
          step: the optimizer steps behind them.

        Returns:
          The `eval` record of metrics.jsonl, and the translations of `sources`.
        """
        began = time.perf_counter()
        record: dict[str, Any] = {"step": step, "kind": "eval", **self.loss(params)}
        hypotheses = self._translate(params, self.sources)
        record.update(corpus_scores(hypotheses, self.references))
        record["sentences"] = len(self.references)
        record["seconds"] = time.perf_counter() - began
        return record, hypotheses

    def samples(self, hypotheses: Sequence[str], count: int) -> str:
        """Sets the first `count` sources, references and translations side by side."""
        triples = zip(self.sources, self.references, hypotheses, strict=True)
        return "\n\n".join(
            f"  source       {source}\n"
            f"  reference    {reference}\n"
            f"  translation  {hypothesis}"
            for source, reference, hypothesis in islice(triples, count)
        )
