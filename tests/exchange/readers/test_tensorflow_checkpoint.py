"""Checkpoints of TensorFlow, also damaged ones.

Seen to fail: without the verification of each of the two checksums, and with the shards
in another order.
"""

import errno
import re

import numpy as np
import pytest

from t2t_jax.errors import DataError, InputMissingError, UnavailableError
from t2t_jax.exchange.readers.tensorflow_checkpoint import read_tensorflow_checkpoint
from tests.exchange.tensorflow_save import field, save


def refused(path, message):
    with pytest.raises(DataError, match=message):
        read_tensorflow_checkpoint(path)


@pytest.fixture
def saved():
    rng = np.random.default_rng(3)
    layer = "transformer/body/decoder/layer_0/ffn/conv1"
    floats = {
        f"{layer}/bias": rng.normal(size=4),
        f"{layer}/kernel": rng.normal(size=(3, 4)),
        "transformer/body/encoder/empty": np.zeros((0, 2)),
        "transformer/z": rng.normal(size=300),
    }
    whole = {f"transformer/weights_{n}": np.full((2, n), n) for n in range(12)}
    whole["global_step"] = np.int64(7).reshape(())
    return whole | {name: np.float32(array) for name, array in floats.items()}


@pytest.mark.parametrize("num_shards", [1, 3])
def test_what_was_saved_is_read(tmp_path, saved, num_shards):
    save(tmp_path / "model.ckpt-7", saved, num_shards=num_shards)
    found = read_tensorflow_checkpoint(tmp_path / "model.ckpt-7")
    assert found.keys() == saved.keys()
    for name, array in saved.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_other_content_of_a_tensor_is_refused(tmp_path, saved):
    save(tmp_path / "a", saved, num_shards=1)
    data = tmp_path / "a.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[20] ^= 1
    data.write_bytes(content)
    refused(tmp_path / "a", r"a is not a readable .*: a checksum does not")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"header": field(2, 1)}, "the other byte order"),
        ({"header": field(1, 1 << 40)}, "shards"),
        ({"fields": {1: 7}}, "tensors of type 7"),
        ({"fields": {5: 3}}, "does not take 3 bytes"),
        ({"fields": {4: 1 << 50}}, "truncated"),
        ({"fields": {7: b"a"}}, "sliced tensors"),
        ({"fields": {2: field(2, field(1, 1 << 60))}}, "does not take"),
        ({"fields": {5: b"a"}}, "bytes in place of a number"),
        ({"fields": {2: 9 * field(2, field(1, 1))}}, "a tensor of 9 dimensions"),
        # A small index that refers to a large block often is not read for hours.
        ({"times": 1_000}, "the blocks of its index overlap"),
    ],
)
def test_an_index_of_something_else_is_refused(tmp_path, saved, how, message):
    save(tmp_path / "a", saved, **how)
    refused(tmp_path / "a", message)


def test_tensors_must_not_overlap(tmp_path, saved):
    save(tmp_path / "a", saved, fields={3: 0, 4: 0}, num_shards=1)
    (tmp_path / "a.data-00000-of-00001").write_bytes(bytes(100))
    refused(tmp_path / "a", "overlap")


def test_data_that_cannot_be_mapped_are_an_error(tmp_path, saved, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    save(tmp_path / "a", saved)
    monkeypatch.setattr(np, "memmap", fail)
    with pytest.raises(UnavailableError, match=r"memory, .* bytes: Cannot allocate"):
        read_tensorflow_checkpoint(tmp_path / "a")


@pytest.mark.parametrize("name", ["a.index", "a.data-00001-of-00002"])
def test_a_missing_file_is_named(tmp_path, saved, name):
    save(tmp_path / "a", saved)
    (tmp_path / name).unlink()
    with pytest.raises(InputMissingError, match=rf"{re.escape(name)}: no such file"):
        read_tensorflow_checkpoint(tmp_path / "a")


def test_names_are_bounded(tmp_path, monkeypatch):
    names = [f"{'a' * 4_000}{number}" for number in range(40)]
    save(tmp_path / "a", {name: np.float32([1]) for name in names}, per_block=100)
    assert sorted(read_tensorflow_checkpoint(tmp_path / "a")) == sorted(names)
    limit = "t2t_jax.exchange.readers.tensorflow_checkpoint._MAX_INDEX_BYTES"
    monkeypatch.setattr(limit, 100_000)
    refused(tmp_path / "a", "its names have more than 100,000 bytes")
    save(tmp_path / "a", {"a" * 4_097: np.float32([1])})
    refused(tmp_path / "a", "its index has a key of 4,097 bytes")
