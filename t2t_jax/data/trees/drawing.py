"""Draws a tree as text, and lays it out for a picture."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.trees.tree import Tree


def draw_tree(tree: Tree) -> str:
    """Draws a tree with a line for each constituent, indented, and for each word.

    Example:
      >>> from t2t_jax.data.trees.tree import read_tree
      >>> print(draw_tree(read_tree("(S (NP (DT the) (NN cat)) (VP (VBZ naps)))")))
      S
      ├── NP
      │   ├── DT the
      │   └── NN cat
      └── VP
          └── VBZ naps
    """
    return "\n".join(_lines(tree))


def _lines(tree: Tree) -> list[str]:
    if tree.is_word:
        return [f"{tree.label} {tree.children[0]}"]
    lines, children = [tree.label], list(tree.subtrees())
    for number, child in enumerate(children, start=1):
        is_last = number == len(children)
        first, others = ("└── ", "    ") if is_last else ("├── ", "│   ")
        below = _lines(child)
        lines.append(first + below[0])
        lines.extend(others + line for line in below[1:])
    return lines


class Node(NamedTuple):
    """A label or a word at its place in a picture.

    Attributes:
      x: the middle, in widths of a letter from the left.
      level: from 0, the root; all words are on the last.
      parent: the index of the node above; -1 for the root.
      start: the number of the first word below, from 0.
      end: one more than the last.
    """

    text: str
    x: float
    level: int
    parent: int
    is_word: bool
    start: int
    end: int


def lay_out(tree: Tree, *, gap: float = 2.0) -> list[Node]:
    """Places the nodes of a tree: words in a row at the bottom, labels above.

    Args:
      gap: between words, in widths of a letter.

    Returns:
      The nodes, each after its parent.

    Example:
      >>> from t2t_jax.data.trees.tree import read_tree
      >>> for node in lay_out(read_tree("(S (NP (PRP We)) (VP (VBP nap)))")):
      ...     print(node.text, node.x, node.level, node.parent)
      S 4.0 0 -1
      NP 1.5 1 0
      PRP 1.5 2 1
      We 1.5 3 2
      VP 6.5 1 0
      VBP 6.5 2 4
      nap 6.5 3 5
    """
    centers, right = [], 0.0
    for leaf in tree.leaves():
        width = max(len(str(leaf.children[0])), len(leaf.label))
        centers.append(right + width / 2)
        right += width + gap
    nodes: list[Node] = []
    _place(tree, nodes, centers, level=0, parent=-1, start=0)
    deepest = max(node.level for node in nodes)
    return [node._replace(level=deepest) if node.is_word else node for node in nodes]


def _place(
    tree: Tree,
    nodes: list[Node],
    centers: list[float],
    *,
    level: int,
    parent: int,
    start: int,
) -> Node:
    """Adds a tree's nodes to those of the tree around it; returns its own."""
    index, end = len(nodes), start
    nodes.append(Node(tree.label, 0.0, level, parent, False, start, start))
    if tree.is_word:
        end, x = start + 1, centers[start]
        word = str(tree.children[0])
        nodes.append(Node(word, x, level + 1, index, True, start, end))
    else:
        xs = []
        for child in tree.subtrees():
            below = _place(
                child, nodes, centers, level=level + 1, parent=index, start=end
            )
            xs.append(below.x)
            end = below.end
        x = (xs[0] + xs[-1]) / 2
    nodes[index] = nodes[index]._replace(x=x, end=end)
    return nodes[index]
