"""Scores parses against gold trees, by EVALB's rules.

``python -m t2t_jax.evaluation.bracketing GOLD TEST [--parameters=FILE.prm]``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence

from t2t_jax.data.files.lines import read_lines
from t2t_jax.errors import UserError
from t2t_jax.evaluation.bracketing.parameters import load_parameters
from t2t_jax.evaluation.bracketing.scoring import SentenceScore, score_corpus, summarize
from t2t_jax.files import write_output

_COLUMNS = (
    "length status recall precision matched gold_brackets test_brackets crossing words "
    "correct_tags tagging_accuracy error"
).split()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m t2t_jax.evaluation.bracketing",
        description="Scores parses against gold trees, by EVALB's rules, and prints "
        "one JSON object: recall, precision and f1 in percent, and counts; under "
        '"short", those of sentences up to the cutoff length.',
        epilog="A tree is a line of brackets: (S (NP (PRP We)) (VP (VBP sleep))).",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("gold", metavar="GOLD", help="gold trees, one a line")
    add("test", metavar="TEST", help="their parses, in the same order")
    rules = (
        'a parameter file of EVALB, or "standard": no punctuation, no root, ADVP equal '
        "to PRT (default: as EVALB without a file, where all brackets count)"
    )
    add("--parameters", metavar="FILE.prm", default="", help=rules)
    columns = "writes the columns of each sentence to this file"
    add("--sentences", metavar="FILE.tsv", help=columns)
    return parser


def _rows(scores: Iterable[SentenceScore]) -> Iterable[str]:
    names = (name.removesuffix("_brackets") for name in _COLUMNS)
    yield "\t".join(["sentence", *names])
    for number, score in enumerate(scores, start=1):
        cells = [number, *(getattr(score, name) for name in _COLUMNS)]
        yield "\t".join(f"{x:.2f}" if isinstance(x, float) else str(x) for x in cells)


def main(arguments: Sequence[str]) -> int:
    """Scores the files and prints the summary; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        parameters = load_parameters(options.parameters)
        gold, test = read_lines(options.gold), read_lines(options.test)
        scores = score_corpus(gold, test, parameters)
        if options.sentences:
            text = "".join(f"{row}\n" for row in _rows(scores))
            write_output(options.sentences, text, what="columns of the sentences")
    except UserError as error:
        print(*(f"error: {p}" for p in error.problems), sep="\n", file=sys.stderr)
        return error.exit_code
    short = [score for score in scores if score.length <= parameters.cutoff_length]
    of_short = {"longest": parameters.cutoff_length, **summarize(short)}
    print(json.dumps({**summarize(scores), "short": of_short}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
