"""Constituency trees in Penn brackets: read, normalized, written, drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

SPACES = " \t\n\v\f\r"
"""What separates words: the spaces of C, as in EVALB; others belong to words."""

_TOKEN = re.compile(rf"[()]|[^(){SPACES}]+")
_ROOTS = ("", "ROOT", "TOP", "S1")
MAX_DEPTH = 200
"""Brackets that may be open at once, that of a word included."""


class Tree(NamedTuple):
    """A constituent, or a word with its part of speech as the label.

    Attributes:
      children: constituents in order; of a word, the word alone.
    """

    label: str
    children: tuple[Child, ...]

    @property
    def is_word(self) -> bool:
        """Whether this is a word with its tag."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def words(self) -> list[str]:
        """Returns the words from left to right."""
        return [str(leaf.children[0]) for leaf in self.leaves()]

    def leaves(self) -> Iterator[Tree]:
        """Yields the words with their tags from left to right."""
        if self.is_word:
            yield self
        else:
            for child in self.subtrees():
                yield from child.leaves()

    def subtrees(self) -> Iterator[Tree]:
        """Returns the constituents and words directly below."""
        return (child for child in self.children if isinstance(child, Tree))

    def __str__(self) -> str:
        """Writes the tree on one line.

        Example:
          >>> print(Tree("S", (Tree("NP", (Tree("PRP", ("We",)),)),)))
          (S (NP (PRP We)))
        """
        return f"({' '.join([self.label, *map(str, self.children)])})"


Child: TypeAlias = Tree | str


class TreeReader:
    """Reads trees from lines; a tree may span several of them.

    Attributes:
      begin: the line on which the tree begins that is being read; 0 between trees.
    """

    def __init__(self) -> None:
        self.begin = 0
        self._open: list[tuple[str | None, list[Child]]] = []  # None: no label yet

    def read(self, number: int, line: str) -> Iterator[Tree]:
        """Yields the trees that end on a line.

        Raises:
          ValueError: the brackets are not those of trees. The rest of the line and the
            tree that was begun are dropped.
        """
        try:
            for token in _TOKEN.findall(line):
                self.begin = self.begin or number
                if tree := self._add(token):
                    self.begin = 0
                    yield tree
        except ValueError:
            self._open, self.begin = [], 0
            raise

    def end(self) -> None:
        """Checks that no tree is left open.

        Raises:
          ValueError: a tree is not closed.
        """
        if self._open:
            raise ValueError(f"{len(self._open)} brackets are not closed")

    def _add(self, token: str) -> Tree | None:
        label, children = self._open[-1] if self._open else ("", [])
        if token == "(":
            if label is None:
                self._open[-1] = ("", [])
            if len(self._open) == MAX_DEPTH:
                raise ValueError(f"brackets are nested deeper than {MAX_DEPTH}")
            self._open.append((None, []))
        elif not self._open:
            raise ValueError(f"{token!r} is outside of all brackets")
        elif token == ")":
            return self._close()
        elif label is None:
            self._open[-1] = (token, [])
        elif children:
            raise ValueError(f"{token!r} must have brackets of its own")
        else:
            children.append(token)
        return None

    def _close(self) -> Tree | None:
        label, children = self._open.pop()
        if not children:
            raise ValueError(f"the bracket ({label or ''} is empty")
        tree = Tree(label or "", tuple(children))
        if not self._open:
            return tree
        if (siblings := self._open[-1][1]) and isinstance(siblings[0], str):
            raise ValueError(f"{siblings[0]!r} must have brackets of its own")
        siblings.append(tree)
        return None


def read_tree(line: str) -> Tree:
    """Reads one tree.

    Raises:
      ValueError: the line is not one tree.

    Example:
      >>> read_tree("(NP (DT the) (NN cat))").words()
      ['the', 'cat']
    """
    reader = TreeReader()
    trees = list(reader.read(1, line))
    reader.end()
    if len(trees) != 1:
        raise ValueError(f"a line must be one tree, and is {len(trees)}")
    return trees[0]


def normalize(tree: Tree) -> Tree | None:
    """Removes what parsers do not predict: roots, traces, functions and indices.

    A root (no label, ROOT, TOP or S1) over one constituent is removed, and so is a
    constituent with nothing but traces below it. NP-SBJ-1 and NP=2 become NP.

    Returns:
      None for a tree of traces only.

    Example:
      >>> print(normalize(read_tree("( (S (NP-SBJ-1 (-NONE- *)) (VP-X=2 (VB Go))))")))
      (S (VP (VB Go)))
    """
    kept = _without_traces(tree)
    while kept and kept.label in _ROOTS and not kept.is_word:
        if len(inner := tuple(kept.subtrees())) != 1 or inner[0].is_word:
            return kept if kept.label else Tree("X", inner)
        kept = inner[0]
    return kept


def _without_traces(tree: Tree) -> Tree | None:
    if tree.is_word:
        return None if tree.label == "-NONE-" else tree
    children = tuple(filter(None, map(_without_traces, tree.subtrees())))
    # NP of NP-SBJ-1; a label that begins with a hyphen stays.
    category = re.match(r"[^-=|]+", tree.label)
    label = category[0] if category else tree.label
    return Tree(label, children) if children else None


def with_words(tree: Tree, words: Iterable[str], tags: Iterable[str]) -> Tree:
    """Returns a tree with other words and tags, from left to right."""
    leaves = iter([Tree(t, (word,)) for t, word in zip(tags, words, strict=True)])

    def replaced(tree: Tree) -> Tree:
        if tree.is_word:
            return next(leaves)
        return Tree(tree.label, tuple(map(replaced, tree.subtrees())))

    return replaced(tree)


def draw_tree(tree: Tree) -> str:
    """Draws a tree with a line for each constituent, indented, and for each word.

    Example:
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
