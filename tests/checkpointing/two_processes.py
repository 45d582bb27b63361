"""One of two processes with `Checkpoints`: `python -m … INDEX PORT FOLDER`."""

import os
import sys
from pathlib import Path

import pytest


def main(index, port, folder):
    import jax

    jax.distributed.initialize(f"127.0.0.1:{port}", 2, index)
    state = state_of(jax, 7)
    only_global_arrays_are_saved(jax, folder, state)
    a_failure_of_one_is_one_of_both(folder, state, first=index == 0)
    an_exception_releases_the_directory(folder, state)
    jax.distributed.shutdown()
    print("all is well")


def state_of(jax, seed):
    import jax.numpy as jnp

    from t2t_jax.devices.sharding.mesh import make_mesh
    from t2t_jax.devices.sharding.rules import batch_sharding, replicated

    mesh = make_mesh()
    make = lambda: (jnp.arange(16) + seed, jax.random.key(seed))  # noqa: E731
    return jax.jit(make, out_shardings=(batch_sharding(mesh), replicated(mesh)))()


def only_global_arrays_are_saved(jax, folder, state):
    import jax.numpy as jnp

    from t2t_jax.checkpointing.checkpoints import Checkpoints

    with Checkpoints(folder / "new") as checkpoints:
        with pytest.raises(TypeError, match=r"steps must be a jax\.Array, .* meta="):
            checkpoints.save(1, {"steps": 1, "state": state})
        with pytest.raises(TypeError, match=r"own\.a must be a global array"):
            checkpoints.save(1, {"own": {"a": jnp.ones(2)}, "state": state})
        assert checkpoints.restore(state) is None
        checkpoints.save(5, state)
        checkpoints.wait()
        found = checkpoints.restore(state_of(jax, 0))
        same = jax.jit(lambda a, b: ((a[0] == b[0]).all(), (a[1] == b[1]).all()))
        assert found.step == 5
        assert [*map(bool, same(found.state, state))] == [True, True]


def a_failure_of_one_is_one_of_both(folder, state, *, first):
    from t2t_jax.checkpointing.checkpoints import Checkpoints
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
    from t2t_jax.errors import OutputError, StorageError, UserError
    from t2t_jax.files import locked

    used = folder / "used"
    used.mkdir(exist_ok=True)
    with locked(used / ("lock" if first else "other")):
        error = OutputError if first else UserError
        with pytest.raises(error, match="in use" if first else "Another process"):
            Checkpoints(used)
    with Checkpoints(used) as checkpoints:
        writer = checkpoints._writer
        prepare, verify = writer._prepare, writer.verify

        def fails(*_):
            raise OSError(28, "No space left on device")

        for one in (True, False):
            writer._prepare = fails if first is one else prepare
            words = "No space left" if first is one else "another process cannot write"
            with pytest.raises(StorageError, match=words):
                checkpoints.save(1, state)
        writer._prepare = prepare

        def damaged(step):
            raise CorruptCheckpointError(used / str(step), "it is damaged")

        writer.verify = damaged if first else verify
        checkpoints.save(2, state)
        with pytest.raises(OutputError if first else StorageError):
            checkpoints.wait()
        writer.verify = verify
        checkpoints.save(3, state)
        checkpoints.wait()
        assert checkpoints.steps() == [2, 3]


def an_exception_releases_the_directory(folder, state):
    from t2t_jax.checkpointing.checkpoints import Checkpoints

    def fail():
        with Checkpoints(folder / "left"):
            raise RuntimeError("of a user")

    with pytest.raises(RuntimeError, match="of a user"):
        fail()
    with Checkpoints(folder / "left") as checkpoints:
        checkpoints.save(1, state)
    assert checkpoints.steps() == [1]


if __name__ == "__main__":
    from tests.compiling import xla_flags

    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = xla_flags(2)
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
