"""`--mode=train`: trains a model, or resumes the run in the workdir."""

from __future__ import annotations

import shlex
import signal
from contextlib import ExitStack
from typing import NamedTuple

from t2t_jax.cli.console.error_report import report_error
from t2t_jax.cli.console.stderr import open_log
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import TrainOptions
from t2t_jax.cli.processes.handshake import RunHandshake
from t2t_jax.errors import StoppedError
from t2t_jax.run.prepared_data import PreparedData, open_prepared_data
from t2t_jax.run.start import make_console, open_run, require_trainable
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.console import Console


class _PreparedRun(NamedTuple):
    """The prepared text (None if the run is complete), and the console."""

    text: PreparedData | None
    console: Console


def run(options: TrainOptions) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    A new run prepares its text before it imports JAX, so that errors appear early. With
    several processes, process 0 prepares it and the others open it; if one fails, all
    end with its exit code.

    Raises:
      UserError: text, configuration or workdir are invalid.
    """
    require_trainable(options.workdir)
    processes = options.processes
    with ExitStack() as held:
        ready, code = None, 0
        try:
            ready = (_prepare if processes.is_first else _open)(options, held)
        except (Exception, KeyboardInterrupt) as error:
            if processes.count == 1:
                raise
            # The process ends within seconds; a signal would change its exit code.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
            code = report_error(error)
            if processes.is_first:
                RunHandshake.failure(code).publish(processes)
        code = processes.sync_exit_codes("opened", code)
        if code or ready is None or ready.text is None:
            return code
        return _train(options, ready.text, ready.console)


def _prepare(options: TrainOptions, held: ExitStack) -> _PreparedRun:
    """Prepares the workdir and its text, and publishes the handshake."""
    config, workdir, processes = options.config, options.workdir, options.processes
    console = make_console(config)
    opened = held.enter_context(
        open_run(
            config,
            workdir=workdir,
            overrides=options.overrides,
            console=console,
            distributed=processes.count > 1,
        )
    )
    if opened.text is None:
        console.log(_next_commands(workdir))
    fingerprints = opened.text and opened.text.fingerprints
    RunHandshake.of_run(config, owner=opened.owner, fingerprints=fingerprints).publish(
        processes
    )
    return _PreparedRun(opened.text, console)


def _open(options: TrainOptions, held: ExitStack) -> _PreparedRun:
    """Waits for the handshake of process 0, and opens the text that it has prepared."""
    config, workdir, index = options.config, options.workdir, options.processes.index
    handshake = RunHandshake.receive(options.processes)
    handshake.require_same_config(config, index=index)
    handshake.require_same_workdir(workdir, index=index)
    log = held.enter_context(open_log(workdir.log_path(index)))
    console = make_console(config, stream=log)
    if handshake.complete:
        return _PreparedRun(None, console)
    text = open_prepared_data(config, workdir=workdir, log=console.log)
    handshake.require_same_text(text.fingerprints, index=index)
    return _PreparedRun(text, console)


def _train(options: TrainOptions, text: PreparedData, console: Console) -> int:
    from t2t_jax.run.trainer import Trainer
    from t2t_jax.training.health.stop_signals import SharedStopRequest, StopRequest

    processes = options.processes
    trainer = Trainer(
        options.config,
        workdir=options.workdir,
        text=text,
        console=console,
        processes=processes,
    )
    single_process = processes.count == 1
    progress = trainer.train(StopRequest() if single_process else SharedStopRequest())
    if not progress.completes(options.config.steps):
        console.log(
            f"Stopped at step {progress.step:,} of {options.config.steps:,}. Rerun the "
            "same command to resume."
        )
        return StoppedError.exit_code
    best = progress.best_bleu
    scored = f", best development BLEU {best:.2f}" if best >= 0 else ""
    console.log(
        f"Done: {progress.step:,} steps{scored}.\n{_next_commands(options.workdir)}"
    )
    return 0


def _next_commands(workdir: Workdir) -> str:
    """Returns example commands for a trained model."""
    flags = f"--workdir={shlex.quote(str(workdir.path))}"
    return (
        f"  translate:  {shlex.join(command_of('translate'))} {flags} < in.txt\n"
        f"  score:      {shlex.join(command_of('evaluate'))} {flags} "
        "--source=test.src --reference=test.ref"
    )
