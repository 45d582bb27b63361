"""Names of JAX that are not public: all that this package uses, known from JAX 0.10.

The key-value store is that of JAX's coordinator, in process 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SLICE_MILLISECONDS = 500


def cudnn_attention() -> Any:
    """Returns the module of cuDNN's attention, which alone has packed rows.

    Raises:
      ImportError: this JAX has none.
    """
    from jax._src.cudnn import fused_attention_stablehlo

    return fused_attention_stablehlo


@contextmanager
def absent_gpu(capability: tuple[int, int]) -> Iterator[None]:
    """Compiles cuDNN's attention for a GPU of this compute capability.

    JAX asks the default device for it, not those that it compiles for.
    """
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    asks = cudnn.check_compute_capability
    cudnn.check_compute_capability = lambda least: (
        capability >= tuple(map(int, least.split(".")))
    )
    try:
        yield
    finally:
        cudnn.check_compute_capability = asks


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


def detect_tpu_pod() -> tuple[int, int, str] | None:
    """Detects a TPU pod, by its metadata server on Google's machines.

    Returns:
      The rank of this host, the number of hosts, and JAX's name of the kind of pod.
    """
    # Importing JAX counts the TPU chips; without chips the server is not asked.
    import jax  # noqa: F401
    from jax._src import clusters

    for kind in (clusters.GkeTpuCluster, clusters.GceTpuCluster):
        if kind.is_env_present():
            return kind.get_process_id(), kind.get_process_count(), kind.name
    return None


def detect_coordinator(*settings: Any) -> str:
    """Detects the coordinator of a cluster, unless its address is given.

    Args:
      settings: the address or None, the number of processes, the rank of this one, its
        devices, the kind of cluster, and a timeout in seconds.

    Returns:
      host:port.

    Raises:
      RuntimeError: it cannot be detected.
    """
    from jax._src import clusters

    return str(clusters.ClusterEnv.auto_detect_unset_distributed_params(*settings)[0])
