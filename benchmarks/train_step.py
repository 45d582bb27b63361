"""Measures a training step: ours and those of peers, on the same batches, in turns.

    python benchmarks/train_step.py --size=small
    python benchmarks/train_step.py --size=base --peer=hf_marian,torch --json
    python benchmarks/train_step.py --device=gpu --size=big --compile_peer
    python benchmarks/train_step.py --real=text:train.en,train.de --tokens=2048
    python benchmarks/train_step.py --peer=none --variant=training.loss_chunks=4
    python benchmarks/train_step.py --peer=hf_marian,hf_marian_bfloat16 \
      --variant=model.compute_dtype=bfloat16

The step is the program's own: dropout, label smoothing, Adam, the guard against what is
not finite. Peers do the same work: two in PyTorch, and Marian (of the extra `bench`).
What they would drop out beyond the paper is off, where it can be. Made-up tokens fill
every slot, so all are real. Each contestant has a process of its own, is warmed up, and
computes alone: the rounds go in turns, every other one in the opposite order.

With `--real` both train on text, input and batching included: ours with the program's
batches, a peer with batches of like length that hold as many slots. What is counted
there, too, is real target tokens.

`--variant` adds ours with some settings changed (KEY=VALUE,KEY=VALUE; a key in
capitals, such as XLA_FLAGS, is a variable of its process). It may stand several times.

`ratio`: our target tokens a second to those of the first peer, at the medians. On a CPU
that multiplies bfloat16, where ours does, PyTorch's peers run in both types, and
`ratio` is to the faster one.
`compile_seconds` is apart from everything else. TFLOP/s are those of the formula of
`t2t_jax.model.counting`, whoever computes. Peak memory is of the whole process on a
CPU, what compiling took included, and of the allocator on a GPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from contest import Contestant, ContestError, Work, environment_of, take_turns
from real_text import RealText
from step_figures import compare, machine, step_figures, steps_for, text_figures
from step_options import SIZES, parse_arguments
from step_report import show
from variants import changes, varied

from t2t_jax.data.config import DataConfig, VocabularyConfig

OURS = "ours"

_Contestants: TypeAlias = dict[str, Contestant]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Starts the contestants, lets them take turns, and makes figures of it."""
    asked = "size device vocabulary pairs length pairs_per_row".split()
    report: dict[str, Any] = {
        **{name: getattr(options, name) for name in asked},
        "threads": options.threads if options.device == "cpu" else None,
        "compiled_peers": options.compile_peer,
        "peak_tflops": options.peak_tflops or None,
        "hardware": machine(),
    }
    with ExitStack() as stack:
        work = Work(
            config=dataclasses.replace(
                SIZES[options.size], vocab_size=options.vocabulary
            ),
            device=options.device,
            rows=options.pairs,
            length=options.length,
            pairs_per_row=options.pairs_per_row,
            threads=options.threads,
            compiled=options.compile_peer,
        )
        if options.real:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            work = dataclasses.replace(work, text=_text(options, folder))
            pairs = work.text.prepare().num_pairs
            used = {n: getattr(options, n) for n in ("layout", "row_length", "tokens")}
            report["text"] = {"source": options.real, "pairs": pairs, **used}
        contestants = _start(work, options, stack)
        race = _race_on_text if options.real else _race
        figures = race(contestants, work, options)
        for name, contestant in contestants.items():
            figures[name].update(contestant.ask("facts"))
            figures[name]["peak_memory_mb"] = contestant.ask("peak_megabytes")
    peers = {name: figures.pop(name) for name in options.peer}
    compared = compare(figures.pop(OURS), peers)
    return {**report, **compared, "variants": figures}


def _start(work: Work, options: argparse.Namespace, stack: ExitStack) -> _Contestants:
    """Starts ours, its variants, and the peers."""
    kind = "Step" if work.text is None else "Loop"
    own = {OURS: work} | {one: varied(work, changes(one)) for one in options.variant}
    started = {}
    for name in (*own, *options.peer):
        ours = name in own
        theirs = "peer_marian:Peer" if name == "marian" else "peers_torch:Peer"
        its_work = own.get(name) or dataclasses.replace(work, network=name)
        contestant = Contestant(
            name,
            made_by=("own_step:Own" if ours else theirs) + kind,
            work=its_work,
            environment=environment_of(its_work, ours=ours),
        )
        started[name] = stack.enter_context(contestant)
    return started


def _race(
    contestants: _Contestants, work: Work, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Times steps on made-up tokens; the first step and the next ones are apart."""
    first, steps = {}, {}
    for name, contestant in contestants.items():
        first[name] = contestant.ask("seconds", 1)
        warm_up = 10 if work.device == "gpu" else 2
        one = contestant.ask("seconds", warm_up) / warm_up
        steps[name] = options.steps or steps_for(options.seconds, one)
    questions = {name: ("seconds", count) for name, count in steps.items()}
    seconds = take_turns(contestants, questions, rounds=options.rounds)
    return {
        name: {
            **step_figures(
                [taken / steps[name] for taken in rounds],
                work,
                peak_tflops=options.peak_tflops,
            ),
            "first_step_seconds": first[name],
            "steps_a_round": steps[name],
        }
        for name, rounds in seconds.items()
    }


def _race_on_text(
    contestants: _Contestants, work: Work, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Lets all train for so many seconds in every round."""
    del work
    for contestant in contestants.values():
        contestant.ask("train_for", min(5.0, options.seconds))
    questions = {name: ("train_for", options.seconds) for name in contestants}
    rounds = take_turns(contestants, questions, rounds=options.rounds)
    return {name: text_figures(found) for name, found in rounds.items()}


def _text(options: argparse.Namespace, folder: Path) -> RealText:
    return RealText(
        source=options.real,
        folder=folder,
        data=DataConfig(
            tokens_per_batch=options.tokens,
            row_length=options.row_length,
            max_length=options.row_length,
            layout=options.layout,
            cache_dir=str(folder),
        ),
        vocabulary=VocabularyConfig(size=options.vocabulary),
    )


def main() -> None:
    """Measures what the command line asks for."""
    options = parse_arguments(description=(__doc__ or "").split("\n")[0])
    try:
        report = measure(options)
    except (ContestError, ValueError) as error:
        raise SystemExit(str(error)) from error
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
