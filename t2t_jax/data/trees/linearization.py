"""Trees as sequences of symbols, and back.

Source: "Grammar as a Foreign Language" (Vinyals et al. 2015, reference 37 of the
paper). `(S (NP XX XX )NP (VP XX )VP )S` is a tree over three words: a symbol opens each
constituent, one with its label closes it, and one stands for each word: `XX`, its part
of speech, or its number in the sentence.

Departs: reference 37 has the same symbol for all words, and the paper does not say. A
decoder without recurrence then has to count them to know which word comes next, which
is the hardest to learn of all; a number says it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from t2t_jax.data.trees.tree import MAX_DEPTH, Tree

WORD = "XX"
"""The symbol of a word without its part of speech."""

WORD_SYMBOLS = (WORD, "tags", "numbers")
"""What may stand for a word: always `WORD`, its part of speech, or 1, 2, 3 …"""


def linearize(tree: Tree, *, words: str = WORD) -> list[str]:
    """Writes a tree as symbols.

    Args:
      words: one of `WORD_SYMBOLS`, what stands for a word.

    Raises:
      ValueError: a tag looks like a bracket, or a word, tag or label has a space in it
        such as U+00A0, at which text would be split.

    Example:
      >>> from t2t_jax.data.trees.tree import read_tree
      >>> " ".join(linearize(read_tree("(S (NP (PRP We)) (VP (VBP sleep)))")))
      '(S (NP XX )NP (VP XX )VP )S'
    """
    return list(_symbols(tree, words, itertools.count(1)))


def _symbols(tree: Tree, words: str, numbers: Iterator[int]) -> Iterator[str]:
    _check_spaces(tree.label)
    if tree.is_word:
        _check_spaces(str(tree.children[0]))
        if tree.label[:1] in ("(", ")"):
            raise ValueError(f"the tag {tree.label!r} must not begin with a bracket")
        yield {"tags": tree.label, "numbers": str(next(numbers))}.get(words, WORD)
        return
    yield f"({tree.label}"
    for child in tree.subtrees():
        yield from _symbols(child, words, numbers)
    yield f"){tree.label}"


def _check_spaces(text: str) -> None:
    if len(text.split()) > 1 or text != text.strip():
        raise ValueError(f"{text!r} must not have a space in it")


def delinearize(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Reads symbols as a tree over words; a number becomes the tag `WORD`.

    The words are in the order of the sentence, whatever their numbers.

    Raises:
      ValueError: they are not one balanced tree over exactly these words.

    Example:
      >>> print(delinearize("(S (NP XX )NP (VP XX )VP )S".split(), ["We", "sleep"]))
      (S (NP (XX We)) (VP (XX sleep)))
    """
    tree = _build(symbols, words, deepest=MAX_DEPTH - 1)
    written = linearize(tree, words="tags")
    if written != [s if s.startswith(("(", ")")) else _tag(s) for s in symbols]:
        text = " ".join(symbols)
        raise ValueError(f"{text!r} is not one balanced tree over {len(words)} words")
    return tree


def _tag(symbol: str) -> str:
    """Returns the tag of the symbol of a word."""
    return WORD if symbol.isdecimal() else symbol


class Parse(NamedTuple):
    """A tree, and whether the symbols had to be repaired to be one."""

    tree: Tree
    repaired: bool


def repair(symbols: Sequence[str], words: Sequence[str]) -> Parse:
    """Reads symbols as a tree, and mends what is not one.

    From left to right: a closing symbol closes the innermost constituent, whatever its
    label, and is dropped where none is open; symbols of words beyond the sentence, and
    of constituents nested too deep for `MAX_DEPTH`, are dropped. At the end, innermost
    constituents that are open and have no words are dropped, words that are left are
    added to the innermost of the others, all constituents are closed, those without
    words are dropped, and several trees, or none, are put under S.

    Args:
      words: at least one.

    Departs: reference 37 adds brackets at either end; it does not say what it does
    about missing words.

    Example:
      >>> symbols = "(S (NP XX )VP XX (VP (NP".split()
      >>> tree, mended = repair(symbols, ["We", "sleep", "."])
      >>> print(tree, mended)
      (S (NP (XX We)) (XX sleep) (XX .)) True
    """
    try:
        return Parse(delinearize(symbols, words), False)
    except ValueError:  # An S may be put above.
        return Parse(_build(symbols, words, deepest=MAX_DEPTH - 2), True)


_Open: TypeAlias = list[tuple[str, list[Tree]]]


def _build(symbols: Iterable[str], words: Sequence[str], *, deepest: int) -> Tree:
    """Builds a tree of all words from any symbols, by the rule of `repair`.

    Args:
      deepest: constituents that may be open at once.
    """
    left, too_deep = list(reversed(words)), 0  # constituents that are left out
    stack: _Open = [("", [])]
    for symbol in symbols:
        if symbol.startswith("(") and (too_deep or len(stack) > deepest):
            too_deep += 1
        elif symbol.startswith("("):
            stack.append((symbol[1:], []))
        elif symbol.startswith(")") and too_deep:
            too_deep -= 1
        elif symbol.startswith(")"):
            _close(stack)
        elif left:
            stack[-1][1].append(Tree(_tag(symbol), (left.pop(),)))
    while len(stack) > 1 and not stack[-1][1]:
        stack.pop()
    stack[-1][1].extend(Tree(WORD, (word,)) for word in reversed(left))
    while len(stack) > 1:
        _close(stack)
    ((_, trees),) = stack
    is_whole = len(trees) == 1 and not trees[0].is_word
    return trees[0] if is_whole else Tree("S", tuple(trees))


def _close(stack: _Open) -> None:
    """Closes the innermost constituent, if one is open; drops an empty one."""
    if len(stack) > 1:
        label, children = stack.pop()
        if children:
            stack[-1][1].append(Tree(label, tuple(children)))


def read_parse(source: str, symbols: str) -> Parse:
    """Reads an output line as a tree over the words of the source.

    Example:
      >>> parse = read_parse("We sleep", "(S (NP PRP )NP (VP VBP")
      >>> print(*parse)
      (S (NP (PRP We)) (VP (VBP sleep))) True
    """
    return repair(symbols.split(), source.split() or [""])
