"""Prints the scores of `--mode=evaluate` as a table, rounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO, TypeAlias

from t2t_jax.cli.console.tables import interval_note, show_rows
from t2t_jax.cli.evaluation.trees import score_rows
from t2t_jax.cli.flags.translation import PARSING

_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
_BETTER = {"system": "this model", "baseline": "the baseline"}
_HASH_DIGITS = 12
_PAPER_AVERAGES = (5, 20)
_OF_TOKENS = ("paper_bleu", "tokenized_bleu")


Row: TypeAlias = tuple[str, str, str]
"""Name, rounded value and note."""


def show_scores(result: Mapping[str, Any], *, file: TextIO) -> None:
    """Writes the scores of `--mode=evaluate`: a table, then BLEU and chrF.

    Args:
      result: as the mode prints it; without a protocol the table is a paired test.
    """
    if result.get("protocol") == PARSING:
        show_rows([*score_rows(result), *_facts(result)], file=file)
        return
    show_rows(
        protocol_rows(result) if "protocol" in result else [*_comparison(result)],
        file=file,
    )
    for key in ("bleu", "chrf"):
        signature = result[f"{key}_signature"]
        print(f"{_NAMES[key]} = {result[key]:.1f} ({signature})", file=file)
    if tokens := result.get("tokenized_bleu"):
        note = f"{tokens['signature']}; {tokens['label']}"
        print(f"BLEU of tokens = {tokens['score']:.2f} ({note})", file=file)


def protocol_rows(result: Mapping[str, Any]) -> list[Row]:
    """Formats the result of a protocol as rows, scores first."""
    return [*_scores(result), *_comparison(result), *_facts(result)]


def _facts(result: Mapping[str, Any]) -> Iterator[Row]:
    if language := result.get("target_language"):
        yield ("target language", language, "of Moses's tokenizer")
    yield from (*_model(result), *_search(result), *_files(result))


def _scores(result: Mapping[str, Any]) -> Iterator[Row]:
    intervals = result["intervals"]
    for key, name in _NAMES.items():
        note = interval_note(intervals[key], intervals["level"])
        yield (name, f"{result[key]:.2f}", f"{note}  {result[f'{key}_signature']}")
    for tokens in (result[key] for key in _OF_TOKENS if key in result):
        note = f"{tokens['label']}  {tokens['signature']}"
        if "interval" in tokens:
            note = f"{interval_note(tokens['interval'], intervals['level'])}  {note}"
        yield ("BLEU of tokens", f"{tokens['score']:.2f}", note)


def _comparison(result: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the scores of the baseline, and which is better."""
    test = result.get("paired_test", {})
    found = {name: test[key] for key, name in _NAMES.items() if key in test}
    if tokens := result.get("tokenized_bleu", {}).get("paired_test"):
        found["BLEU of tokens"] = tokens
    for name, scores in found.items():
        better, p_value = _BETTER.get(scores["better"], "neither"), scores["p_value"]
        suffix = "" if p_value is None else f", p = {p_value:.4f} ({test['test']})"
        baseline = f"{scores['baseline']:.2f}"
        yield f"baseline's {name}", baseline, f"better: {better}{suffix}"


def _model(result: Mapping[str, Any]) -> Iterator[Row]:
    steps = ", ".join(f"{step:,}" for step in result["averaged_steps"])
    mean = f"mean of {steps}  " if steps else ""
    note = f"{mean}sha256 {_short(result['params_sha256'])}"
    yield ("model", f"step {result['checkpoint_step']:,}", note)
    count = len(result["averaged_steps"])
    if result["averaged_spacing"].get("forced"):
        yield ("  averaged", f"{count}", "forced: not evenly spaced and periodic")
    if "paper_bleu" in result and count not in _PAPER_AVERAGES:
        yield ("  averaged", f"{count}", "the paper averages 5, of big models 20")
    hashes = result["vocabulary_sha256"]
    shared = len(set(hashes.values())) == 1
    for side, digest in [("", hashes["target"])] if shared else hashes.items():
        note = f"sha256 {_short(digest)}"
        yield (f"{side} vocabulary".strip(), "shared" if shared else "", note)


def _search(result: Mapping[str, Any]) -> Iterator[Row]:
    used = result["decoding"]
    note = (
        f"alpha {used['length_penalty']:g}, output up to source + "
        f"{used['max_extra_tokens']}, {result['seconds']:.1f} s"
    )
    yield ("search", f"beam {used['beam_size']}", note)
    for name, values in result["overruled"].items():
        note = f"the protocol overrides {values['asked']}"
        yield (f"  {name}", str(values["used"]), note)


def _files(result: Mapping[str, Any]) -> Iterator[Row]:
    for name, file in result["files"].items():
        path = file["path"] or "(not kept)"
        note = f"{path}  sha256 {_short(file['sha256'])}"
        yield (name, f"{file['lines']:,} lines", note)


def _short(digest: str) -> str:
    return f"{digest[:_HASH_DIGITS]}…"
