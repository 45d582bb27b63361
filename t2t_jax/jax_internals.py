"""Names of JAX that are not public: all that this package uses, known from JAX 0.10.

The key-value store is that of JAX's coordinator, in process 0.
"""

from __future__ import annotations

import sys
from typing import Any

_SLICE_MILLISECONDS = 500
_FOLDER = "t2t_jax"


def has_cudnn() -> bool:
    """Returns whether JAX finds cuDNN, and has what `cudnn_attention` calls."""
    try:
        from jax._src.cudnn import fused_attention_stablehlo as cudnn

        cudnn.check_cudnn_version()
        return hasattr(cudnn, "_dot_product_attention")
    except (ImportError, AttributeError, RuntimeError):
        return False


def cudnn_attention(q: Any, k: Any, v: Any, bias: Any, *, scale: float) -> Any:
    """Computes softmax(scale q k^T + bias) v by cuDNN, without a gradient of the bias.

    That of the public function repeats the bias for each head, and computes and stores
    its gradient.

    Args:
      q: [B, Q, H, D], as are keys and values [B, K, H, D].
      bias: [B, 1, Q, K].
    """
    import jax.numpy as jnp
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    unused = [jnp.zeros(0, q.dtype)] * 6
    return cudnn._dot_product_attention(
        *(q, k, v, bias, *unused),
        scale=scale,
        seed=0,
        dropout_rate=0.0,
        variadic_args=(True, False),
        mask_type=cudnn.MaskType.NO_MASK,
        layout=cudnn.AttentionLayout.BTNH.value,
        sliding_window_length=None,
        cudnn_version=cudnn.check_cudnn_version(),
        return_residual=False,
    )


def client() -> Any:
    """Returns the client of JAX's coordinator."""
    from jax._src import distributed

    return distributed.global_state.client


def rank_and_count() -> tuple[int, int]:
    """Returns the rank of this process and the number of all; touches no device.

    Imports nothing: a thread asks after a signal, while another one may import JAX.
    """
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    rank, count = (getattr(state, x, 0) for x in ("process_id", "num_processes"))
    return rank or 0, count or 1


def publish(name: str, text: str) -> None:
    """Publishes a text under a name, once in a run."""
    client().key_value_set(f"{_FOLDER}/{name}", text)


def receive(name: str) -> str:
    """Waits until some process has published a text, and returns it.

    If process 0 ends, JAX ends this process.
    """
    while True:
        try:  # In slices, so that signal handlers run in between.
            key = f"{_FOLDER}/{name}"
            return str(client().blocking_key_value_get(key, _SLICE_MILLISECONDS))
        except RuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise


def start_preemption_service() -> None:
    """Starts the service that agrees on a step to stop; replaces the SIGTERM handler.

    A program's own `jax.distributed.initialize` may have started it. In the command
    line SIGTERM would then have no effect while text is prepared and the step is
    compiled.
    """
    from jax._src import distributed

    if distributed.global_state.preemption_sync_manager is None:
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
