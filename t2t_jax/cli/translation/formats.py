"""Formats translations as text, tab-separated columns or JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from t2t_jax.cli.flags.translation import TranslateOptions
from t2t_jax.errors import UserError

if TYPE_CHECKING:
    from t2t_jax.data.trees.tree import Tree
    from t2t_jax.decoding.text.translation import Hypothesis, Translation

Render: TypeAlias = Callable[[int, str, "Translation"], str]
"""(line number from 0, the line, its translation) -> one or more lines of output."""

TREE_FORMATS = ("brackets", "tree")
"""Formats of parsers."""

STATUS_WORDS = {
    "unmet_terms": "without a term",
    "invalid_utf8": "not UTF-8",
    "empty": "empty",
    "no_output": "without output",
    "no_eos": "without an end",
    "repaired": "repaired",
    "truncated": "cut",
    "short": "short",
    "unfamiliar": "unfamiliar",
    "chunked": "split",
}
"""Human-readable words for each status but "ok"."""


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
      UserError: `text` cannot represent the requested scores or alignments.
    """
    if options.format in ("", "text"):
        _check_text_format(options)
        return lambda number, line, translation: translation.text
    if options.format in TREE_FORMATS:
        return _tree_formatter(options)
    switches = {"scores": options.token_scores, "alignments": options.alignments}
    if options.format == "tsv":
        return lambda number, line, translation: _tsv(number, translation, **switches)
    terms = bool(options.terms)
    return lambda number, line, translation: _jsonl(
        number, translation, **switches, terms=terms
    )


def _tree_formatter(options: TranslateOptions) -> Render:
    from t2t_jax.cli.translation.parsing import require_parser
    from t2t_jax.data.trees.drawing import draw_tree

    _check_text_format(options)
    require_parser(options.config.data.train, flag=f"--format={options.format}")

    def write(tree: Tree) -> str:
        return f"{draw_tree(tree)}\n" if options.format == "tree" else str(tree)

    def render(number: int, line: str, translation: Translation) -> str:
        del number, line
        return write(translation.parse.tree) if translation.parse else ""

    return render


def float32_repr(number: float) -> float:
    """Rounds to nine digits, which distinguish all float32 numbers.

    Example:
      >>> float32_repr(-0.30000001192092896)
      -0.300000012
    """
    return float(f"{number:.9g}")


def summary(statuses: Counter[str], *, lines: int, seconds: float | None) -> str:
    """Summarizes the statuses of all lines in one line.

    Args:
      statuses: number of lines by status; a line may have several.
      seconds: spent translating; None for a stream.

    Example:
      >>> summary(Counter(ok=1_200, no_eos=2, chunked=1), lines=1_202, seconds=10)
      'Translated 1,202 lines in 10.0 s, 120.2 lines/s: 2 without an end, 1 split.'
    """
    odd = [
        f"{statuses[status]:,} {words}"
        for status, words in STATUS_WORDS.items()
        if statuses[status]
    ]
    pace = ""
    if seconds is not None:
        pace = f" in {seconds:.1f} s, {lines / max(seconds, 1e-3):,.1f} lines/s"
    return (
        f"Translated {lines:,} line{'s' * (lines != 1)}{pace}{': ' if odd else ''}"
        f"{', '.join(odd)}."
    )


def _check_text_format(options: TranslateOptions) -> None:
    n_best = options.config.decoding.n_best
    unsupported = [
        name
        for name, is_set in (
            ("--token_scores", options.token_scores),
            ("--alignments", options.alignments),
            (f"n_best={n_best}", n_best > 1),
        )
        if is_set
    ]
    if unsupported:
        raise UserError(
            f"--format={options.format or 'text'} writes one translation per line and "
            f"does not support {', '.join(unsupported)}. Choose --format=tsv or "
            "--format=jsonl."
        )


def _tsv(
    number: int, translation: Translation, *, scores: bool, alignments: bool
) -> str:
    rows = []
    for rank, hypothesis in enumerate(translation.hypotheses, start=1):
        row: list[Any] = [
            *(number + 1, rank, translation.status),
            *(float32_repr(hypothesis.score), float32_repr(hypothesis.log_probability)),
            *(hypothesis.num_tokens, hypothesis.text),
        ]
        if scores or alignments:
            row.append(" ".join(hypothesis.tokens))
        if scores:
            row.append(" ".join(map(str, _scores(hypothesis))))
        if alignments:
            row.append(" ".join(translation.source_tokens))
            row.append(" ".join(f"{s}-{t}" for s, t in hypothesis.alignment()))
        # A model with byte fallback can generate a tab.
        rows.append("\t".join(str(cell).replace("\t", " ") for cell in row))
    return "\n".join(rows)


def _jsonl(
    number: int,
    translation: Translation,
    *,
    scores: bool,
    alignments: bool,
    terms: bool = False,
) -> str:
    def fields(hypothesis: Hypothesis) -> Iterator[tuple[str, Any]]:
        yield "translation", hypothesis.text
        yield "score", float32_repr(hypothesis.score)
        yield "log_probability", float32_repr(hypothesis.log_probability)
        yield "num_tokens", hypothesis.num_tokens
        yield "tokens", hypothesis.tokens
        if scores:
            yield "token_log_probabilities", _scores(hypothesis)
        if alignments:
            yield "alignment", hypothesis.alignment()

    row = {
        "line": number + 1,
        "status": translation.status,
        "statuses": translation.statuses,
        "translation": translation.text,
        **({"tree": str(translation.parse.tree)} if translation.parse else {}),
        "score": float32_repr(translation.score),
        "unseen_words": _round(translation.unseen_words),
        **({"unmet_terms": translation.unmet_terms} if terms else {}),
        "source_tokens": translation.source_tokens,
        "hypotheses": [dict(fields(one)) for one in translation.hypotheses],
    }
    return json.dumps(row, ensure_ascii=False)


def _round(fraction: float | None) -> float | None:
    return None if fraction is None else round(fraction, 4)


def _scores(hypothesis: Hypothesis) -> list[float]:
    return [float32_repr(number) for number in hypothesis.token_log_probabilities]
