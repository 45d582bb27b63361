"""`model.safetensors` is read as it was written, or an error is raised.

Seen to fail: without the comparison of checksums; without that of names and shapes;
without the bound on the size; where the file is
mapped before its header is checked; where every exception is let through.
"""

import json
import os
import pickle
import resource
from pathlib import Path

import jax
import numpy as np
import pytest

from t2t_jax import errors
from t2t_jax.checkpointing.safetensors_io import (
    SafetensorsFile,
    read_safetensors,
    write_safetensors,
)
from t2t_jax.errors import DataError, InputMissingError, UnavailableError, UserError

numpy_files = pytest.importorskip("safetensors.numpy")

PARAMS = {
    "encoder": {"layer_0": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}},
    "embedding": {"table": np.float32([[0.1, np.pi], [-0.0, 1e-40]])},
}


def like(params=PARAMS):
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), params
    )


@pytest.fixture
def directory(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", PARAMS)
    (tmp_path / "model.json").write_text('{"step": 7}')
    return tmp_path


def refused(directory, message, *, expected=PARAMS, kind=DataError):
    with pytest.raises(kind, match=message):
        SafetensorsFile(directory).params(7, like=like(expected))


def test_what_was_written_is_read_bit_for_bit(directory):
    file = SafetensorsFile(directory)
    assert {file.resolve_step(which) for which in ("best", "last", "7", 7)} == {7}
    with pytest.raises(DataError, match=r"checkpoint=8 must be best, last, or .*: 7"):
        file.resolve_step(8)
    read = file.params(7, like=like())
    for got, wanted in zip(*map(jax.tree.leaves, (read, PARAMS)), strict=True):
        assert isinstance(got, jax.Array)
        assert np.asarray(got).tobytes() == wanted.tobytes()


def test_a_flipped_bit_of_an_array_is_named(directory):
    path = directory / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    refused(directory, r"encoder/layer_0/kernel is float32\[2,3\] \w+, not")


@pytest.mark.parametrize("content", [b"", pickle.dumps(1), b"\xff" * 99, None])
def test_an_invalid_file_is_damaged(directory, content):
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5] if content is None else content)
    refused(directory, r"model.safetensors is damaged")


def test_a_huge_file_is_refused_before_it_is_read(directory):
    os.truncate(directory / "model.safetensors", 1 << 40)
    refused(directory, r"must have at most [\d,]+ bytes, and has 1,099,511,627,776")


@pytest.mark.parametrize(
    "changed",
    [
        {**PARAMS, "decoder": np.zeros(3, np.float32)},
        {"embedding": PARAMS["embedding"]},
        {**PARAMS, "embedding": {"table": np.zeros((3, 2), np.float32)}},
        {**PARAMS, "embedding": {"table": np.zeros((2, 2), np.float16)}},
    ],
)
def test_arrays_of_another_model_are_refused(directory, changed):
    refused(directory, "was written for another model", expected=changed)


def test_a_file_of_another_program_has_no_checksums_and_is_read(directory):
    arrays = {
        "encoder/layer_0/kernel": PARAMS["encoder"]["layer_0"]["kernel"] + 1,
        "embedding/table": PARAMS["embedding"]["table"],
    }
    numpy_files.save_file(arrays, directory / "model.safetensors")
    read = SafetensorsFile(directory).params(7, like=like())
    assert read["encoder"]["layer_0"]["kernel"][0, 0] == 1


@pytest.mark.parametrize(
    ("origin", "kind"),
    [(None, InputMissingError), ({"step": "7"}, DataError), ({}, DataError)],
)
def test_a_model_without_a_step_is_refused(directory, origin, kind):
    (directory / "model.json").unlink()
    if origin is not None:
        (directory / "model.json").write_text(json.dumps(origin))
    refused(directory, r"model.json .*step", kind=kind)


def test_a_missing_package_is_named_with_what_brings_it(directory, monkeypatch):
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 't2t-jax\[export\]'"):
        write_safetensors(directory / "other", PARAMS)
    SafetensorsFile(directory).params(7, like=like())  # reading needs none


def write(path, header, content=b""):
    if not isinstance(header, str):
        header = json.dumps(header)
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + content)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "header",
    [
        f'{{"a": {json.dumps(ENTRY)}, "a": {json.dumps(ENTRY)}}}',
        f'{{"a": {json.dumps(ENTRY)[:-1]}, "dtype": "F32"}}}}',
        {"a": ENTRY, "b": ENTRY},
        {"a": ENTRY | {"shape": [-1, -2]}},
        {"a": ENTRY | {"shape": [2.0]}},
        {"a": ENTRY | {"shape": [1 << 40, 0, 1 << 40], "data_offsets": [0, 0]}},
        {"a": ENTRY | {"data_offsets": [8, 16]}},
        {"a": ENTRY | {"data_offsets": 8}},
        {"a": ENTRY | {"dtype": "I8"}},
        {"a": [1]},
        [],
        "{" * 100_000,
    ],
)
def test_a_header_that_does_not_describe_the_file_is_damage(tmp_path, header):
    write(tmp_path / "a", header, bytes(8))
    with pytest.raises(DataError, match="a is damaged: "):
        read_safetensors(tmp_path / "a")


def test_arrays_of_all_types_are_mapped(tmp_path):
    arrays = {
        "b": np.arange(5, dtype=np.float16),
        "a": np.float64([[np.pi]]),
        "c": np.zeros((0, 3), np.int64),
    }
    numpy_files.save_file(arrays, tmp_path / "a", metadata={"x": "y"})
    found, metadata = read_safetensors(tmp_path / "a")
    assert (found.keys(), metadata) == (arrays.keys(), {"x": "y"})
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable


@pytest.mark.parametrize("size", [0, 2, 5 << 30])
def test_a_sparse_file_is_judged_by_its_header_before_it_is_mapped(tmp_path, size):
    """Where it is mapped, it needs address space: 20 GB here, of 6 GB."""
    entry = {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}
    write(tmp_path / "a", {"a": entry} if size else "")
    os.truncate(tmp_path / "a", (20 << 30) + (tmp_path / "a").stat().st_size)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # This process has mapped some pages already; JAX maps many.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (6 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        with pytest.raises(UserError) as caught:
            read_safetensors(tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    kind, reason = {
        0: (DataError, "its header has 0 bytes"),
        2: (DataError, "its arrays do not take the whole file"),
        5 << 30: (UnavailableError, "cannot be mapped into memory"),
    }[size]
    assert caught.type is kind
    assert reason in str(caught.value)
