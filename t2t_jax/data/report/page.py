"""Formats the data report of a run as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_jax.data.report.leakage import copy_warnings, leak_counts, leak_warnings
from t2t_jax.data.token_cache.filters import REASONS
from t2t_jax.data.token_cache.known_words import MAX_WORDS
from t2t_jax.data.token_cache.statistics import SIDES, short_name

_MAX_BAR_WIDTH = 24
_MAX_PARTS = 40

DROP_REASONS = {
    "empty": "with an empty side",
    "too_long": "longer than data.max_length",
    "ratio": "of unequal length, by data.max_length_ratio",
    "copies": "the same text on both sides, by data.drop_copies",
    "duplicates": "repeated, by data.drop_duplicates",
}
"""Why pairs are not trained on, by the reason in `data.json`."""


def report_text(report: dict[str, Any]) -> str:
    """Formats the result of `describe_data` as text.

    Parts of a corpus have a line each; `data.json` has their details.
    """
    lines = ["The text of this run", ""]
    for name in ("vocabulary", "source_vocabulary", "target_vocabulary"):
        if name in report:
            size, print_ = report[name]["size"], report[name]["fingerprint"]
            lines.append(f"{name.replace('_', ' ')}: {size:,} subwords, {print_[:16]}")
    for name, title in (("train", "Training"), ("dev", "Development")):
        if name not in report:
            lines += ["", f"{title}: not read, since evaluation is off"]
            continue
        corpus = report[name]
        lines += [
            "",
            f"{title}: {short_name(corpus['spec'])}",
            f"  SHA-256 {corpus['fingerprint']}",
        ]
        if "batches_per_epoch_at_least" in corpus:
            batches = corpus["batches_per_epoch_at_least"]
            lines.append(f"  an epoch has at least {batches:,} batches")
        if "source_words" in corpus:
            words, most = corpus["source_words"], " (the maximum kept)"
            lines.append(
                f"  {words:,} different source words{most * (words >= MAX_WORDS)}"
            )
        if "bpe_dropout" in corpus:
            rates = ", ".join(f"{s} {p:g}" for s, p in corpus["bpe_dropout"].items())
            lines.append(f"  tokens are counted without BPE-dropout ({rates})")
        lines += _corpus_lines(corpus)
        lines += [f"  {warning}" for warning in copy_warnings(corpus.get("copies", {}))]
        lines += _part_lines(corpus.get("parts", ()))
    lines += ["", *_leak_lines(report["leaks"])]
    return "\n".join(lines) + "\n"


def _corpus_lines(stats: dict[str, Any]) -> Iterator[str]:
    counts = stats["counts"]
    yield f"  {counts['read']:>13,} pairs read"
    yield f"  {counts['kept']:>13,} kept"
    for reason in REASONS:
        if counts[reason]:
            yield f"  {counts[reason]:>13,} {DROP_REASONS[reason]}"
            for pair in stats["examples"][reason]:
                yield from _example_lines(pair, f"{'':16}{_location(pair)}:")
    yield f"  {'':22}{'source':>16}{'target':>16}"
    rows = (
        ("tokens", "tokens", "{:,}"),
        ("mean length", "mean_length", "{:.2f}"),
        ("unknown tokens, %", "unknown_rate", "{:.4%}"),
    )
    for label, key, form in rows:
        cells = (f"{form.format(stats[key][side]).rstrip('%'):>16}" for side in SIDES)
        yield f"  {label:<22}{''.join(cells)}"
    yield from _histogram_lines(stats["length_histogram"])


def _location(pair: Mapping[str, Any]) -> str:
    return f"line {pair['line']:,} of {short_name(pair['corpus'])}"


def _example_lines(pair: Mapping[str, Any], location: str) -> Iterator[str]:
    indent = " " * (len(location) - len(location.lstrip()) + 2)
    yield location
    yield f"{indent}{pair['source']!r}"
    yield f"{indent}{pair['target']!r}"


def _part_lines(parts: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not parts:
        return
    yield ""
    yield (
        f"  {'weight':>8}{'pairs read':>14}{'kept':>14}{'source tokens':>16}"
        f"{'target tokens':>16}  part"
    )
    for part in parts[:_MAX_PARTS]:
        counts, tokens = part["counts"], part["tokens"]
        yield (
            f"  {part['weight']:>8g}{counts['read']:>14,}{counts['kept']:>14,}"
            f"{tokens['source']:>16,}{tokens['target']:>16,}  "
            f"{short_name(part['spec'])}"
        )
    if len(parts) > _MAX_PARTS:
        yield f"  and {len(parts) - _MAX_PARTS:,} more, which data.json lists"


def _histogram_lines(bins: dict[str, Any]) -> Iterator[str]:
    width = bins["width"]
    most = max(1, *(count for side in SIDES for count in bins[side]))
    yield f"  {'tokens a sentence':<20}{'source':<{_MAX_BAR_WIDTH + 14}}target"
    for number, counts in enumerate(zip(*(bins[side] for side in SIDES), strict=True)):
        span = f"{number * width + 1}-{(number + 1) * width}"
        cells = [
            f"{count:>11,} {'█' * math.ceil(_MAX_BAR_WIDTH * count / most)}"
            for count in counts
        ]
        yield f"  {span:>10}{cells[0]:<{_MAX_BAR_WIDTH + 13}} {cells[1]}".rstrip()


def _leak_lines(leaks: dict[str, dict[str, Any]]) -> Iterator[str]:
    if not leaks:
        yield "No held-out text was checked against the training text."
        return
    names = ", ".join(short_name(spec) for spec in leaks)
    yield f"Checked against the training text: {names}"
    if any(found[side] for found in leaks.values() for side in SIDES):
        yield from leak_counts(leaks)
    else:
        yield "None of its lines is in the training text."
    yield from [*leak_warnings(leaks), *copy_warnings(leaks)]
    for found in leaks.values():
        for pair in found["examples"]:
            location = f"  {_location(pair)}, training {_location(pair['train'])}:"
            yield from _example_lines(pair, location)
