"""Names of JAX that are not public: all that this package uses, known from JAX 0.10.

The key-value store is that of JAX's coordinator, in process 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_SLICE_MILLISECONDS = 500


def cudnn_attention() -> Any:
    """Returns the module of cuDNN's attention, which alone has packed rows.

    Raises:
      ImportError: this JAX has none.
    """
    from jax._src.cudnn import fused_attention_stablehlo

    return fused_attention_stablehlo


def client() -> Any:
    """Returns the client of JAX's coordinator."""
    from jax._src import distributed

    return distributed.global_state.client


def publish(name: str, text: str) -> None:
    """Publishes a text under a name, once in a run."""
    client().key_value_set(_key(name), text)


def receive(name: str) -> str:
    """Waits until some process has published a text, and returns it.

    If process 0 ends, JAX ends this process.
    """
    while True:
        try:  # In slices, so that signal handlers run in between.
            text: str = client().blocking_key_value_get(_key(name), _SLICE_MILLISECONDS)
            return text
        except RuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise


def _key(name: str) -> str:
    return f"t2t_jax/{name}"


def start_preemption_service() -> None:
    """Starts the service that agrees on a step to stop; replaces the SIGTERM handler.

    `jax.distributed.initialize` would start it too, but SIGTERM would then have no
    effect while text is prepared and the step is compiled.
    """
    from jax._src import distributed

    distributed.global_state.initialize_preemption_sync_manager()


def stop_preemption_service() -> None:
    """Stops the service, if it runs."""
    from jax._src import distributed

    state = distributed.global_state
    if state.preemption_sync_manager is not None:
        state.preemption_sync_manager.shutdown()
        state.preemption_sync_manager = None


class TpuPod(NamedTuple):
    """A pod of several TPU hosts: the rank of this one, and JAX's name of its kind."""

    rank: int
    hosts: int
    kind: str


def detect_tpu_pod() -> TpuPod | None:
    """Detects a TPU pod, by its metadata server on Google's machines."""
    # Importing JAX counts the TPU chips; without chips the server is not asked.
    import jax  # noqa: F401
    from jax._src import clusters

    for kind in (clusters.GkeTpuCluster, clusters.GceTpuCluster):
        if kind.is_env_present():
            return TpuPod(kind.get_process_id(), kind.get_process_count(), kind.name)
    return None


def detect_coordinator(
    address: str | None,
    *,
    count: int,
    index: int,
    devices: tuple[int, ...],
    kind: str,
    seconds: int,
) -> str:
    """Detects the coordinator of a cluster of a kind, unless its address is given.

    Returns:
      host:port.

    Raises:
      RuntimeError: it cannot be detected.
    """
    from jax._src import clusters

    parameters = clusters.ClusterEnv.auto_detect_unset_distributed_params(
        address, count, index, devices, kind, seconds
    )
    return str(parameters[0])
