"""Measures what a position of a beam search costs under each constraint.

    python benchmarks/constraints.py
    python benchmarks/constraints.py --size=base --beams=4,12,21 --json

A model with random parameters searches a fixed number of positions, without stopping
at the end of sentences: a position is one step of the model, the choice of
continuations and the state of the constraint. The constraints are `off`, `terms` (three
of two tokens for each sentence) and `tree` (one balanced tree over half as many words
as positions). They take turns, every other round in the opposite order; figures are
medians of the rounds, and the ratio is that of the medians, to `off`. Encoding and
compilation are left out; `compile_seconds` is of the latter.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from step_figures import machine, versions

from t2t_jax.config import Config, parse
from t2t_jax.decoding.search.beam_search import beam_step, init_state
from t2t_jax.decoding.search.constraint import UNCONSTRAINED, Constraint
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.search.term_constraint import TermConstraint, term_rows
from t2t_jax.decoding.search.tree_constraint import tree_constraint
from t2t_jax.model.architectures import make_module, make_step_model
from t2t_jax.types import PyTree

SIZES: dict[str, dict[str, Any]] = {
    "small": {"num_layers": 3, "d_model": 256, "d_ff": 1_024, "num_heads": 4},
    "base": {"num_layers": 6, "d_model": 512, "d_ff": 2_048, "num_heads": 8},
}
LABELS, TAGS, TERMS, TERM_TOKENS = 26, 45, 3, 2
FIRST_TOKEN = 4  # after pad, bos, eos and unk


def configuration(size: str, vocabulary: int) -> Config:
    """Returns the configuration of a size, whose heads have d_model / h each."""
    model = SIZES[size]
    depth = model["d_model"] // model["num_heads"]
    return parse(
        {
            "model": {**model, "d_k": depth, "d_v": depth},
            "vocabulary": {"size": vocabulary},
        }
    )


def constraints(
    vocabulary: int, *, rows: int, words: int
) -> dict[str, tuple[Constraint, PyTree]]:
    """Makes each constraint of a vocabulary, and its arrays of so many sentences."""
    joins_V = np.zeros(vocabulary, bool)
    rng = np.random.default_rng(0)
    shape = (rows, TERMS, TERM_TOKENS)
    terms = rng.integers(FIRST_TOKEN, vocabulary, shape).tolist()
    symbols = [f"{bracket}L{n}" for bracket in "()" for n in range(LABELS)]
    symbols += [f"T{number}" for number in range(TAGS)]
    pieces = [*"0123", *symbols]
    pieces += [f"<unused_{number}>" for number in range(len(pieces), vocabulary)]
    return {
        "off": (UNCONSTRAINED, None),
        "terms": (TermConstraint(joins_V=joins_V, goes_on_V=joins_V), term_rows(terms)),
        "tree": (tree_constraint(pieces), np.full(rows, words, np.int32)),
    }


def compiled_search(
    model: Any,
    memory: PyTree,
    constraint: Constraint,
    constraint_rows: PyTree,
    *,
    rows: int,
    beams: int,
    positions: int,
) -> tuple[Callable[[], jax.Array], float]:
    """Compiles a search of a fixed number of positions: (call, seconds)."""
    rules: dict[str, Any] = {
        "search_params": BeamParams(beam_size=beams),
        "constraint": constraint,
    }

    def search(model: Any, memory: PyTree, given: PyTree) -> jax.Array:
        state = init_state(
            model,
            memory,
            limits_B=jnp.full(rows, positions + 1),
            max_length=positions + 1,
            cache_length=positions + 1,
            constraint_rows=given,
            **rules,
        )
        step = partial(beam_step, model, memory=memory, **rules)
        state = jax.lax.fori_loop(0, positions, lambda _, old: step(old), state)
        return state.living.log_probabilities_BxW

    began = time.perf_counter()
    program = jax.jit(search).lower(model, memory, constraint_rows).compile()
    seconds = time.perf_counter() - began
    return partial(program, model, memory, constraint_rows), seconds


def measure(
    config: Config, *, rows: int, beams: int, positions: int, rounds: int
) -> dict[str, Any]:
    """Times the constraints with one width of the beam, in turns."""
    source_BxS = np.full((rows, positions // 2), FIRST_TOKEN, np.int32)
    module = make_module(config.network, platform=jax.devices()[0].platform)
    variables = module.init(jax.random.key(0), source_BxS[:1], source_BxS[:1])
    model = make_step_model(module, variables["params"])
    memory = jax.jit(lambda model, source: model.encode(source))(model, source_BxS)
    built = constraints(config.vocabulary.size, rows=rows, words=positions // 2)
    searches = {
        name: compiled_search(
            model, memory, *each, rows=rows, beams=beams, positions=positions
        )
        for name, each in built.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    for call, _ in searches.values():
        jax.block_until_ready(call())  # The first call of a program is slower.
    for number in range(rounds):
        names = list(searches)
        for name in names[::-1] if number % 2 else names:
            began = time.perf_counter()
            jax.block_until_ready(searches[name][0]())
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "beams": beams,
        "constraints": {
            name: {
                "ms_per_position": 1e3 * median / positions,
                "best_ms_per_position": 1e3 * min(seconds[name]) / positions,
                "ratio_to_off": median / medians["off"],
                "compile_seconds": searches[name][1],
                "rounds_ms": [1e3 * each for each in seconds[name]],
            }
            for name, median in medians.items()
        },
    }


def show(report: dict[str, Any]) -> None:
    """Prints the report as a table."""
    print(f"{report['device']}, load {report['machine']['load']}; {report['size']}")
    print("beams  constraint  ms a position     best   ratio  compile s")
    for one in report["runs"]:
        for name, figures in one["constraints"].items():
            print(
                f"{one['beams']:5}  {name:10}{figures['ms_per_position']:15.2f}"
                f"{figures['best_ms_per_position']:9.2f}{figures['ratio_to_off']:8.2f}"
                f"{figures['compile_seconds']:11.1f}"
            )


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--vocabulary", default=8_000, type=int)
    parser.add_argument("--beams", default="4,12", help="widths, with commas")
    parser.add_argument("--rows", default=16, type=int, help="sentences of a batch")
    parser.add_argument("--positions", default=32, type=int)
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    least = FIRST_TOKEN + 2 * LABELS + TAGS
    if options.vocabulary < least:
        parser.error(f"--vocabulary must be at least {least}, the symbols of trees")
    report: dict[str, Any] = {
        "machine": machine(),
        "device": jax.devices()[0].device_kind,
        "versions": versions(["jax", "jaxlib", "flax", "numpy"]),
        **{name: getattr(options, name) for name in ("size", "vocabulary", "rows")},
        "positions": options.positions,
    }
    config = configuration(options.size, options.vocabulary)
    report["runs"] = [
        measure(
            config,
            rows=options.rows,
            beams=int(beams),
            positions=options.positions,
            rounds=options.rounds,
        )
        for beams in options.beams.split(",")
    ]
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
