"""Measures what the paper's Table 1 claims: the Transformer beside a recurrent model.

    python benchmarks/rnn_baseline.py
    python benchmarks/rnn_baseline.py --lengths= --bleu_minutes=2 --json

The first line trains both on made-up tokens, with dropout and label smoothing, and
prints target tokens a second against the length of sentences, at a constant number of
tokens a batch. Table 1: a recurrent layer takes n operations one after the other, self-
attention one; so at few long sentences a batch the recurrent model has little to do at
once. The two models take turns, each round is a handful of steps, and the figures are
medians; compilation is timed apart.

The second trains both experiments through the command line for so many minutes each, as
the program itself counts minutes of training, and scores them on text they never saw.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import runpy
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
from equal_time import ROOT, TEST_CORPUS, compare_bleu
from jax.sharding import Mesh
from made_up_batches import made_up_batch

from t2t_jax.config import Config, parse
from t2t_jax.model.architectures import make_module
from t2t_jax.sharding.mesh import make_mesh, round_up_rows
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state, state_shardings
from t2t_jax.training.step import lower_step, make_train_step

MODELS = ("transformer", "rnn")


class Trainee:
    """One model with its compiled training step and a batch to repeat it on.

    Args:
      config: of its experiment.
      rows: B of the batch.
      length: L of the batch; each row is one sentence.
      mesh: the devices.
    """

    def __init__(self, config: Config, *, rows: int, length: int, mesh: Mesh):
        network = dataclasses.replace(config.network, dropout=0.1)
        module = make_module(network)
        optimizer = make_optimizer(config.optimizer, d_model=network.d_model)
        init = partial(init_state, module, optimizer)
        self.key = jax.random.key(0)
        self.state = jax.jit(init)(self.key)
        self.parameters = sum(x.size for x in jax.tree.leaves(self.state.params))
        began = time.perf_counter()
        shapes = jax.eval_shape(init, self.key)
        step = make_train_step(
            config.training,
            module=module,
            optimizer=optimizer,
            mesh=mesh,
            shardings=state_shardings(shapes, mesh),
        )
        lowered = lower_step(step, shapes, batch_shape=(rows, length))
        self.compiled = lowered.compile()
        self.compile_seconds = time.perf_counter() - began
        vocab_size = config.vocabulary.size
        self.batch = make_global_batch(made_up_batch(rows, length, vocab_size), mesh)

    def seconds(self, steps: int) -> float:
        """Times so many steps."""
        began = time.perf_counter()
        for _ in range(steps):
            self.state, output = self.compiled(self.state, self.batch, self.key)
        jax.block_until_ready((self.state, output))
        return time.perf_counter() - began


def measure_length(
    configs: dict[str, Config], length: int, *, tokens: int, rounds: int, steps: int
) -> dict[str, Any]:
    """Trains both models at one length, in turns."""
    mesh = make_mesh()
    rows = round_up_rows(mesh, max(1, tokens // length))
    trainees = {
        name: Trainee(config, rows=rows, length=length, mesh=mesh)
        for name, config in configs.items()
    }
    rates: dict[str, list[float]] = {name: [] for name in trainees}
    for trainee in trainees.values():
        trainee.seconds(1)  # The first step of a program is slower than the others.
    for _ in range(rounds):
        for name, trainee in trainees.items():
            rates[name].append(steps * rows * length / trainee.seconds(steps))
    return {
        "length": length,
        "rows": rows,
        "models": {
            name: {
                "parameters": trainee.parameters,
                "compile_seconds": round(trainee.compile_seconds, 1),
                "target_tokens_per_second": round(statistics.median(rates[name])),
                "slowest": round(min(rates[name])),
                "fastest": round(max(rates[name])),
            }
            for name, trainee in trainees.items()
        },
    }


def show(report: dict[str, Any]) -> None:
    """Prints the report for people."""
    print(f"{report['device']}; {report['tokens_per_batch']:,} target tokens a batch")
    for line in report["speed"]:
        if line is report["speed"][0]:
            for name, figures in line["models"].items():
                print(f"  {name}: {figures['parameters']:,} parameters")
            print("length  target tokens/s: transformer      rnn   ratio  compile s")
        ours, rnn = (line["models"][name] for name in MODELS)
        rates = [x["target_tokens_per_second"] for x in (ours, rnn)]
        print(
            f"{line['length']:6}{rates[0]:29,}{rates[1]:9,}{rates[0] / rates[1]:8.2f}"
            f"{ours['compile_seconds']:7}/{rnn['compile_seconds']}"
        )
    for name, scores in report.get("bleu", {}).items():
        print(
            f"{name}: BLEU {scores['bleu']:.1f} on {TEST_CORPUS} after "
            f"{report['bleu_minutes']:g} minutes of training, at step "
            f"{scores['checkpoint_step']:,} ({scores['bleu_signature']})"
        )


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--transformer", default="configs/phrasebook.py", type=Path)
    parser.add_argument("--rnn", default="configs/rnn_baseline.py", type=Path)
    parser.add_argument("--lengths", default="16,32,64,128", help="subwords")
    parser.add_argument("--tokens", default=4_096, type=int, help="a batch, a side")
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--steps", default=2, type=int, help="optimizer steps a round")
    parser.add_argument("--bleu_minutes", default=0.0, type=float, help="0: no BLEU")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = {name: (ROOT / getattr(options, name)).resolve() for name in MODELS}
    configs = {
        name: parse(runpy.run_path(str(file))["get_config"]().to_dict())
        for name, file in files.items()
    }
    report: dict[str, Any] = {"tokens_per_batch": options.tokens}
    # First, while no device is held here: the two trainings need it for themselves.
    if options.bleu_minutes:
        report["bleu_minutes"] = options.bleu_minutes
        report["bleu"] = compare_bleu(files, options.bleu_minutes)
    measure = partial(
        measure_length,
        configs,
        tokens=options.tokens,
        rounds=options.rounds,
        steps=options.steps,
    )
    lengths = [int(length) for length in options.lengths.split(",") if length]
    report["speed"] = [measure(length) for length in lengths]
    report["device"] = f"{jax.device_count()} x {jax.devices()[0].device_kind}"
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
