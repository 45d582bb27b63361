"""Measures decoding: ours and that of peers, with the same weights, in turns.

    python benchmarks/decode.py --size=small
    python benchmarks/decode.py --size=base --peer=ctranslate2 --batches=1,32 --json
    python benchmarks/decode.py --size=small --peer=marian
    python benchmarks/decode.py --size=small --peer=ctranslate2,ours_bfloat16
    python benchmarks/decode.py --device=gpu --size=base --peer=ctranslate2,hf_marian
    python benchmarks/decode.py --workdir=RUN --source=test.en --reference=test.de

Without `--workdir` weights are random, sources are made up, and every output is forced
to have as many tokens as its source, so that all search through as many steps. A batch
is what waits at once; each contestant computes as many of it at once as is fastest for
it, which it finds out before the first round. Ours is the search that the translator
uses.

With `--workdir` a trained model translates a file, from lines to lines, each contestant
by its own rules of when to stop.

Each contestant has a process of its own and computes alone: the rounds go in turns,
every other one in the opposite order. `ours`, `peer` and `ratio` are of the largest
batch, or of the file, at the median of the rounds; `ratio` is ours to the first peer's.
What the first calls took is apart. Peak memory is of the whole process on a CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from contest import Contestant, ContestError, environment_of, take_turns
from decode_figures import (
    at_headline,
    batch_figures,
    compared,
    latency_figures,
    short_lines,
    text_figures,
)
from decode_options import parse_arguments
from decode_report import show
from decode_work import DecodeWork
from step_figures import machine, steps_for
from step_options import SIZES

from t2t_jax.data.files.lines import read_lines
from t2t_jax.errors import UserError
from t2t_jax.run.workdir import Workdir

OURS = "ours"
OWN_BFLOAT16 = "ours_bfloat16"
MODULES = {
    OURS: "decode_ours:Own",
    "hf_marian": "decode_marian:Marian",
    "ctranslate2": "decode_ctranslate2:CTranslate2",
    "marian": "decode_pymarian:Pymarian",
    OWN_BFLOAT16: "decode_ours:Own",
}

Figures = dict[str, dict[str, Any]]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Converts the weights, starts the contestants, and lets them take turns."""
    work = _work(options)
    report: dict[str, Any] = {
        "size": options.workdir or options.size,
        "device": options.device,
        "beam_size": options.beam_size,
        "length_penalty": options.length_penalty,
        "threads": options.threads if options.device == "cpu" else None,
        "hardware": machine(),
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _write_weights(work, options.peer, folder)
        contestants = {
            name: stack.enter_context(_start(name, work, folder))
            for name in (OURS, *options.peer)
        }
        if options.workdir:
            report["lines"] = len(work.lines)
            figures = _race_on_text(contestants, work, options)
        else:
            report["length"] = options.length
            figures = _race(contestants, options)
        for name, contestant in contestants.items():
            figures[name].update(contestant.ask("facts"))
            figures[name]["peak_memory_mb"] = contestant.ask("peak_megabytes")
    return {**report, **compared(figures.pop(OURS), figures)}


def _work(options: argparse.Namespace) -> DecodeWork:
    config: Any = SIZES[options.size]
    if options.workdir:
        config = Workdir(Path(options.workdir)).read_config().network
    return DecodeWork(
        config=dataclasses.replace(config, compute_dtype=options.compute_dtype),
        device=options.device,
        rows=max(options.batches),
        length=options.length,
        threads=options.threads,
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        cuts=options.cuts,
        workdir=options.workdir or "",
        lines=list(read_lines(options.source)) if options.source else (),
    )


def _write_weights(work: DecodeWork, peers: tuple[str, ...], folder: Path) -> None:
    formats = {peer.removesuffix("_int8") for peer in peers if peer != OWN_BFLOAT16}
    if not formats:
        return
    with Contestant(
        "the converter",
        made_by="decode_weights:Converter",
        work=dataclasses.replace(work, device="cpu"),
        environment=environment_of(work, ours=False),
    ) as converter:
        for name in formats:
            converter.ask(name, str(folder / name))


def _start(name: str, work: DecodeWork, folder: Path) -> Contestant:
    base = name.removesuffix("_int8")
    is_ours = name in (OURS, OWN_BFLOAT16)
    return Contestant(
        name,
        made_by=MODULES[base] + ("Free" if work.workdir else "Forced"),
        work=dataclasses.replace(work, network=name, weights=str(folder / base)),
        environment=environment_of(work, ours=is_ours),
    )


def _race(contestants: dict[str, Contestant], options: argparse.Namespace) -> Figures:
    """Lets all search through as many steps, one size of batches after the other."""
    figures: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in contestants}
    for rows in options.batches:
        warm = {name: one.ask("prepare", rows) for name, one in contestants.items()}
        questions = {
            name: ("seconds", rows, steps_for(options.seconds, told["call_seconds"]))
            for name, told in warm.items()
        }
        answers = take_turns(contestants, questions, rounds=options.rounds)
        for name, rounds in answers.items():
            found = batch_figures(rounds, rows=rows, length=options.length)
            figures[name][rows] = {**warm[name], **found}
    return {name: at_headline(by_batch) for name, by_batch in figures.items()}


def _race_on_text(
    contestants: dict[str, Contestant], work: DecodeWork, options: argparse.Namespace
) -> Figures:
    """Lets all translate the whole file in every round."""
    references = list(read_lines(options.reference)) if options.reference else []
    warm = {name: one.ask("prepare") for name, one in contestants.items()}
    questions = dict.fromkeys(contestants, ("translate",))
    answers = take_turns(contestants, questions, rounds=options.rounds)
    figures = {}
    for name, contestant in contestants.items():
        found = text_figures(answers[name], contestant.ask("texts"), references)
        figures[name] = {**warm[name], **found}
        if options.first_line:
            seconds = contestant.ask("first_line", short_lines(work.lines))
            figures[name]["first_line"] = latency_figures(seconds)
    return figures


def main() -> None:
    """Measures what the command line asks for."""
    options = parse_arguments(description=(__doc__ or "").split("\n")[0])
    try:
        report = measure(options)
    except (ContestError, UserError) as error:
        raise SystemExit(str(error)) from error
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
