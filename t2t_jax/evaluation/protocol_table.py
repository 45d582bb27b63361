"""Formats the result of the protocol as a table with rounded scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
_HASH_DIGITS = 12
_PAPER_AVERAGES = (5, 20)


class Row(NamedTuple):
    """One line of the table."""

    name: str
    value: str
    note: str


def rows(result: Mapping[str, Any]) -> list[Row]:
    """Converts the protocol's result to rows, scores first.

    Args:
      result: as `--mode=evaluate --protocol=vaswani2017` prints it.
    """
    return [
        *_scores(result),
        *_comparison(result),
        *_model(result),
        *_search(result),
        *_files(result),
    ]


def score_lines(result: Mapping[str, Any]) -> list[str]:
    """Formats BLEU and chrF with their signatures.

    Args:
      result: as `--mode=evaluate` prints it, with a protocol or without.

    Returns:
      Two lines, preceded by those of a paired test if there is no protocol.

    Example:
      >>> score_lines({"bleu": 27.34, "bleu_signature": "nrefs:1|…", "chrf": 58.0,
      ...            "chrf_signature": "nrefs:1|…"})
      ['BLEU = 27.3 (nrefs:1|…)', 'chrF = 58.0 (nrefs:1|…)']
    """
    compared = [] if "protocol" in result else list(_comparison(result))
    return [
        *format_rows(compared).splitlines(),
        *(
            f"{_NAMES[key]} = {result[key]:.1f} ({result[f'{key}_signature']})"
            for key in ("bleu", "chrf")
        ),
    ]


def format_rows(table: list[Row]) -> str:
    """Formats rows as columns, for a log or a file.

    Returns:
      One line per row, the first two columns padded.

    Example:
      >>> table = [Row("BLEU", "27.30", "tok:13a"), Row("TER", "9.10", "lc")]
      >>> print(format_rows(table))
      BLEU  27.30  tok:13a
      TER   9.10   lc
    """
    name, value = (max((len(row[i]) for row in table), default=0) for i in (0, 1))
    return "\n".join(
        f"{row.name:<{name}}  {row.value:<{value}}  {row.note}".rstrip()
        for row in table
    )


def _scores(result: Mapping[str, Any]) -> Iterator[Row]:
    intervals = result["intervals"]
    for key, name in _NAMES.items():
        mean, half = intervals[key]["mean"], intervals[key]["half_width"]
        note = f"{100 * intervals['level']:g} %: {mean - half:.2f} to {mean + half:.2f}"
        yield Row(name, f"{result[key]:.2f}", f"{note}  {result[f'{key}_signature']}")
    paper = result["paper_bleu"]
    note = f"{paper['label']}  {paper['signature']}"
    yield Row("BLEU of tokens", f"{paper['score']:.2f}", note)


def _comparison(result: Mapping[str, Any]) -> Iterator[Row]:
    if "paired_test" not in result:
        return
    test = result["paired_test"]
    for key, name in _NAMES.items():
        if key not in test:
            continue
        found = test[key]
        better = {"system": "this model", "baseline": "the baseline"}.get(
            found["better"], "neither"
        )
        p_value = found["p_value"]
        suffix = "" if p_value is None else f", p = {p_value:.4f} ({test['test']})"
        note = f"better: {better}{suffix}"
        yield Row(f"baseline's {name}", f"{found['baseline']:.2f}", note)


def _model(result: Mapping[str, Any]) -> Iterator[Row]:
    steps = ", ".join(f"{step:,}" for step in result["averaged_steps"])
    note = f"mean of {steps}  sha256 {_short(result['params_sha256'])}"
    yield Row("model", f"step {result['checkpoint_step']:,}", note)
    count = len(result["averaged_steps"])
    if result["averaged_spacing"].get("forced"):
        yield Row("  averaged", f"{count}", "forced: not evenly spaced and periodic")
    if count not in _PAPER_AVERAGES:
        yield Row("  averaged", f"{count}", "the paper averages 5, of big models 20")
    hashes = result["vocabulary_sha256"]
    shared = len(set(hashes.values())) == 1
    for side, digest in [("", hashes["target"])] if shared else hashes.items():
        note = f"sha256 {_short(digest)}"
        yield Row(f"{side} vocabulary".strip(), "shared" if shared else "", note)


def _search(result: Mapping[str, Any]) -> Iterator[Row]:
    used = result["decoding"]
    note = (
        f"alpha {used['length_penalty']:g}, output up to source + "
        f"{used['max_extra_tokens']}, {result['seconds']:.1f} s"
    )
    yield Row("search", f"beam {used['beam_size']}", note)
    for name, values in result["overruled"].items():
        note = f"the protocol overrides {values['asked']}"
        yield Row(f"  {name}", str(values["used"]), note)


def _files(result: Mapping[str, Any]) -> Iterator[Row]:
    for name, file in result["files"].items():
        path = file["path"] or "(not kept)"
        note = f"{path}  sha256 {_short(file['sha256'])}"
        yield Row(name, f"{file['lines']:,} lines", note)


def _short(digest: str) -> str:
    return f"{digest[:_HASH_DIGITS]}…"
