"""Decisions that all processes must make alike, although each sees something else."""

from __future__ import annotations

from t2t_jax.distributed.processes import Processes


def broadcast_from_first(processes: Processes, name: str, text: str) -> str:
    """Gives every process what the first one says.

    Args:
      processes: all of them come here.
      name: of the decision; another one each time.
      text: what this process would say.

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
    """Gives every process the smallest of the numbers of all.

    Args:
      processes: all of them come here.
      name: of the decision; another one each time.

    Example:
      >>> all_reduce_min(Processes(), "memory", 5)
      5
    """
    if processes.count == 1:
        return number
    processes.publish(f"{name}/{processes.index}", str(number))
    if processes.is_first:
        all_of_them = [
            int(processes.receive(f"{name}/{index}"))
            for index in range(processes.count)
        ]
        number = min(all_of_them)
    return int(broadcast_from_first(processes, name, str(number)))
