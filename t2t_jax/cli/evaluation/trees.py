"""`--mode=evaluate --protocol=parsing`: trees by EVALB's rules (§6.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_jax.cli.console.tables import interval_note
from t2t_jax.cli.evaluation.corpus import Corpus, protocol_record, translate_corpus
from t2t_jax.cli.flags.translation import EvaluateOptions
from t2t_jax.cli.processes.shared_model import require_run_for_last
from t2t_jax.cli.translation.formats import require_parser
from t2t_jax.data.corpora.tree_files import read_trees
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.trees.linearization import read_parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.errors import DataError, ErrorCollector, UserError
from t2t_jax.evaluation.bracketing.parameters import Parameters, load_parameters
from t2t_jax.evaluation.bracketing.parses import parsing_scores


def evaluate_trees(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates a parser with the run's own search.

    Raises:
      UserError: as `read_treebank`.
    """
    require_run_for_last(options)
    trees, parameters = read_treebank(options)
    sources = [" ".join(tree.words()) for tree in trees]

    def trees_of(lines: Sequence[str]) -> list[str]:
        return [str(parse.tree) for parse in map(read_parse, sources, lines)]

    corpus = Corpus(sources, [str(tree) for tree in trees], None)
    translated = translate_corpus(options, corpus, written=trees_of)
    hypotheses = translated.hypotheses
    parses = list(map(read_parse, sources, hypotheses))
    return {
        "protocol": options.protocol,
        "parameters": options.parameters or "standard",
        **parsing_scores(trees, parses, parameters),
        **protocol_record(options, translated, corpus, trees_of(hypotheses)),
    }


def read_treebank(options: EvaluateOptions) -> tuple[list[Tree], Parameters]:
    """Reads the gold trees, whose words must be `source`, and the rules to score by.

    Raises:
      UserError: a file is missing or faulty, the sentences are others than the trees',
        the model is not a parser, or a flag has no effect on trees.
    """
    errors = ErrorCollector()
    errors.try_call(
        require_parser, options.config.data.train, flag="--protocol=parsing"
    )
    errors.try_call(_require_no_baseline, options)
    parameters = errors.try_call(load_parameters, options.parameters or "standard")
    trees = errors.try_call(read_trees, options.reference)
    errors.raise_if_any()
    if options.source:
        _check_sources(list(read_lines(options.source)), trees, options)
    return trees, parameters


def _require_no_baseline(options: EvaluateOptions) -> None:
    if options.baseline:
        raise UserError(
            "--baseline has no effect with --protocol=parsing. Leave it out, and score "
            "the other trees with python -m t2t_jax.evaluation.bracketing."
        )


def _check_sources(
    lines: Sequence[str], trees: Sequence[Tree], options: EvaluateOptions
) -> None:
    files = f"--source={options.source} and --reference={options.reference}"
    advice = "Leave --source out to parse the words of the trees."
    if len(lines) != len(trees):
        raise DataError(
            f"{files} must have a sentence for each tree: they have {len(lines):,} "
            f"lines and {len(trees):,} trees. {advice}"
        )
    for number, (line, tree) in enumerate(zip(lines, trees, strict=True), start=1):
        if line.split() != tree.words():
            words = " ".join(tree.words())
            raise DataError(
                f"{files} differ in sentence {number:,}: {line[:60]!r} and "
                f"{words[:60]!r}. {advice}"
            )


def score_rows(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields name, value and note of each score, all lengths and short ones."""
    longest = result["short"]["longest"]
    for part, which in ((result, "all"), (result["short"], f"up to {longest} words")):
        level = part["intervals"]["level"]
        yield ("sentences", f"{part['sentences']:,}", which)
        for key in ("f1", "precision", "recall", "complete_match"):
            name = "F1" if key == "f1" else f"  {key.replace('_', ' ')}"
            interval = part["intervals"][key]
            note = "" if interval is None else interval_note(interval, level)
            yield (name, f"{part[key]:.2f}", note)
        yield ("  average crossing", f"{part['average_crossing']:.2f}", "")
        tagging = part["tagging_accuracy"]
        if tagging is not None:
            yield ("  tagging accuracy", f"{tagging:.2f}", "of the model's own tags")
        note = "outputs that were not a tree over the sentence"
        yield ("  repaired", f"{part['repaired']:,}", note)
