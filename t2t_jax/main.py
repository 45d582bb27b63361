"""The command line: `t2t-jax train --config=own_text`, or `python -m t2t_jax`.

Flags become options, and a file of `cli/` does the rest. A user's mistake ends here
in its messages and its exit code; only a mistake of the program shows a traceback.
Where several processes run one experiment, they have met before a mode begins. A mode
that returns has agreed with the others on how it ends; one that raises ends them all.
"""

from __future__ import annotations

import os
import sys

from t2t_jax.runtime.interrupts import SIGNALS, hold_signals, leave_on_signals

# First, for what follows takes a while; and not in a program that imports this.
if __name__ == "__main__" or os.path.basename(sys.argv[0]) == "t2t-jax":
    leave_on_signals()

import dataclasses
import logging
import signal
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.console.error_report import name_flags, report_error
from t2t_jax.cli.console.stderr import guard_stdout, make_stderr_robust
from t2t_jax.distributed.cluster_env import require_single_task
from t2t_jax.distributed.processes import current_processes, initialize
from t2t_jax.runtime.compilation_cache import (
    disable_cache_on_multiprocess_cpu,
    enable_compilation_cache,
)
from t2t_jax.runtime.huge_pages import reexec_with_huge_pages
from t2t_jax.training.health.stop_signals import exit_on_signals

if TYPE_CHECKING:
    from t2t_jax.cli.flags.options import Options


def main(argv: Sequence[str]) -> int:
    """Does what the command line asks.

    Args:
      argv: the arguments, without the program's name.

    Returns:
      The exit code (see `t2t_jax.errors`; 70 for an internal error, 74 for a full
      disk or a failing one).
    """
    # Where there is nothing to save, a signal ends the process. The training loop
    # puts its own handlers in the place of these.
    _Stop.came = ""
    for number in SIGNALS:
        # Ctrl-C is not for a job in the background.
        if number != signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    # Orbax speaks there, of its own settings; what it fails at comes as exceptions.
    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        code = _run(argv)
        # All processes have come to this code, so they end together.
        current_processes().shutdown(code)
    except (Exception, KeyboardInterrupt) as raised:
        error = _signal_behind(raised)
        code = report_error(error)
        if current_processes().count > 1:
            # The others may be waiting for this one, and JAX would wait for them.
            current_processes().abort_all(code, f"{type(error).__name__}: {error}")
    return code


def _run(argv: Sequence[str]) -> int:
    from t2t_jax.cli.console.version import version_text
    from t2t_jax.cli.flags import parser
    from t2t_jax.cli.flags.modes import DISTRIBUTED_MODES
    from t2t_jax.cli.flags.usage import requested

    line = parser.read_line(argv)
    text = requested(line)
    if text is None and line.last("version") is not None:
        text = f"{version_text()}\n"
    if text is not None:
        print(text, end="")
        return 0
    options = parser.parse_argv(argv)
    name_flags(vars(options))
    enable_compilation_cache()  # before a mode imports JAX
    mode = import_module(f"t2t_jax.cli.modes.{options.mode}")
    if options.mode in DISTRIBUTED_MODES:
        processes = initialize(
            coordinator_address=options.coordinator_address,
            num_processes=options.num_processes,
            process_id=options.process_id,
        )
        disable_cache_on_multiprocess_cpu(processes.count)
        options = dataclasses.replace(options, processes=processes)
    else:
        require_single_task(options.mode)
    with exit_on_signal(options):
        code: int = mode.run(options)
    return code


def exit_on_signal(options: Options) -> AbstractContextManager[None]:
    """Lets a signal end a mode at once that leaves a run as it is."""
    from t2t_jax.cli.console.text_io import flush_before_exit
    from t2t_jax.cli.flags.modes import READ_ONLY_MODES

    if options.mode not in READ_ONLY_MODES:
        return nullcontext()
    advice = "Give the same command again."
    if options.shards and not options.resume:
        # Without it a job by shards refuses to go on.
        advice = "Give the same command again, with --resume."
    elif options.mode == "translate" and not (
        options.shards or options.stream or options.output == "-"
    ):
        advice += (
            " So that a long file is continued, pass --shards=N, and --resume from the "
            "second time on."
        )
    return exit_on_signals(flush_before_exit, advice=advice)


class _Stop(KeyboardInterrupt):
    """A signal: not an `Exception`, which could be taken for a damaged file.

    And not `KeyboardInterrupt` itself: where that passes through `exec`, as in the
    import of a dataclass, Python ends with 130, whatever the exit code is.

    Attributes:
      came: the name of the last signal that was raised as one, or "".
    """

    came = ""


def _signal_behind(error: BaseException) -> BaseException:
    """Finds the signal that the import of an extension has made an ImportError of."""
    came = isinstance(error, ImportError) and _Stop.came
    return _Stop(came) if came else error


def _stop(number: int, frame: FrameType | None) -> None:
    _Stop.came = signal.Signals(number).name
    raise _Stop(_Stop.came)


def handle_unraisable(unraisable: Any) -> None:
    """Hides what TensorStore's threads print after a failed save, reported already."""
    if threading.current_thread() is not threading.main_thread():
        return
    signalled = unraisable.exc_value
    if not isinstance(signalled, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # The signal came while Python was collecting garbage, or in another place that
    # lets no exception out. It is sent again, from a thread: from here it could only
    # fall into the same hole.
    name = signalled.args[0] if signalled.args else ""
    number = signal.Signals.__members__.get(name, signal.SIGINT)
    main_thread = threading.main_thread().ident
    again = threading.Timer(0.05, signal.pthread_kill, (main_thread, number))
    again.daemon = True
    with suppress(RuntimeError):  # Python is ending, and this with it.
        again.start()


def _show_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # NumPy shows what its import from C has met, before it raises an ImportError.
    if not issubclass(kind, _Stop):
        sys.__excepthook__(kind, error, trace)


def cli_entry_point() -> None:
    """Runs the command line of this process, as the script `t2t-jax` does."""
    leave_on_signals()
    reexec_with_huge_pages(before=hold_signals, otherwise=leave_on_signals)
    make_stderr_robust()
    guard_stdout()
    sys.unraisablehook = handle_unraisable
    sys.excepthook = _show_uncaught
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    cli_entry_point()
