"""The smallest experiment that goes through the whole program."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from t2t_jax.devices import fault_injection
from tests.compiling import xla_flags
from tests.integration.fork_server import ForkServer

ROOT = Path(__file__).parents[2]

TINY = {
    "data.train": "phrasebook:train:300",
    "data.dev": "phrasebook:dev:11",
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
    "training.ema_decay": 0.0,
    "steps": 12,
    "evaluation.every_steps": 8,
    "evaluation.bleu_sentences": 3,
    "checkpoint.every_steps": 5,
    "logging.every_steps": 2,
    "decoding.beam_size": 2,
    "decoding.max_extra_tokens": 5,
    "decoding.max_source_length": 64,
}


def arguments(workdir: Path, **changed: object) -> list[str]:
    """Returns the command line of the tiny experiment, with some keys changed."""
    values = {**TINY, "data.cache_dir": str(workdir.parent / "cache")}
    values.update({key.replace("__", "."): value for key, value in changed.items()})
    keys = [f"--config.{key}={value}" for key, value in values.items()]
    return [f"--workdir={workdir}", *keys]


def text_of(folder: Path, name: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Writes pairs as two files; returns their spec."""
    files = [folder / f"{name}.{side}" for side in ("en", "de")]
    for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
    return f"text:{files[0]},{files[1]}"


def environment(devices: int = 1) -> dict[str, str]:
    """Returns an environment with so many simulated devices."""
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla_flags(devices)}
    return {**os.environ, **flags}


@functools.cache
def server() -> ForkServer:
    """Returns the server of this process, which begins when it is first asked for."""
    return ForkServer(environment())


def python(environ: dict[str, str], *, fresh: bool = False) -> str:
    """Returns what starts `-m t2t_jax.main` in an environment: by a fork, if it may.

    Args:
      fresh: in an interpreter of its own, which imports for itself.
    """
    forks = not fresh and server().serves(environ)
    return server().python if forks else sys.executable


def run(
    *argv: str,
    stdin: bytes = b"",
    devices: int = 1,
    timeout: float = 300,
    fault: str = "",
    fresh: bool = False,
    cwd: Path = ROOT,
    **more: str,
) -> subprocess.CompletedProcess[bytes]:
    """Runs the real command line; or a program in Python, of `-c` and its code.

    Args:
      fresh: in an interpreter of its own, as `python` says.
      more: variables of its environment.
    """
    environ = {**environment(devices), fault_injection.VARIABLE: fault, **more}
    program = () if argv[:1] == ("-c",) else ("-m", "t2t_jax.main")
    return subprocess.run(
        [python(environ, fresh=fresh), *program, *argv],
        input=stdin,
        capture_output=True,
        env=environ,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )


def load(directory: Path, **options: Any) -> Any:
    """Loads a model on one device, for which the command line has its programs."""
    import jax

    import t2t_jax

    return t2t_jax.load(directory, devices=jax.devices()[:1], **options)


def run_together(
    one: Callable[[int], subprocess.CompletedProcess[bytes]], count: int = 2
) -> list[subprocess.CompletedProcess[bytes]]:
    """Runs programs at the same time: one for each number, to their ends."""
    server()
    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(one, range(count))]


def succeed(*argv: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs as `run` does, to exit code 0."""
    done = run(*argv, **how)
    assert done.returncode == 0, done.stderr.decode()
    return done
