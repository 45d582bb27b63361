"""Formats translations as text, tab-separated columns or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.decoding.text.translation import (
    Hypothesis,
    Translation,
    hypothesis_fields,
)
from t2t_jax.errors import ConfigError, UserError

_COLUMNS = ("score", "log_probability", "num_tokens", "translation")

Render: TypeAlias = Callable[[int, Translation], str]
"""(line number from 0, its translation) -> one or more lines of output."""


def make_formatter(options: TranslateOptions) -> Render:
    """Returns the formatter of `options.format`.

    `text` is the best translation. `brackets` reads it as a tree over the words of the
    line, repaired if it is none, and `tree` draws that over several lines. `tsv` has a
    row for each of the n best: line and rank (from 1), status, score, log-probability,
    number of tokens, translation; then,
    with `--token_scores` or `--alignments`, tokens and their log-probabilities, source
    tokens, and pairs `source-target` of token indices from 0. `jsonl` has one object
    per line, with the same names, all `statuses`, and of a parser the `tree`; with
    `--terms` also `unmet_terms`.

    Raises:
      UserError: the format cannot represent the requested scores or alignments, or the
        model is not a parser.
    """
    if options.format in ("tsv", "jsonl"):
        rows_of = _tsv if options.format == "tsv" else _jsonl
        return lambda number, translation: rows_of(number, translation, options)
    n_best = options.config.decoding.n_best
    unsupported = ["--token_scores"] * options.token_scores
    unsupported += ["--alignments"] * options.alignments
    unsupported += [f"n_best={n_best}"] * (n_best > 1)
    if unsupported:
        raise UserError(
            f"--format={options.format or 'text'} writes one translation per line and "
            f"does not support {', '.join(unsupported)}. Choose --format=tsv or jsonl."
        )
    if options.format in ("", "text"):
        return lambda number, translation: translation.text
    require_parser(options.config.data.train, flag=f"--format={options.format}")
    is_drawn = options.format == "tree"
    return lambda number, translation: _tree(translation, is_drawn=is_drawn)


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


def float32_repr(number: float) -> float:
    """Rounds to nine digits, which distinguish all float32 numbers.

    Example:
      >>> float32_repr(-0.30000001192092896)
      -0.300000012
    """
    return float(f"{number:.9g}")


def _tree(translation: Translation, *, is_drawn: bool) -> str:
    from t2t_jax.data.trees.tree import draw_tree

    if not translation.parse:
        return ""
    tree = translation.parse.tree
    return f"{draw_tree(tree)}\n" if is_drawn else str(tree)


def _tsv(number: int, translation: Translation, options: TranslateOptions) -> str:
    rows = []
    for rank, hypothesis in enumerate(translation.hypotheses, start=1):
        fields = _fields(hypothesis, options)
        cells: list[Any] = [number + 1, rank, translation.status]
        cells += [fields[name] for name in _COLUMNS]
        if options.token_scores or options.alignments:
            cells.append(" ".join(hypothesis.tokens))
        if options.token_scores:
            cells.append(" ".join(map(str, fields["token_log_probabilities"])))
        if options.alignments:
            cells.append(" ".join(translation.source_tokens))
            cells.append(" ".join(f"{s}-{t}" for s, t in fields["alignment"]))
        # A model with byte fallback can generate a tab.
        rows.append("\t".join(str(cell).replace("\t", " ") for cell in cells))
    return "\n".join(rows)


def _jsonl(number: int, translation: Translation, options: TranslateOptions) -> str:
    unseen = translation.unseen_words
    row = {
        "line": number + 1,
        "status": translation.status,
        "statuses": translation.statuses,
        "translation": translation.text,
        **({"tree": str(translation.parse.tree)} if translation.parse else {}),
        "score": float32_repr(translation.score),
        "unseen_words": None if unseen is None else round(unseen, 4),
        **({"unmet_terms": translation.unmet_terms} if options.terms else {}),
        "source_tokens": translation.source_tokens,
        "hypotheses": [_fields(one, options) for one in translation.hypotheses],
    }
    return json.dumps(row, ensure_ascii=False)


def _fields(hypothesis: Hypothesis, options: TranslateOptions) -> dict[str, Any]:
    names = ("token_scores", "alignments")
    details = [name for name in names if getattr(options, name)]
    return hypothesis_fields(hypothesis, details, rounded=float32_repr)
