"""Tokenised, compound-split BLEU as in the paper's tables.

It differs from sacreBLEU for the same translations; the two are not comparable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from t2t_jax.evaluation.bleu import BleuSettings, check_aligned, corpus_scores
from t2t_jax.evaluation.tokenized_bleu import moses_signature

LABEL = "paper-style, not comparable with sacreBLEU"
"""Label to be shown with every such score."""

_COMPOUND = re.compile(r"(\S)-(\S)")


def split_compounds(line: str) -> str:
    """Makes each hyphen within a word a token, so that parts of compounds are scored.

    Matches do not overlap: a part of one letter is not split off on both of its sides.

    Example:
      >>> split_compounds("ein T-Shirt - rot-weiß")
      'ein T ##AT##-##AT## Shirt - rot ##AT##-##AT## weiß'
      >>> split_compounds("a-b-c")
      'a ##AT##-##AT## b-c'
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)


def paper_bleu(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    tokenize: Callable[[str], str],
    language: str = "",
) -> dict[str, Any]:
    """Computes tokenised, compound-split BLEU as in the paper.

    Args:
      tokenize: from a raw line to tokens separated by spaces, for both sides.
      language: of Moses's rules, for the signature; "" for text that is tokenised.

    Returns:
      `score` in percent, its sacreBLEU `signature`, and the `label` that sets it apart.

    Raises:
      DataError, TypeError: as in `bleu.check_aligned`.

    Paper: Table 2 (§6.1).

    Example:
      >>> found = paper_bleu(["a b - c d-e"], ["a b - c d-e"], tokenize=str)
      >>> round(found["score"]), found["label"]
      (100, 'paper-style, not comparable with sacreBLEU')
    """
    ours, theirs = (
        [split_compounds(tokenize(line)) for line in lines]
        for lines in check_aligned(hypotheses, references, caller="paper_bleu")
    )
    found = corpus_scores(
        ours, theirs, metrics=["bleu"], bleu=BleuSettings(tokenize="none")
    )
    return {
        "score": found["bleu"],
        "signature": moses_signature(found["bleu_signature"], language),
        "label": LABEL,
    }
