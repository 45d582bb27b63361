"""Trains experiments for the same time each, and scores what they have learned."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from t2t_jax.errors import StoppedError

ROOT = Path(__file__).resolve().parents[1]
TEST_CORPUS = "phrasebook:test:500"


def train_and_score(config: Path, *, minutes: float, folder: Path) -> dict[str, Any]:
    """Trains one experiment for so many minutes and scores it, by the command line.

    Args:
      config: its file.
      minutes: of training, as the program counts them.
      folder: where its run goes; `test.en` and `test.de` are there.

    Returns:
      What `--mode=evaluate` printed.
    """
    program = [sys.executable, "-m", "t2t_jax.main"]
    workdir = folder / config.stem
    # It goes on until the periodic checkpoint that is due after so many minutes.
    training = subprocess.Popen(
        [
            *program,
            f"--config={config}",
            f"--workdir={workdir}",
            "--config.steps=10000000",
            "--config.evaluation.every_steps=0",
            "--config.checkpoint.every_steps=0",
            f"--config.checkpoint.every_minutes={minutes}",
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    try:
        while not (saved := saved_steps(workdir)) and training.poll() is None:
            time.sleep(0.2)
    finally:
        if training.poll() is None:
            training.send_signal(signal.SIGTERM)
        code = training.wait()
    if not saved or code != StoppedError.exit_code:
        raise SystemExit(f"{config}: training ended with exit code {code}.")
    evaluation = subprocess.run(
        [
            *program,
            "--mode=evaluate",
            f"--workdir={workdir}",
            f"--checkpoint={saved[0]}",
            f"--source={folder / 'test.en'}",
            f"--reference={folder / 'test.de'}",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    scores: dict[str, Any] = json.loads(evaluation.stdout)
    return scores


def saved_steps(workdir: Path) -> list[int]:
    """Lists the checkpoints that are completely written, the first one first."""
    names = [path.name for path in (workdir / "checkpoints").glob("*")]
    return sorted(int(name) for name in names if name.isdecimal())


def compare_bleu(files: dict[str, Path], minutes: float) -> dict[str, Any]:
    """Trains and scores both experiments, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = [
            sys.executable,
            "-m",
            "t2t_jax.data.corpora.write_corpus",
            TEST_CORPUS,
        ]
        sides = [str(folder / "test.en"), str(folder / "test.de")]
        subprocess.run([*writer, *sides], cwd=ROOT, check=True)
        return {
            model: train_and_score(file, minutes=minutes, folder=folder)
            for model, file in files.items()
        }
