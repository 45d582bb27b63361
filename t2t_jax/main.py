"""The command line: `t2t-jax train --config=own_text:small`, or `python -m t2t_jax`.

Parses the flags and runs a module of `cli/modes`. User errors end in messages and an
exit code; only internal errors show a traceback. Distributed processes are initialized
before the mode runs. A mode that returns has done so on every process, with one exit
code; one that raises ends all of them.
"""

from __future__ import annotations

import os
import sys

from t2t_jax.devices.distributed.signals import install_early_handlers, set_handlers
from t2t_jax.devices.huge_pages import reexec_with_huge_pages

# Before the slow imports, and not in a program that imports this module.
_IS_PROGRAM = __name__ == "__main__" or os.path.basename(sys.argv[0]) == "t2t-jax"
if _IS_PROGRAM:
    install_early_handlers()
    reexec_with_huge_pages()

import dataclasses
import gc
import logging
import platform
import signal
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from importlib.metadata import version
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.console.stderr import (
    configure_stdout,
    make_stderr_robust,
    name_flags,
    report_error,
)
from t2t_jax.devices.compilation_cache import (
    disable_cache_on_multiprocess_cpu,
    enable_compilation_cache,
)
from t2t_jax.devices.distributed.cluster import require_single_task
from t2t_jax.devices.distributed.processes import current_processes, initialize
from t2t_jax.training.stopping import exit_on_signals
from t2t_jax.version import __version__

if TYPE_CHECKING:
    from t2t_jax.cli.flags.options import Options


def main(argv: Sequence[str]) -> int:
    """Runs the command line.

    Args:
      argv: the arguments, without the program's name.

    Returns:
      The exit code (see `t2t_jax.errors`; 70 for an internal error, 74 for a full
      disk or a failing one).
    """
    # Without anything to save, a signal ends the process. The training loop replaces
    # these handlers.
    _Stop.last = ""
    set_handlers(_stop, keep_ignored=[signal.SIGINT])
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    # Orbax logs its settings there; its failures are raised.
    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        code = _run(argv)
        # The same code on every process.
        current_processes().shutdown(code)
    except (Exception, KeyboardInterrupt) as raised:
        # An extension's import turns a signal into an ImportError.
        is_signal = isinstance(raised, ImportError) and _Stop.last
        error = _Stop(_Stop.last) if is_signal else raised
        code = report_error(error)
        if current_processes().count > 1:
            # This process ends within seconds; a signal would change its exit code.
            set_handlers(signal.SIG_IGN)
            # The others may wait for this one, and JAX's shutdown for them.
            current_processes().abort_all(code, f"{type(error).__name__}: {error}")
    return code


def _run(argv: Sequence[str]) -> int:
    from t2t_jax.cli.console.text_io import flush_before_exit
    from t2t_jax.cli.flags.arguments import split
    from t2t_jax.cli.flags.modes import module_of
    from t2t_jax.cli.flags.options import DistributedOptions, RunOptions
    from t2t_jax.cli.flags.usage import requested_help

    line = split(argv)
    text = requested_help(line)
    if text is None and line.last("version") is not None:
        jax, flax = version("jax"), version("flax")  # without importing them
        others = f"Python {platform.python_version()}, JAX {jax}, Flax {flax}"
        text = f"t2t-jax {__version__} ({others})\n"
    if text is not None:
        print(text, end="")
        return 0
    from t2t_jax.cli.flags import parse_argv as parser

    options = parser.parse_argv(argv)
    name_flags(vars(options))
    if options.uses_jax:
        enable_compilation_cache()  # before the mode imports it
    mode = import_module(f"t2t_jax.cli.modes.{module_of(options.mode)}")
    if isinstance(options, DistributedOptions):
        processes = initialize(
            coordinator_address=options.coordinator_address,
            num_processes=options.num_processes,
            process_id=options.process_id,
            before_exit=flush_before_exit,
        )
        disable_cache_on_multiprocess_cpu(processes.count)
        options = dataclasses.replace(options, processes=processes)
    else:
        require_single_task(options.mode)
        # Modes of several processes check it when all have started.
        if isinstance(options, RunOptions) and options.reads_config:
            options.workdir.require()
    with exit_on_signal(options):
        code: int = mode.run(options) or 0
    return code


def exit_on_signal(options: Options) -> AbstractContextManager[None]:
    """Makes signals exit at once in modes that do not write to a run."""
    from t2t_jax.cli.console.text_io import flush_before_exit
    from t2t_jax.cli.flags.options import TranslateOptions

    if not options.is_read_only:
        return nullcontext()
    advice = "Rerun the same command."
    if isinstance(options, TranslateOptions) and options.mode == "translate":
        if options.shards and not options.resume:
            # A sharded job continues only with --resume.
            advice = "Rerun the same command, with --resume."
        elif not (options.shards or options.stream or options.output == "-"):
            way = "pass --shards=N, and --resume on reruns."
            advice += f" To make a long job resumable, {way}"
    return exit_on_signals(flush_before_exit, advice=advice)


class _Stop(KeyboardInterrupt):
    """Raised by signals; not an `Exception`, so that no handler hides it.

    `KeyboardInterrupt` itself would end Python with code 130 after passing through
    `exec`, as in the definition of a dataclass.

    Attributes:
      last: the name of the last signal raised, or "".
    """

    last = ""


def _stop(number: int, frame: FrameType | None) -> None:
    _Stop.last = signal.Signals(number).name
    raise _Stop(_Stop.last)


def handle_unraisable(unraisable: Any) -> None:
    """Hides output of TensorStore's threads after a failed save; resends signals."""
    if threading.current_thread() is not threading.main_thread():
        return
    signalled = unraisable.exc_value
    if not isinstance(signalled, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # The signal arrived during garbage collection or in a callback, from which no
    # exception propagates. A timer thread sends it again: sent from here, it would be
    # lost in the same way.
    name = signalled.args[0] if signalled.args else ""
    number = signal.Signals.__members__.get(name, signal.SIGINT)
    main_thread = threading.main_thread().ident
    again = threading.Timer(0.05, signal.pthread_kill, (main_thread, number))
    again.daemon = True
    with suppress(RuntimeError):  # The interpreter is shutting down.
        again.start()


def _show_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # NumPy's C import prints the exception before it raises an ImportError.
    if not issubclass(kind, _Stop):
        sys.__excepthook__(kind, error, trace)


def cli_entry_point() -> None:
    """Runs the command line of this process; the entry point of `t2t-jax`."""
    if not _IS_PROGRAM:
        install_early_handlers()
        reexec_with_huge_pages()
    # Imports and tracing make many objects that stay: looking for garbage after every
    # 700 of them took a seventh of the time until the first translated line.
    gc.set_threshold(100_000, 10, 20)
    make_stderr_robust()
    configure_stdout()
    sys.unraisablehook = handle_unraisable
    sys.excepthook = _show_uncaught
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    cli_entry_point()
