"""Sample trees of a parser as pictures: the gold tree, and the newest parse."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from t2t_jax.data.trees.drawing import Node, lay_out
from t2t_jax.data.trees.linearization import delinearize, read_parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.report.markup import Markup, join, tag, text

_MOST = 5  # sentences
_LETTER, _LEVEL, _MARGIN = 8.0, 34.0, 20.0  # pixels
_Bracket = tuple[str, int, int]


def describe_trees(samples: Mapping[str, Any]) -> Markup:
    """Returns pictures of samples, with the brackets that the gold tree lacks marked.

    Args:
      samples: from `samples.read_samples`. Those that are no trees are left out: their
        text was too long to be kept whole.
    """
    drawn = []
    for one in samples["sentences"]:
        newest = next((t for t in reversed(one["translations"]) if t is not None), "")
        try:
            gold = delinearize(one["reference"].split(), one["source"].split())
        except ValueError:
            continue
        parse, repaired = read_parse(one["source"], newest)
        drawn.append(_pair(one["source"], gold, parse, repaired=repaired))
        if len(drawn) == _MOST:
            break
    if not drawn:
        return tag("p", "No evaluation has written trees yet.", class_="muted")
    about = "Constituents that the gold tree does not have are drawn in another colour."
    return join([tag("p", about, class_="muted"), *drawn])


def _pair(source: str, gold: Tree, parse: Tree, *, repaired: bool) -> Markup:
    note = ", repaired as it was not a tree over the sentence" if repaired else ""
    right = {(node.text, node.start, node.end) for node in lay_out(gold)}
    return tag(
        "div",
        text(source, "h3"),
        tag("p", "Gold tree"),
        tree_picture(gold, right=right),
        tag("p", f"Newest parse{note}"),
        tree_picture(parse, right=right),
        class_="trees",
    )


def tree_picture(tree: Tree, *, right: Collection[_Bracket]) -> Markup:
    """Returns a tree as SVG, labelled by its brackets.

    Args:
      right: label, first word and end of each constituent that is not marked as wrong.
    """
    nodes = lay_out(tree)
    width = _MARGIN + _LETTER * max(n.x + len(n.text) / 2 for n in nodes)
    height = _MARGIN * 2 + _LEVEL * max(node.level for node in nodes)
    lines = [_line(nodes[node.parent], node) for node in nodes[1:]]
    return tag(
        "div",
        tag(
            "svg",
            *lines,
            *(_label(node, right) for node in nodes),
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=f"{width:.0f}",
            height=f"{height:.0f}",
            role="img",
            aria_label=str(tree),
        ),
        class_="scroll",
        tabindex=0,
    )


def _at(node: Node) -> tuple[float, float]:
    return _MARGIN / 2 + _LETTER * node.x, _MARGIN + _LEVEL * node.level


def _line(above: Node, below: Node) -> Markup:
    (x1, y1), (x2, y2) = _at(above), _at(below)
    return tag(
        "line", x1=f"{x1:.1f}", y1=f"{y1 + 5:.1f}", x2=f"{x2:.1f}", y2=f"{y2 - 14:.1f}"
    )


def _label(node: Node, right: Collection[_Bracket]) -> Markup:
    x, y = _at(node)
    is_right = (node.text, node.start, node.end) in right
    kind = "word" if node.is_word else None if is_right else "wrong"
    return tag("text", node.text, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind)
