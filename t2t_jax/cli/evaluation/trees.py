"""`--mode=evaluate --protocol=parsing`: trees by EVALB's rules (§6.3)."""

from __future__ import annotations

from typing import Any

from t2t_jax.cli.evaluation.corpus import Corpus
from t2t_jax.cli.evaluation.translated import protocol_record, translate_corpus
from t2t_jax.cli.flags.translation import EvaluateOptions
from t2t_jax.cli.processes.shared_model import require_run_for_last
from t2t_jax.cli.translation import parsing


def evaluate_trees(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates a parser with the run's own search.

    Raises:
      UserError: as `read_treebank`.
    """
    require_run_for_last(options)
    bank = parsing.read_treebank(options)

    def trees_of(lines: list[str]) -> list[str]:
        return [str(parse.tree) for parse in parsing.read_outputs(bank.sources, lines)]

    corpus = Corpus(bank.sources, [str(tree) for tree in bank.trees], None)
    translated = translate_corpus(options, corpus, written=trees_of)
    parses = parsing.read_outputs(bank.sources, translated.hypotheses)
    return {
        "protocol": options.protocol,
        **parsing.treebank_scores(options, bank, parses),
        **protocol_record(
            options, translated, corpus, [str(parse.tree) for parse in parses]
        ),
    }
