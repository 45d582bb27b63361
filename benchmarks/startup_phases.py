"""Where the time until the first translated line goes, step by step in one process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_LINE = "The old teacher reads a book."


def phases(workdir: str) -> dict[str, tuple[float, float]]:
    """Returns seconds and CPU seconds of each phase, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, workdir],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


class _Clock:
    def __init__(self) -> None:
        self.found: dict[str, tuple[float, float]] = {}
        self._last = (time.perf_counter(), time.process_time())

    def __call__(self, phase: str) -> None:
        now = (time.perf_counter(), time.process_time())
        seconds, cpu = (b - a for a, b in zip(self._last, now, strict=True))
        self.found[phase] = (round(seconds, 3), round(cpu, 3))
        self._last = now


def _import_all(workdir: str, clock: Callable[[str], None]) -> None:
    import t2t_jax.main

    clock("import of the command line")
    from t2t_jax.cli.flags.parse_argv import parse_argv
    from t2t_jax.devices.compilation_cache import enable_compilation_cache

    parse_argv(["--mode=translate", f"--workdir={workdir}"])
    clock("flags and configuration")
    enable_compilation_cache()
    import t2t_jax.cli.modes.translate

    clock("import of the mode")
    import jax  # noqa: F401

    clock("import of jax")
    import flax.linen  # noqa: F401

    clock("import of flax")
    import tensorstore  # noqa: F401

    clock("import of tensorstore")
    import t2t_jax.run.inference.load  # noqa: F401

    clock("import of the model")


def _translate(workdir: str, clock: Callable[[str], None]) -> None:
    from t2t_jax.checkpointing.safetensors_io import open_parameters
    from t2t_jax.model.architectures import make_module
    from t2t_jax.run.inference.load import abstract_params, load
    from t2t_jax.run.workdir import Workdir

    run = Workdir(Path(workdir))
    config = run.read_config()
    run.read_vocabularies(config.vocabulary)
    clock("configuration and vocabulary of the run")
    shapes = abstract_params(make_module(config.network))
    clock("shapes of the parameters")
    stored = open_parameters(run.path)
    stored.params(stored.resolve_step("best"), like=shapes)
    clock("parameters, read and verified")
    model = load(workdir)
    clock("(all of these again, warm)")
    model.translate([_LINE])
    clock("first line: tracing, programs from the cache")
    model.translate([_LINE])
    clock("(second line)")


if __name__ == "__main__":
    _clock = _Clock()
    _import_all(sys.argv[1], _clock)
    _translate(sys.argv[1], _clock)
    print(json.dumps(_clock.found))
