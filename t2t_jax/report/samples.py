"""Sample translations of a run through time, from `samples/<step>.txt`.

Of a parser they are trees, drawn as pictures: the gold tree, and the newest parse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.data.trees.linearization import delinearize, read_parse
from t2t_jax.data.trees.tree import Node, Tree, lay_out
from t2t_jax.report.curves import spread
from t2t_jax.report.page import Block, Note, Part
from t2t_jax.run.dev_outputs import read_step_samples, steps_in
from t2t_jax.run.workdir import Workdir

MAX_STEPS = 60
"""Evaluations of which a page shows the samples."""

_MAX_SENTENCES = 20
_MAX_LETTERS = 1_000
_MOST_TREES = 5  # sentences
_LETTER, _LEVEL, _MARGIN = 8.0, 34.0, 20.0  # pixels


def read_samples(workdir: Workdir, *, keep: Collection[int] = ()) -> dict[str, Any]:
    """Reads the samples of a run, of at most `MAX_STEPS` evaluations.

    Args:
      keep: steps that are not left out, such as that of the best evaluation.

    Returns:
      JSON values: `steps`; `sentences`, each with source, reference and its
      translations, one for each step (None where that step has none); `left_out`, the
      number of evaluations that are not shown.
    """
    folder = workdir.path / "samples"
    steps = steps_in(folder)
    kept = set(keep) & set(steps)
    even = spread(steps, max(2, MAX_STEPS - len(kept)))
    shown = steps if len(steps) <= MAX_STEPS else sorted(kept | set(even))
    sentences: dict[tuple[str, str], dict[int, str]] = {}
    for step in shown:
        for sample in read_step_samples(folder, step)[:_MAX_SENTENCES]:
            source, reference, translation = (truncate(s, _MAX_LETTERS) for s in sample)
            sentences.setdefault((source, reference), {})[step] = translation
    rows = [
        {"source": s, "reference": r, "translations": [*map(one.get, shown)]}
        for (s, r), one in sentences.items()
    ]
    left_out = len(steps) - len(shown)
    return {"steps": shown, "sentences": rows[:_MAX_SENTENCES], "left_out": left_out}


def sample_trees(samples: Mapping[str, Any]) -> Iterator[Part]:
    """Yields pictures of samples, with the brackets that the gold tree lacks marked.

    Args:
      samples: from `samples.read_samples`. Those that are no trees are left out: their
        text was too long to be kept whole.
    """
    drawn: list[Part] = []
    for one in samples["sentences"]:
        with suppress(ValueError):
            gold = delinearize(one["reference"].split(), one["source"].split())
            parse, repaired = read_parse(one["source"], newest_translation(one))
            right = {(node.text, node.start, node.end) for node in lay_out(gold)}
            pictures = {"gold": _picture(gold, right), "parse": _picture(parse, right)}
            about = {"source": one["source"], "repaired": repaired}
            drawn.append(Block("trees.html", about | pictures))
    if drawn:
        yield Note("Constituents that the gold tree lacks have another colour.")
    yield from drawn[:_MOST_TREES] or [Note("No evaluation has written trees yet.")]


def newest_translation(sentence: Mapping[str, Any]) -> str:
    """Returns the last translation of a sentence of `read_samples`."""
    return next((t for t in reversed(sentence["translations"]) if t is not None), "")


def _picture(tree: Tree, right: Collection[tuple[str, int, int]]) -> dict[str, Any]:
    """Returns the lines and labels of a tree, in pixels.

    Args:
      right: label, first word and end of each constituent that is not marked as wrong.
    """
    nodes = lay_out(tree)
    width = _MARGIN + _LETTER * max(n.x + len(n.text) / 2 for n in nodes)
    height = _MARGIN * 2 + _LEVEL * max(node.level for node in nodes)
    ends = ((_at(nodes[node.parent]), _at(node)) for node in nodes[1:])
    lines = [(x1, y1 + 5, x2, y2 - 14) for (x1, y1), (x2, y2) in ends]
    return {
        "width": round(width),
        "height": round(height),
        "brackets": str(tree),
        "lines": lines,
        "labels": [_label(node, right) for node in nodes],
    }


def _at(node: Node) -> tuple[float, float]:
    x, y = _MARGIN / 2 + _LETTER * node.x, _MARGIN + _LEVEL * node.level
    return round(x, 1), round(y, 1)


def _label(node: Node, right: Collection[tuple[str, int, int]]) -> dict[str, Any]:
    is_right = (node.text, node.start, node.end) in right
    kind = "word" if node.is_word else "" if is_right else "wrong"
    return dict(zip("xy", _at(node), strict=True), text=node.text, kind=kind)
