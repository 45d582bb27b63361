"""The baseline of right-branching trees.

``python -m t2t_jax.evaluation.bracketing.right_branching TREES``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from t2t_jax.data.corpora.tree_files import read_trees
from t2t_jax.data.trees.linearization import Parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.errors import UserError
from t2t_jax.evaluation.bracketing.parameters import load_parameters
from t2t_jax.evaluation.bracketing.parses import parsing_scores
from t2t_jax.files import write_output

_ENDS = (".", "!", "?", ";", ":")


def right_branching(leaves: list[Tree], *, root: str = "S", label: str = "VP") -> Tree:
    """Returns the tree in which a constituent begins at each word and ends at the last.

    A mark at the end of the sentence is a part of the whole tree only.

    Args:
      leaves: the words with their tags.
      root: label of the whole tree.
      label: of all other constituents; none is over a single word.

    Example:
      >>> leaves = [Tree("XX", (word,)) for word in "Cats like warm milk .".split()]
      >>> print(right_branching(leaves))
      (S (XX Cats) (VP (XX like) (VP (XX warm) (XX milk))) (XX .))
    """
    *others, last = leaves
    end = [last] if others and str(last.children[0]) in _ENDS else []
    inner = others if end else [*leaves]
    below = inner[-1:]
    for leaf in reversed(inner[1:-1]):
        below = [Tree(label, (leaf, *below))]
    first = inner[:1] if len(inner) > 1 else []
    return Tree(root, (*first, *below, *end))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m t2t_jax.evaluation.bracketing.right_branching",
        description="Scores right-branching trees over the words of gold trees, and "
        "prints one JSON object, as --mode=evaluate --protocol=parsing does.",
        allow_abbrev=False,
    )
    trees = "gold trees in Penn brackets, plain or .gz"
    parser.add_argument("trees", metavar="TREES", help=trees)
    for name, default, about in (
        ("root", "S", "label of the whole tree"),
        ("label", "VP", "label of all others"),
        ("parameters", "standard", 'a parameter file of EVALB, or "standard"'),
        ("output", "", "writes the trees to this file, one a line"),
    ):
        shown = f"{about} (default: {default})" if default else about
        parser.add_argument(f"--{name}", default=default, help=shown)
    return parser


def main(arguments: Sequence[str]) -> int:
    """Scores the trees and prints the result; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        gold = read_trees(options.trees)
        labels = {"root": options.root, "label": options.label}
        parses = [right_branching(list(tree.leaves()), **labels) for tree in gold]
        rules = load_parameters(options.parameters)
        scores = parsing_scores(gold, [Parse(tree, False) for tree in parses], rules)
        if options.output:
            text = "".join(f"{tree}\n" for tree in parses)
            write_output(options.output, text, what="trees")
    except UserError as error:
        print(*(f"error: {p}" for p in error.problems), sep="\n", file=sys.stderr)
        return error.exit_code
    print(json.dumps(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
