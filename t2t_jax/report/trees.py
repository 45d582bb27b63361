"""Sample trees of a parser as pictures: the gold tree, and the newest parse."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from t2t_jax.data.trees.drawing import Node, lay_out
from t2t_jax.data.trees.linearization import delinearize, read_parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.report.page import Block, Note, Part

_MOST = 5  # sentences
_LETTER, _LEVEL, _MARGIN = 8.0, 34.0, 20.0  # pixels
_Bracket = tuple[str, int, int]


def sample_trees(samples: Mapping[str, Any]) -> Iterator[Part]:
    """Yields pictures of samples, with the brackets that the gold tree lacks marked.

    Args:
      samples: from `samples.read_samples`. Those that are no trees are left out: their
        text was too long to be kept whole.
    """
    drawn = 0
    for one in samples["sentences"]:
        newest = next((t for t in reversed(one["translations"]) if t is not None), "")
        try:
            gold = delinearize(one["reference"].split(), one["source"].split())
        except ValueError:
            continue
        if not drawn:
            yield Note("Constituents that the gold tree lacks have another colour.")
        parse, repaired = read_parse(one["source"], newest)
        right = {(node.text, node.start, node.end) for node in lay_out(gold)}
        yield Block(
            "trees.html",
            {
                "source": one["source"],
                "gold": _picture(gold, right),
                "parse": _picture(parse, right),
                "repaired": repaired,
            },
        )
        drawn += 1
        if drawn == _MOST:
            return
    if not drawn:
        yield Note("No evaluation has written trees yet.")


def _picture(tree: Tree, right: Collection[_Bracket]) -> dict[str, Any]:
    """Returns the lines and labels of a tree, in pixels.

    Args:
      right: label, first word and end of each constituent that is not marked as wrong.
    """
    nodes = lay_out(tree)
    width = _MARGIN + _LETTER * max(n.x + len(n.text) / 2 for n in nodes)
    height = _MARGIN * 2 + _LEVEL * max(node.level for node in nodes)
    return {
        "width": round(width),
        "height": round(height),
        "brackets": str(tree),
        "lines": [_line(nodes[node.parent], node) for node in nodes[1:]],
        "labels": [_label(node, right) for node in nodes],
    }


def _at(node: Node) -> tuple[float, float]:
    x, y = _MARGIN / 2 + _LETTER * node.x, _MARGIN + _LEVEL * node.level
    return round(x, 1), round(y, 1)


def _line(above: Node, below: Node) -> tuple[float, float, float, float]:
    (x1, y1), (x2, y2) = _at(above), _at(below)
    return x1, y1 + 5, x2, y2 - 14


def _label(node: Node, right: Collection[_Bracket]) -> dict[str, Any]:
    is_right = (node.text, node.start, node.end) in right
    kind = "word" if node.is_word else "" if is_right else "wrong"
    return dict(zip("xy", _at(node), strict=True), text=node.text, kind=kind)
