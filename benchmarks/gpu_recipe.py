"""Multi30k's whole recipe through the command line: train, average, evaluate.

    python benchmarks/gpu_recipe.py --row=tokenized --workdir=RUN --data=DIR

Interrupted, the same command goes on. Prints one JSON object; what the program logs
goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from t2t_jax.data.corpora.open import open_corpus

_TINY = {
    "data.train": "phrasebook:train:200",
    "data.dev": "phrasebook:dev:5",
    "data.tokens_per_batch": 256,
    "data.row_length": 64,
    "data.max_length": 64,
    "vocabulary.size": 150,
    "model.num_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.d_k": 8,
    "model.d_v": 8,
    "steps": 2,
    "evaluation.every_steps": 0,
    "checkpoint.every_steps": 1,
    "decoding.beam_size": 2,
    "decoding.max_extra_tokens": 5,
}


def run(*argv: str, environment: dict[str, str]) -> str:
    """Runs the program, and returns what it prints on stdout.

    Raises:
      SystemExit: it failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "t2t_jax.main", *argv],
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}.")
    return done.stdout.decode()


def config_of(options: argparse.Namespace) -> list[str]:
    """Returns the flags of the configuration."""
    cache = f"--config.data.cache_dir={options.workdir.parent / 'cache'}"
    if not options.rehearse:
        return [f"--config=multi30k_en_de:{options.row}", cache]
    simcut = {"training.simcut": 3.0} if "simcut" in options.row else {}
    values = {**_TINY, **simcut}
    return [
        "--config=phrasebook",
        cache,
        *(f"--config.{key}={value}" for key, value in values.items()),
    ]


def test_set(options: argparse.Namespace) -> list[str]:
    """Returns the flags of what is scored, and how."""
    if options.rehearse:
        pairs = list(open_corpus("phrasebook:dev:5"))
        paths = [options.workdir.parent / f"test.{side}" for side in ("en", "de")]
        for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [f"--source={paths[0]}", f"--reference={paths[1]}"]
    data = Path(options.data)
    if options.row.startswith("tokenized"):
        folder = data / "multi30k_bpe"
        return [
            "--protocol=tokenized",
            "--lowercase",
            f"--source={folder / 'test.2016.en.gz'}",
            f"--reference={folder / 'test_2016_flickr.lc.norm.tok.de.gz'}",
        ]
    stem = data / "multi30k" / "test_2016_flickr"
    return [f"--source={stem}.en.gz", f"--reference={stem}.de.gz"]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Trains, averages and evaluates; what is there already is kept."""
    environment = {**os.environ}
    if options.data:
        environment["T2T_JAX_TEST_DATA"] = options.data
    workdir, average = (
        options.workdir,
        options.workdir.with_name(options.workdir.name + "-average"),
    )
    workdir.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    run(*config_of(options), f"--workdir={workdir}", environment=environment)
    trained = time.perf_counter() - began
    if not (average / "model.json").exists():
        run(
            *("--mode=average", f"--workdir={workdir}", f"--to={average}"),
            f"--last={2 if options.rehearse else 10}",
            environment=environment,
        )
    scores = json.loads(
        run(
            *("--mode=evaluate", f"--workdir={average}", *test_set(options)),
            environment=environment,
        )
    )
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    final = [r for r in map(json.loads, lines) if r["kind"] == "final"][-1]
    return {
        "row": options.row,
        "steps": final["step"],
        "training_minutes": final["minutes"],
        "process_seconds": trained,
        "scores": scores,
    }


def main() -> None:
    """Runs the recipe."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--row", required=True, help="of configs/multi30k_en_de.py")
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--data", default="", help="with multi30k and multi30k_bpe")
    parser.add_argument("--rehearse", action="store_true", help="a tiny model")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
