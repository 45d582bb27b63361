"""BLEU of tokens: the paper's, or lower-cased, as much of the literature has it.

It differs from sacreBLEU for the same translations; the two are not comparable. Text
that is tokenized already, of a run with `evaluation.tokenize=none`, is not tokenized
again: escapes such as `&apos;` are then in the translations as in the references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from t2t_jax.data.line_arguments import as_lines
from t2t_jax.errors import UserError
from t2t_jax.evaluation.bleu import BleuSettings, corpus_scores
from t2t_jax.evaluation.significance import scores_and_tests

LABEL = "of tokenized text, not comparable with sacreBLEU on raw text"
"""Label to be shown with every such score."""

Tokenize = Callable[[str], str]
"""From a line to tokens separated by spaces."""

# The last character of most sentences, with what is before it.
_SENTENCE_END = re.compile(r"(?P<before>.)[.!?…]\s*\Z")


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Creates the Moses tokenizer of sacremoses.

    Args:
      language: code such as "de"; determines abbreviations and apostrophes.

    Raises:
      UserError: sacremoses cannot be imported, or does not support the language.
    """
    try:
        import sacremoses
    except ImportError as error:
        raise UserError(
            "BLEU of Moses tokens needs the Moses tokenizer, but sacremoses cannot be "
            f"imported: {error}. Run: pip install 't2t-jax[paper]'"
        ) from error
    # sacremoses tokenizes unknown languages as English.
    languages = sacremoses.corpus.NonbreakingPrefixes().available_langs
    if language not in (known := sorted(set(languages.values()))):
        raise UserError(
            f"--target_language={language} must be a language of sacremoses: "
            f"{', '.join(known)}."
        )
    return partial(sacremoses.MosesTokenizer(lang=language).tokenize, return_str=True)


def tokenized_bleu(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    tokenize: Tokenize,
    language: str = "",
    lowercase: bool = False,
    baseline: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Computes BLEU of tokens.

    Args:
      tokenize: of both sides; `str` for text that is tokenized already.
      language: of Moses's rules, for the signature; "" for text that is tokenized.
      lowercase: whether lines are lower-cased, before they are tokenized: with German
        rules this turns the raw references of Multi30k's test of 2016 into the
        tokenized ones that are distributed with it.
      baseline: another system's translations, for a paired test.

    Returns:
      `score` in percent, its sacreBLEU `signature`, the `label` that sets it apart, the
      bootstrap `interval`, and with a baseline the `paired_test`.

    Raises:
      DataError, TypeError: as in `bleu.check_aligned`.

    Departs: Table 2 is of tokens, too, but with compounds split; see
      `paper_bleu`.

    Example:
      >>> ours, reference = ["Ein Hund bellt ."], ["ein hund bellt ."]
      >>> found = tokenized_bleu(ours, reference, tokenize=str, lowercase=True)
      >>> found["score"], found["signature"]
      (100.0..., 'nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:...')
      >>> found["label"]
      'of tokenized text, not comparable with sacreBLEU on raw text'
    """

    def tokens(lines: Iterable[str]) -> list[str]:
        lines = as_lines(lines, caller="tokenized_bleu")
        return [tokenize(line.lower() if lowercase else line) for line in lines]

    found = scores_and_tests(
        tokens(hypotheses),
        tokens(references),
        metrics=["bleu"],
        bleu=BleuSettings(tokenize="none", lowercase=lowercase),
        baseline=None if baseline is None else tokens(baseline),
    )
    scores = _labelled(found, language, LABEL)
    scores["interval"] = found["intervals"]["bleu"]
    if "paired_test" in found:
        scores["paired_test"] = found["paired_test"]["bleu"]
    return scores


def _labelled(scores: Mapping[str, Any], language: str, label: str) -> dict[str, Any]:
    signature = moses_signature(scores["bleu_signature"], language)
    return {"score": scores["bleu"], "signature": signature, "label": label}


def moses_signature(signature: str, language: str) -> str:
    """Names Moses's tokenizer in the sacreBLEU signature of tokenized text.

    Example:
      >>> moses_signature("nrefs:1|tok:none", "fr"), moses_signature("tok:none", "")
      ('nrefs:1|tok:moses-fr', 'tok:none')
    """
    name = f"moses-{language}" if language else "none"
    return signature.replace("tok:none", f"tok:{name}")


def share_of_tokenized(lines: Sequence[str]) -> float | None:
    """Estimates which share of the lines is tokenized, from the ends of sentences.

    Returns:
      Of the lines that end in a full stop, ! or ?, the share with a space before it;
      None if hardly any line ends so.

    Example:
      >>> share_of_tokenized(["Ja .", "Nein !", "Nie.", "Wann ?", "Immer"])
      0.75
    """
    ends = [end for line in lines if (end := _SENTENCE_END.search(line))]
    if len(ends) < len(lines) / 4:
        return None
    return sum(end["before"] == " " for end in ends) / len(ends) if ends else None


PAPER_LABEL = "paper-style, not comparable with sacreBLEU"
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
    """Computes tokenized, compound-split BLEU as in the paper.

    Args:
      tokenize: from a raw line to tokens separated by spaces, for both sides.
      language: of Moses's rules, for the signature; "" for text that is tokenized.

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

    def tokens(lines: Iterable[str]) -> list[str]:
        lines = as_lines(lines, caller="paper_bleu")
        return [split_compounds(tokenize(line)) for line in lines]

    both, bleu = (tokens(hypotheses), tokens(references)), BleuSettings("none")
    found = corpus_scores(*both, metrics=["bleu"], bleu=bleu)
    return _labelled(found, language, PAPER_LABEL)
