"""`--mode=evaluate --protocol=parsing`: scores of trees (§6.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from t2t_jax.cli.console.tables import interval_note
from t2t_jax.cli.flags.translation import EvaluateOptions
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.data.corpora.tree_files import read_trees
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.trees.linearization import Parse, read_parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.errors import ConfigError, DataError, ErrorCollector, UserError
from t2t_jax.evaluation.bracketing.parameters import Parameters, load_parameters
from t2t_jax.evaluation.bracketing.parses import parsing_scores


class Treebank(NamedTuple):
    """Gold trees, their sentences, and the rules of their comparison."""

    sources: list[str]
    trees: list[Tree]
    parameters: Parameters


def require_parser(spec: str, *, flag: str) -> None:
    """Checks that a model was trained on trees.

    Args:
      spec: its `data.train`.
      flag: that requires it, for the message.

    Raises:
      ConfigError: it was trained on other text.
    """
    if not reads_trees(spec):
        raise ConfigError(
            f"{flag} requires a model of trees, whose data.train is trees:FILE, and "
            f"it is {spec!r}. Pass another --workdir."
        )


def read_treebank(options: EvaluateOptions) -> Treebank:
    """Reads the trees of `reference`, and compares their words with `source`.

    Raises:
      UserError: a file is missing or faulty, the sentences are others than the trees',
        the model is not a parser, or a flag has no effect on trees.
    """
    errors = ErrorCollector()
    errors.try_call(
        require_parser, options.config.data.train, flag="--protocol=parsing"
    )
    errors.try_call(_require_no_text_flags, options)
    parameters = errors.try_call(load_parameters, options.parameters or "standard")
    trees = errors.try_call(read_trees, options.reference)
    errors.raise_if_any()
    sources = [" ".join(tree.words()) for tree in trees]
    if options.source:
        _check_sources(list(read_lines(options.source)), sources, options)
    return Treebank(sources, trees, parameters)


def _require_no_text_flags(options: EvaluateOptions) -> None:
    if options.baseline:
        raise UserError(
            "--baseline has no effect with --protocol=parsing. Leave it out, and score "
            "the other trees with python -m t2t_jax.evaluation.bracketing."
        )


def _check_sources(
    lines: Sequence[str], sources: Sequence[str], options: EvaluateOptions
) -> None:
    files = f"--source={options.source} and --reference={options.reference}"
    if len(lines) != len(sources):
        raise DataError(
            f"{files} must have a sentence for each tree: they have {len(lines):,} "
            f"lines and {len(sources):,} trees. Leave --source out to parse the words "
            "of the trees."
        )
    for number, (line, source) in enumerate(zip(lines, sources, strict=True), start=1):
        if line.split() != source.split():
            raise DataError(
                f"{files} differ in sentence {number:,}: {line[:60]!r} and "
                f"{source[:60]!r}. Leave --source out to parse the words of the trees."
            )


def read_outputs(sources: Sequence[str], outputs: Sequence[str]) -> list[Parse]:
    """Reads output lines as trees, and repairs those that are not."""
    pairs = zip(sources, outputs, strict=True)
    return [read_parse(source, output) for source, output in pairs]


def treebank_scores(
    options: EvaluateOptions, bank: Treebank, parses: Sequence[Parse]
) -> dict[str, Any]:
    """Returns the scores, and the parameters by which they were computed."""
    return {
        "parameters": options.parameters or "standard",
        **parsing_scores(bank.trees, parses, bank.parameters),
    }


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
