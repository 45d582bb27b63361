"""`--mode=train`: trains a model, or resumes the run in the workdir."""

from __future__ import annotations

import shlex
import signal
from contextlib import AbstractContextManager, ExitStack

from t2t_jax.cli.console.error_report import report_error
from t2t_jax.cli.console.stderr import open_log
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import TrainOptions
from t2t_jax.cli.processes.handshake import RunHandshake
from t2t_jax.errors import StoppedError
from t2t_jax.run.prepared_data import PreparedData, open_prepared_data
from t2t_jax.run.start import OpenedRun, make_console, open_run, require_trainable
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.console import Console


def run(options: TrainOptions) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    A new run prepares its text before it imports JAX, so that errors appear early. With
    several processes, process 0 prepares it and the others open it; if one fails, all
    end with its exit code.

    Raises:
      UserError: text, configuration or workdir are invalid.
    """
    require_trainable(options.workdir)
    if options.processes.count > 1:
        return _run_distributed(options)
    console = make_console(options.config)
    with _open_run(options, console) as opened:
        return _train(options, opened.text, console)


def _run_distributed(options: TrainOptions) -> int:
    """Opens the run on all processes, and trains if none of them has failed."""
    processes = options.processes
    with ExitStack() as held:
        text, console, code = None, make_console(options.config), 0
        try:
            if processes.is_first:
                text = _prepare(options, console, held)
            else:
                text, console = _open(options, held)
        except (Exception, KeyboardInterrupt) as error:
            # The process ends within seconds; a signal would change its exit code.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
            code = report_error(error)
            if processes.is_first:
                RunHandshake.failure(code).publish(processes)
        code = processes.sync_exit_codes("opened", code)
        return code or _train(options, text, console)


def _open_run(
    options: TrainOptions, console: Console
) -> AbstractContextManager[OpenedRun]:
    return open_run(
        options.config,
        workdir=options.workdir,
        overrides=options.overrides,
        console=console,
        distributed=options.processes.count > 1,
    )


def _prepare(
    options: TrainOptions, console: Console, held: ExitStack
) -> PreparedData | None:
    """Prepares the workdir and its text, and publishes the handshake."""
    opened = held.enter_context(_open_run(options, console))
    RunHandshake.of_run(
        options.config,
        owner=opened.owner,
        fingerprints=opened.text and opened.text.fingerprints,
    ).publish(options.processes)
    return opened.text


def _open(
    options: TrainOptions, held: ExitStack
) -> tuple[PreparedData | None, Console]:
    """Waits for the handshake of process 0, and opens the text that it has prepared."""
    config, workdir, index = options.config, options.workdir, options.processes.index
    handshake = RunHandshake.receive(options.processes)
    handshake.require_same_config(config, index=index)
    handshake.require_same_workdir(workdir, index=index)
    log = held.enter_context(open_log(workdir.log_path(index)))
    console = make_console(config, stream=log)
    if handshake.complete:
        return None, console
    text = open_prepared_data(config, workdir=workdir, log=console.log)
    handshake.require_same_text(text.fingerprints, index=index)
    return text, console


def _train(options: TrainOptions, text: PreparedData | None, console: Console) -> int:
    """Trains on the prepared text; None if the run is complete."""
    if text is None:
        if options.processes.is_first:
            console.log(_next_commands(options.workdir))
        return 0
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
