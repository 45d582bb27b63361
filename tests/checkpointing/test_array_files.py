"""Arrays of a checkpoint are read without Orbax, as Orbax has written them.

Seen to fail: without the comparison with what is expected; with a path that has slashes
in the store; with a directory that is not resolved.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from t2t_jax.checkpointing.array_files import read_arrays
from t2t_jax.devices.sharding.rules import dtype_shapes

_TREE = {
    "encoder": {"layer_0": {"kernel": np.arange(35, dtype=np.float32).reshape(5, 7)}},
    "half": np.asarray(jnp.linspace(0, 1, 11, dtype=jnp.bfloat16)),
    "ids": np.arange(13, dtype=np.int32),
    "scalar": np.asarray(3, np.float32),
    "zeros": np.zeros((2, 3), np.float32),
}


@pytest.fixture
def written(tmp_path):
    with ocp.StandardCheckpointer() as writer:
        writer.save(tmp_path / "item", _TREE)
    return tmp_path / "item"


def test_arrays_are_what_orbax_has_written(written):
    read = read_arrays(written, dtype_shapes(_TREE))
    kernel = _TREE["encoder"]["layer_0"]["kernel"]
    np.testing.assert_array_equal(read.pop("encoder/layer_0/kernel"), kernel)
    assert set(read) == set(_TREE) - {"encoder"}
    for name, array in read.items():
        assert array.dtype == _TREE[name].dtype
        np.testing.assert_array_equal(array, _TREE[name])


def test_a_path_may_lead_up_or_be_relative(written, monkeypatch):
    wanted = {"ids": "int32[13]"}
    monkeypatch.chdir(written)
    for path in ("../item", ".", written / ".." / "item"):
        np.testing.assert_array_equal(
            read_arrays(Path(path), wanted)["ids"], _TREE["ids"]
        )


@pytest.mark.parametrize("text", ["int32[14]", "float32[13]"])
def test_an_array_of_another_shape_or_dtype_is_not_read(written, text):
    with pytest.raises(ValueError, match=r"ids: it was saved as .* and is int32\[13\]"):
        read_arrays(written, {"ids": text})
