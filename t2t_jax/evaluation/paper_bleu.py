"""BLEU as the paper's own tables have it: of tokens, with compounds split.

The number it gives is another than sacreBLEU's for the same translations, and no figure
of the one kind may stand beside one of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from t2t_jax.errors import UserError
from t2t_jax.evaluation.bleu import aligned

LABEL = "paper-style, not comparable with sacreBLEU"
"""What has to stand beside the figure wherever it is shown."""

_COMPOUND = re.compile(r"(\S)-(\S)")


def split_compounds(line: str) -> str:
    """Takes words apart at their hyphens, so that half a compound counts too.

    Matches do not overlap, and go from left to right: a part of one letter is not
    taken off on both of its sides.

    Args:
      line: tokens with spaces between.

    Returns:
      The same line with each hyphen between two characters as a token of its own.

    Example:
      >>> split_compounds("ein T-Shirt - rot-weiß")
      'ein T ##AT##-##AT## Shirt - rot ##AT##-##AT## weiß'
      >>> split_compounds("a-b-c")
      'a ##AT##-##AT## b-c'
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Makes the tokeniser of the Moses toolkit, as sacremoses has it.

    Args:
      language: code such as "de": abbreviations and apostrophes depend on it.

    Returns:
      From a raw line to its tokens with spaces between.

    Raises:
      UserError: sacremoses is not installed, or does not know the language.
    """
    try:
        import sacremoses
    except ImportError as error:
        raise UserError(
            "Paper-style BLEU must tokenise as Moses does, and sacremoses is not "
            "installed. Install it with: pip install -e '.[paper]'"
        ) from error
    # What is unknown there would be tokenised as if it were English.
    known = sorted(
        set(sacremoses.corpus.NonbreakingPrefixes().available_langs.values())
    )
    if language not in known:
        raise UserError(
            f"--target_language={language} must be a language that sacremoses knows: "
            f"{', '.join(known)}."
        )
    tokenizer = sacremoses.MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        return str(tokenizer.tokenize(line, return_str=True))

    return tokenize


def paper_bleu(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    tokenize: Callable[[str], str],
) -> dict[str, Any]:
    """Scores tokenised, compound-split translations as the paper does.

    Args:
      hypotheses: raw translations, one line a sentence.
      tokenize: from a raw line to tokens with spaces between, for both sides.

    Returns:
      `score` in percent with its sacreBLEU `signature`, and the `label` that keeps it
      apart.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side is a single string, or holds something else than strings.

    Paper: Table 2 (§6.1).

    Example:
      >>> found = paper_bleu(["a b - c d-e"], ["a b - c d-e"], tokenize=str)
      >>> round(found["score"]), found["label"]
      (100, 'paper-style, not comparable with sacreBLEU')
    """
    from sacrebleu.metrics import BLEU

    ours, theirs = (
        [split_compounds(tokenize(line)) for line in lines]
        for lines in aligned(hypotheses, references, caller="paper_bleu")
    )
    # Forced, or sacreBLEU would warn that the text looks tokenised, as it is.
    metric = BLEU(tokenize="none", force=True)
    score = metric.corpus_score(ours, [theirs]).score
    return {"score": score, "signature": str(metric.get_signature()), "label": LABEL}
