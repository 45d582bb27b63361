"""Collective decisions: all processes get the same value."""

from __future__ import annotations

from t2t_jax.distributed.processes import Processes


def broadcast_from_first(processes: Processes, name: str, text: str) -> str:
    """Returns the text of process 0 on every process.

    Collective: call on every process.

    Args:
      name: of the call; unique within the run.
      text: used on process 0 only.

    Example:
      >>> broadcast_from_first(Processes(), "is it time at step 100", "yes")
      'yes'
    """
    if processes.count == 1:
        return text
    if processes.is_first:
        processes.publish(name, text)
        return text
    return processes.receive(name)


def all_reduce_min(processes: Processes, name: str, number: int) -> int:
    """Returns the smallest number of all processes on every process.

    Collective: call on every process.

    Args:
      name: of the call; unique within the run.

    Example:
      >>> all_reduce_min(Processes(), "memory", 5)
      5
    """
    if processes.count == 1:
        return number
    processes.publish(f"{name}/{processes.index}", str(number))
    if processes.is_first:
        numbers = [
            int(processes.receive(f"{name}/{index}"))
            for index in range(processes.count)
        ]
        number = min(numbers)
    return int(broadcast_from_first(processes, name, str(number)))


def barrier(processes: Processes, name: str) -> None:
    """Returns when every process has called it.

    Collective: call on every process.

    Args:
      name: of the call; unique within the run.
    """
    all_reduce_min(processes, name, 0)
