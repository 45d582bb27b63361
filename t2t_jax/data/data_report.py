"""What the text of a run is: for programs `data.json`, for people a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from t2t_jax.data.config import DataConfig
from t2t_jax.data.filters import REASONS
from t2t_jax.data.leaks import leak_warning
from t2t_jax.data.tally import SIDES
from t2t_jax.data.token_cache import TokenCache
from t2t_jax.data.vocabularies import Vocabularies

_BINS = 16
_WIDEST_BAR = 24

_REASONS = {
    "empty": "with an empty side",
    "too_long": "longer than data.max_length",
    "ratio": "unlike in length, by data.max_length_ratio",
    "copies": "the same text on both sides, by data.drop_copies",
    "duplicates": "there before, by data.drop_duplicates",
}


def describe_data(
    vocabularies: Vocabularies,
    *,
    config: DataConfig,
    train: TokenCache,
    dev: TokenCache,
    leaks: dict[str, Any],
) -> dict[str, Any]:
    """Tells what a run reads, as its `data.json` records it.

    Args:
      vocabularies: what the caches were encoded with.
      config: how batches are cut.
      train: the training pairs.
      dev: the development pairs.
      leaks: what `find_leaks` has found of the latter in the former.

    Returns:
      Of the vocabulary, or of each: size and fingerprint. Of each corpus: spec,
      fingerprint, counts and examples by reason, and for both sides tokens, mean
      length, a histogram of lengths (eos included in all of them), and the share of
      tokens that is unknown; the same of each of its parts, if it has several. Of
      training: how many batches an epoch has at least. And the leaks.
    """
    sides = vocabularies._asdict()
    told: dict[str, Any] = {
        f"{side}_vocabulary": {
            "size": vocabulary.size,
            "fingerprint": vocabulary.fingerprint,
        }
        for side, vocabulary in sides.items()
    }
    if vocabularies.shared:
        told = {"vocabulary": told["target_vocabulary"]}
    for name, cache in (("train", train), ("dev", dev)):
        told[name] = {
            "spec": cache.meta["spec"],
            "fingerprint": cache.meta["corpus"],
            **_figures(cache.meta),
        }
        if len(cache.weights) > 1:
            told[name]["parts"] = [
                {"spec": part["spec"], "weight": weight, **_figures(part)}
                for part, weight in zip(cache.meta["parts"], cache.weights, strict=True)
            ]
    least = least_batches(train, config)
    told["train"]["batches_per_epoch_at_least"] = least
    return {**told, "leaks": leaks}


def least_batches(cache: TokenCache, config: DataConfig) -> int:
    """Returns how many batches an epoch would have if no slot stayed empty."""
    tokens = [
        sum(
            weight * _tokens(part["lengths"][side])
            for part, weight in zip(cache.meta["parts"], cache.weights, strict=True)
        )
        for side in SIDES
    ]
    return math.ceil(max(tokens) / config.tokens_per_batch)


def _tokens(lengths: list[int]) -> int:
    return sum(length * count for length, count in enumerate(lengths))


def _figures(figures: dict[str, Any]) -> dict[str, Any]:
    """Sums up the figures of a corpus, or of a part, as its cache keeps them."""
    kept = max(figures["counts"]["kept"], 1)
    tokens = {side: _tokens(figures["lengths"][side]) for side in SIDES}
    return {
        "counts": figures["counts"],
        "tokens": tokens,
        "mean_length": {side: round(tokens[side] / kept, 2) for side in SIDES},
        "unknown_rate": {
            side: figures["unknown"][side] / max(tokens[side], 1) for side in SIDES
        },
        "length_histogram": histogram(figures["lengths"]),
        "examples": figures["examples"],
    }


def histogram(lengths: dict[str, list[int]]) -> dict[str, Any]:
    """Gathers counts of lengths in at most 16 bins of one width.

    Args:
      lengths: of each side, how many sentences have 0, 1, 2 … tokens.

    Returns:
      `width`, and of each side the counts: the first is of lengths 1 to `width`.

    Example:
      >>> histogram({"source": [0, 5, 7], "target": [0, 0, 3, 9] + 16 * [0] + [1]})
      {'width': 2, 'source': [12, 0, 0, 0, 0, 0, 0, 0, 0, 0],
       'target': [3, 9, 0, 0, 0, 0, 0, 0, 0, 1]}
    """
    longest = max(1, *(len(counts) - 1 for counts in lengths.values()))
    width = math.ceil(longest / _BINS)
    starts = range(1, longest + 1, width)
    return {
        "width": width,
        **{
            side: [sum(counts[start : start + width]) for start in starts]
            for side, counts in lengths.items()
        },
    }


def summary(cache: TokenCache) -> str:
    """Says in a line what was read of a corpus, and what was dropped of it and why."""
    counts = cache.counts
    told = (
        f"{cache.meta['spec']}: {counts['read']:,} pairs read, {counts['kept']:,} "
        f"kept, {counts['empty']:,} empty, {counts['too_long']:,} longer than "
        f"{cache.meta['max_length']} subwords"
    )
    others = {"ratio": "unlike in length", "copies": "copies", "duplicates": "again"}
    for reason, words in others.items():
        if counts[reason]:
            told += f", {counts[reason]:,} {words}"
    return told


def report_text(told: dict[str, Any]) -> str:
    """Words what `describe_data` has found, as a page for people."""
    lines = ["The text of this run", ""]
    for name in ("vocabulary", "source_vocabulary", "target_vocabulary"):
        if name in told:
            size, print_ = told[name]["size"], told[name]["fingerprint"]
            lines.append(f"{name.replace('_', ' ')}: {size:,} subwords, {print_[:16]}")
    for name, title in (("train", "Training"), ("dev", "Development")):
        corpus = told[name]
        lines += [
            "",
            f"{title}: {corpus['spec']}",
            f"  SHA-256 {corpus['fingerprint']}",
        ]
        if "batches_per_epoch_at_least" in corpus:
            batches = corpus["batches_per_epoch_at_least"]
            lines.append(f"  an epoch has at least {batches:,} batches")
        parts = corpus.get("parts", ())
        lines += _corpus_lines(corpus, with_examples=not parts)
        for part in parts:
            lines += ["", f"  Part: {part['spec']}, weight {part['weight']:g}"]
            lines += _corpus_lines(part, with_examples=True)
    lines += ["", *_leak_lines(told["leaks"])]
    return "\n".join(lines) + "\n"


def _corpus_lines(figures: dict[str, Any], *, with_examples: bool) -> Iterator[str]:
    counts = figures["counts"]
    yield f"  {counts['read']:>13,} pairs read"
    yield f"  {counts['kept']:>13,} kept"
    for reason in REASONS:
        if counts[reason]:
            yield f"  {counts[reason]:>13,} {_REASONS[reason]}"
            if with_examples:
                yield from _example_lines(figures["examples"][reason])
    yield f"  {'':22}{'source':>16}{'target':>16}"
    rows = (
        ("tokens", "tokens", "{:,}"),
        ("mean length", "mean_length", "{:.2f}"),
        ("unknown tokens, %", "unknown_rate", "{:.4%}"),
    )
    for label, key, form in rows:
        cells = (f"{form.format(figures[key][side]).rstrip('%'):>16}" for side in SIDES)
        yield f"  {label:<22}{''.join(cells)}"
    yield from _histogram_lines(figures["length_histogram"])


def _example_lines(pairs: list[dict[str, Any]]) -> Iterator[str]:
    for pair in pairs:
        place = f"{'':18}line {pair['line']:,}: "
        yield f"{place}{pair['source']!r}"
        yield f"{'':{len(place)}}{pair['target']!r}"


def _histogram_lines(bins: dict[str, Any]) -> Iterator[str]:
    width = bins["width"]
    most = max(1, *(count for side in SIDES for count in bins[side]))
    yield f"  {'tokens a sentence':<20}{'source':<{_WIDEST_BAR + 14}}target"
    for number, counts in enumerate(zip(*(bins[side] for side in SIDES), strict=True)):
        span = f"{number * width + 1}-{(number + 1) * width}"
        cells = [
            f"{count:>11,} {'█' * math.ceil(_WIDEST_BAR * count / most)}"
            for count in counts
        ]
        yield f"  {span:>10}{cells[0]:<{_WIDEST_BAR + 13}} {cells[1]}".rstrip()


def _leak_lines(leaks: dict[str, Any]) -> Iterator[str]:
    warning = leak_warning(leaks)
    yield warning or "No development sentence is in the training text."
    for pair in leaks["examples"]:
        yield f"  line {pair['line']:,}, training line {pair['train_line']:,}:"
        yield f"    {pair['source']!r}"
        yield f"    {pair['target']!r}"
