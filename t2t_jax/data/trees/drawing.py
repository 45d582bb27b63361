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
    if tree.is_word:
        return f"{tree.label} {tree.children[0]}"
    *others, last = map(draw_tree, tree.subtrees())
    lines = [tree.label]
    lines += ["├── " + text.replace("\n", "\n│   ") for text in others]
    return "\n".join([*lines, "└── " + last.replace("\n", "\n    ")])


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
    nodes: list[Node] = []
    right = 0.0  # of the words so far

    def place(tree: Tree, level: int, parent: int, start: int) -> Node:
        """Adds the nodes of a tree; returns its own."""
        nonlocal right
        index, end = len(nodes), start + 1
        nodes.append(Node(tree.label, 0.0, level, parent, False, start, start))
        if tree.is_word:
            word = str(tree.children[0])
            width = max(len(word), len(tree.label))
            x, right = right + width / 2, right + width + gap
            nodes.append(Node(word, x, level + 1, index, True, start, end))
        else:
            xs, end = [], start
            for child in tree.subtrees():
                below = place(child, level + 1, index, end)
                xs.append(below.x)
                end = below.end
            x = (xs[0] + xs[-1]) / 2
        nodes[index] = nodes[index]._replace(x=x, end=end)
        return nodes[index]

    place(tree, 0, -1, 0)
    deepest = max(node.level for node in nodes)
    return [node._replace(level=deepest) if node.is_word else node for node in nodes]
