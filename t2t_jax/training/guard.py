"""What may interrupt a run: signals, and numbers that are none."""

from __future__ import annotations

import math
import os
import signal
from contextlib import ExitStack
from types import FrameType, TracebackType

from t2t_jax.errors import DivergedError, StoppedError
from t2t_jax.parallelism.preemption import PreemptionNotice, preemption_notice

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Turns the first signal into a wish to stop; a second one leaves at once.

    A context manager for the main thread. While it is open, SIGINT (Ctrl-C), SIGTERM
    and SIGUSR1 set `requested`, and the training loop saves and ends at its next step.

    Attributes:
      requested: name of the signal that came, or "".
    """

    def __init__(self) -> None:
        self.requested = ""
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def reached(self, step: int) -> bool:
        """Tells, once a step, whether to stop after this one."""
        return bool(self.requested)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            os._exit(StoppedError.exit_code)
        self.requested = signal.Signals(number).name
        # os.write, since a handler may interrupt a print.
        os.write(2, b"\nStopping: saving a checkpoint (again to leave at once)\n")


class SharedStopRequest(StopRequest):
    """Stops several processes after the same step, whichever of them got the signal.

    Each of them enters this together with its training loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()
        self._notice: PreemptionNotice

    def __enter__(self) -> SharedStopRequest:
        self._notice = self._open.enter_context(preemption_notice())
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._open.close()

    def reached(self, step: int) -> bool:
        """Tells whether all processes stop after this step; each asks at every one."""
        return self._notice.reached(step)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        super()._handle(number, frame)
        self._notice.give()


def require_finite(step: int, *, loss: float, gradient_norm: float) -> None:
    """Refuses to go on from a step whose loss or gradient is not a number.

    Raises:
      DivergedError: `loss` or `gradient_norm` is infinite or NaN.

    Example:
      >>> require_finite(1, loss=2.0, gradient_norm=0.5)
    """
    if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
        raise DivergedError(
            f"The run diverged by step {step}: loss={loss}, gradient norm="
            f"{gradient_norm}.\nCheckpoints of earlier steps are good. Lower "
            "config.optimizer.peak_learning_rate or lengthen "
            "config.optimizer.warmup_steps, and begin again in a new --workdir."
        )
