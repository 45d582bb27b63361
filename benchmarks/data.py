"""Measures the way from text to batches: preparing, planning, assembling.

    python benchmarks/data.py
    python benchmarks/data.py --source=text:train.en,train.de --json
    python benchmarks/data.py --lengths_only --pairs=36000000

The first line makes up a corpus with lengths like WMT14's, the second measures a real
one; both learn a vocabulary first, which is not measured. The third draws lengths and
plans epochs of them, without any text.

`prepare_pairs_per_second`: text to token cache, with as many processes as there are
cores. `plan_seconds`: a whole epoch, of which the first batch is there after
`first_batch_seconds`. `assemble_tokens_per_second`: real tokens of both sides, on one
core, median of rounds. `real_token_fraction`: real tokens among all the slots of an
epoch. `peak_memory_mb`: of all processes
together, from the text to the last batch. Figures of packed rows of three lengths are
under `packed_row_lengths=3`, those of a row for each pair under `length_buckets`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from made_up_text import MAX_LENGTH, SPREAD, draw_lengths, learn_vocabulary, write_text
from memory import peak_memory

from t2t_jax.data.batching.collate import collate
from t2t_jax.data.batching.planner import PlannedBatch, plan_epoch
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache.token_cache import TokenCache, build_or_open
from t2t_jax.data.token_cache.worker_pool import num_workers
from t2t_jax.data.vocabulary.pair import VocabularyPair

ROUND_SECONDS = 1.0

KINDS: dict[str, dict[str, Any]] = {
    "packed": {},
    "packed_row_lengths=3": {"packed_row_lengths": 3},
    "length_buckets": {"layout": "length_buckets"},
}
"""The ways to make batches that are measured, and the settings of each."""


def measure(source: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures everything on one corpus; of made-up text if none is named."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own: what learning leaves behind is not to be measured.
        learning = multiprocessing.get_context("spawn").Process(
            target=make_ready, args=(source, options, folder)
        )
        learning.start()
        learning.join()
        if learning.exitcode:
            raise SystemExit(f"{source or 'made-up text'}: no vocabulary was learnt.")
        spec = (folder / "spec").read_text()
        with peak_memory() as most:
            config = DataConfig(
                max_length=options.row_length, workers=options.workers, cache_dir=name
            )
            learnt = VocabularyConfig(size=options.vocabulary_size)
            vocabularies = VocabularyPair.load(folder, config=learnt)
            began = time.perf_counter()
            cache = build_or_open(open_corpus(spec), vocabularies, config=config)
            seconds = time.perf_counter() - began
            figures = measure_layouts(cache.lengths, options, cache=cache)
        return {
            "corpus": source or f"made-up text, spread {options.spread}",
            "pairs": cache.num_pairs,
            "mean_length": round(float(np.mean(cache.lengths[1])), 2),
            "workers": num_workers(options.workers),
            "prepare_pairs_per_second": round(cache.counts["read"] / seconds),
            "peak_memory_mb": round(most[0]),
            **figures,
        }


def make_ready(source: str, options: argparse.Namespace, folder: Path) -> None:
    """Writes text, if there is none, and a vocabulary."""
    if not source:
        lengths = draw_lengths(options.pairs, spread=options.spread)
        source = write_text(folder, lengths)
    learn_vocabulary(source, options.vocabulary_size, folder)
    (folder / "spec").write_text(source)


def measure_lengths(options: argparse.Namespace) -> dict[str, Any]:
    """Measures plans alone."""
    lengths = draw_lengths(options.pairs, spread=options.spread)
    lengths = lengths[:, lengths.max(axis=0) <= options.row_length]
    with peak_memory() as most:
        figures = measure_layouts((lengths[0], lengths[1]), options)
    return {
        "corpus": f"made-up lengths, spread {options.spread}",
        "pairs": lengths.shape[1],
        "mean_length": round(float(lengths[1].mean()), 2),
        "peak_memory_mb": round(most[0]),
        **figures,
    }


def measure_layouts(
    lengths: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    options: argparse.Namespace,
    *,
    cache: TokenCache | None = None,
) -> dict[str, Any]:
    """Measures each kind of batches; of the default the figures are not nested."""
    found = {k: measure_layout(lengths, KINDS[k], options, cache=cache) for k in KINDS}
    return {**found.pop("packed"), **found}


def measure_layout(
    lengths: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    layout: dict[str, Any],
    options: argparse.Namespace,
    *,
    cache: TokenCache | None,
) -> dict[str, Any]:
    """Plans an epoch, and assembles the beginning of it if there is a cache."""
    config = DataConfig(
        **layout,
        tokens_per_batch=options.tokens,
        row_length=options.row_length,
        max_length=options.row_length,
    )
    keys: dict[str, Any] = {"config": config, "seed": 0, "epoch": 1}
    shapes: Counter[tuple[int, int]] = Counter()
    began = time.perf_counter()
    plan = plan_epoch(lengths, **keys)
    first = next(plan)
    first_seconds = time.perf_counter() - began
    shapes.update(planned.shape for planned in chain([first], plan))
    seconds = time.perf_counter() - began
    real = sum(int(side.sum(dtype=np.int64)) for side in lengths)
    figures = {
        "real_token_fraction": round(real / (2 * count_slots(shapes)), 4),
        "num_shapes": len(shapes),
        "plan_seconds": round(seconds, 3),
        "first_batch_seconds": round(first_seconds, 3),
    }
    if cache is not None:
        plan = plan_epoch(lengths, **keys)
        rate = assembling_rate(cache, list(islice(plan, 200)), rounds=options.rounds)
        figures["assemble_tokens_per_second"] = round(rate)
    return figures


def count_slots(shapes: Counter[tuple[int, int]]) -> int:
    """Returns the slots a side of so many batches of each (rows, length)."""
    return sum(batches * math.prod(shape) for shape, batches in shapes.items())


def assembling_rate(
    cache: TokenCache, batches: list[PlannedBatch], *, rounds: int
) -> float:
    """Returns real tokens of both sides a second, made in this thread."""
    rates = []
    for number in range(rounds + 1):
        tokens, passed, began = 0, 0.0, time.perf_counter()
        while passed < ROUND_SECONDS:
            for planned in batches:
                batch = collate(cache, planned)
                tokens += int(np.count_nonzero(batch.source_segments))
                tokens += int(np.count_nonzero(batch.target_segments))
            passed = time.perf_counter() - began
        if number:  # The first round reads the cache from the disk.
            rates.append(tokens / passed)
    return statistics.median(rates)


def show(report: dict[str, Any]) -> None:
    """Prints the report for people."""
    print(f"{report['corpus']}: {report['pairs']:,} pairs", end="")
    print(f" of {report['mean_length']} target tokens")
    if "prepare_pairs_per_second" in report:
        print(
            f"prepared: {report['prepare_pairs_per_second']:,} pairs/s "
            f"with {report['workers']} workers"
        )
    print(f"peak memory: {report['peak_memory_mb']:,} MB")
    print("layout           real  shapes  plan s  first batch s  assembled tokens/s")
    for kind in KINDS:
        figures = report.get(kind, report)
        rate = figures.get("assemble_tokens_per_second")
        print(
            f"{kind:14}{figures['real_token_fraction']:7.3f}"
            f"{figures['num_shapes']:8}{figures['plan_seconds']:8.2f}"
            f"{figures['first_batch_seconds']:15.2f}"
            f"{f'{rate:,}' if rate else '':>20}"
        )


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--source", default="", help="a corpus, such as text:a.en,a.de")
    parser.add_argument("--pairs", default=200_000, type=int, help="of made-up text")
    parser.add_argument("--spread", default=SPREAD, type=float, help="of log(length)")
    parser.add_argument("--lengths_only", action="store_true", help="plan, no text")
    parser.add_argument("--tokens", default=24_576, type=int, help="a batch, a side")
    parser.add_argument(
        "--row_length", default=MAX_LENGTH, type=int, help="and of a pair at most"
    )
    parser.add_argument("--vocabulary_size", default=3_000, type=int)
    parser.add_argument("--workers", default=0, type=int, help="0: one a core")
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lengths = options.lengths_only
    report = measure_lengths(options) if lengths else measure(options.source, options)
    report["versions"] = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "sentencepiece")},
    }
    if options.json:
        json.dump(report, sys.stdout)
        print()
    else:
        show(report)


if __name__ == "__main__":
    main()
