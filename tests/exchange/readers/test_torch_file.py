"""Files of torch.save, also hostile and damaged ones, none of which may run anything.

Seen to fail: with `pickle.load` in place of the interpreter (the hostile files run),
and without each bound of a view.
"""

import argparse
import collections
import os
import pickle
import struct
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest

from t2t_jax.errors import DataError
from t2t_jax.exchange.readers.torch_file import read_torch_file
from tests.exchange.torch_save import TYPES, Storage, Tensor, save_legacy, save_zip

SAVES = pytest.mark.parametrize("save", [save_zip, save_legacy])


def state():
    rng = np.random.default_rng(3)
    shared = Storage(rng.normal(size=24).astype(np.float32))
    view = shared.elements[4:].reshape(4, 5).T[:, 1:]
    return {
        "args": argparse.Namespace(arch="transformer", dropout=0.1, layers=[6, 6]),
        "cfg": None,
        "model": collections.OrderedDict(
            plain=Tensor(rng.normal(size=(3, 4)).astype(np.float32)),
            half=Tensor(rng.normal(size=7).astype(np.float16)),
            long=Tensor(np.arange(-3, 4)),
            number=Tensor(np.float64(2.5)),
            empty=Tensor(np.zeros((0, 3), np.float32)),
            view=Tensor(view, storage=shared, offset=9, strides=(1, 5)),
            tied=Tensor(
                shared.elements.reshape(2, 12), storage=shared, strides=(12, 1)
            ),
        ),
        "history": [(1, 2.5, True), b"bytes", {"very": -(1 << 70)}, ("ü",)],
    }


def refused(path, message):
    with pytest.raises(DataError, match=message):
        read_torch_file(path)


@SAVES
def test_what_was_saved_is_read(tmp_path, save):
    path, saved = tmp_path / "model.pt", state()
    save(path, saved)
    found = read_torch_file(path)
    assert found["args"] == {"arch": "transformer", "dropout": 0.1, "layers": [6, 6]}
    assert found["cfg"] is None
    assert found["history"][0] == (1, 2.5, True)
    assert found["history"][2:] == saved["history"][2:]
    assert list(found["model"]) == list(saved["model"])
    for name, tensor in saved["model"].items():
        assert found["model"][name].dtype == tensor.array.dtype
        np.testing.assert_array_equal(found["model"][name], tensor.array)


@pytest.mark.parametrize(
    ("kind", "order"), [(np.float32, "big"), (ml_dtypes.bfloat16, "little")]
)
def test_another_byte_order_and_bfloat16_are_read(tmp_path, monkeypatch, kind, order):
    monkeypatch.setitem(TYPES, np.dtype(ml_dtypes.bfloat16), "BFloat16Storage")
    array = np.asarray([1.5, -2.0], kind)
    save_zip(tmp_path / "a", Tensor(array), order=order)
    np.testing.assert_array_equal(read_torch_file(tmp_path / "a"), array)


def write_pickle(path, pickled):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


@SAVES
@pytest.mark.parametrize(
    ("hostile", "named"),
    [
        (Call(os.mkdir, "ran"), "posix.mkdir"),
        (Call(eval, "open('ran', 'w')"), "builtins.eval|__builtin__.eval"),
        (Call(getattr, "a", "upper"), "getattr"),
        (os.mkdir, "posix.mkdir"),
        (pickle.PickleBuffer, "pickle.PickleBuffer|_pickle"),
        ({1, 2}, "set"),
        (argparse.ArgumentParser, "argparse.ArgumentParser"),
    ],
)
def test_what_is_not_data_is_refused_and_does_not_run(
    tmp_path, monkeypatch, save, hostile, named
):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "model.pt", {"model": {}, "extra": hostile})
    refused(tmp_path / "model.pt", f"it refers to .*({named})")
    assert os.listdir(tmp_path) == ["model.pt"]


PICKLES = [
    b"cos\nmkdir\n(S'ran'\ntR.",  # protocol 0
    b"\x80\x02X\x05\x00\x00\x00posixX\x05\x00\x00\x00mkdir\x93\x85R.",
    b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # not a namespace
    b"\x80\x02cargparse\nNamespace\n)R.",  # a call
    b"\x80\x02X\x17\x00\x00\x00collections.OrderedDict\x00)R.",  # a string
    b"\x80\x02X\x17\x00\x00\x00collections.OrderedDict)R.",
    b"\x80\x02(((((((.",
    b"\x80\x02.",
    b"\x80\x02]]e.",
    b"\x80\x02h\x05.",
    b"\x80\x02}]}s.",
    b"\x80\x02X\xff\xff\xff\x7fa.",
    b"\x80\x02" + 70 * b"]" + b".",
    b"\x80\x02" + 1_100_000 * b"]" + b"N.",
    b"\x80\x02U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuJ\xff\xff\xff\x7ft Q.",
]


@pytest.mark.parametrize("pickled", PICKLES, ids=range(len(PICKLES)))
def test_a_pickle_of_anything_else_is_one_error(tmp_path, monkeypatch, pickled):
    monkeypatch.chdir(tmp_path)
    write_pickle("model.pt", pickled)
    refused(tmp_path / "model.pt", r"model\.pt is not a readable file")
    assert os.listdir(tmp_path) == ["model.pt"]


@pytest.mark.parametrize(
    "how",
    [
        *({"offset": offset} for offset in (1, -1, 1 << 50)),
        *({"strides": steps} for steps in ((4,), (4, 2), (-4, 1), (4, 1.0))),
    ],
)
def test_a_tensor_must_be_within_its_storage(tmp_path, how):
    save_zip(tmp_path / "a", Tensor(np.zeros((3, 4), np.float32), **how))
    refused(tmp_path / "a", r"a tensor (is described|of offset)")


def test_strides_of_zero_do_not_make_a_tensor_larger_than_the_file(tmp_path):
    vast = np.broadcast_to(np.float32(1), (1 << 20, 1 << 19))
    storage = Storage(np.ones(3, np.float32))
    save_zip(tmp_path / "a", Tensor(vast, storage=storage, strides=(0, 0)))
    refused(tmp_path / "a", "exceeds its storage of 3 elements")


@SAVES
@pytest.mark.parametrize("how", ["storage", "names", "lists"])
def test_shared_elements_do_not_make_tensors_larger_than_the_file(tmp_path, save, how):
    array = np.ones((32, 32), np.float32)
    shared, one = Storage(array), Tensor(array)
    model = {f"w{n}": Tensor(array, storage=shared) for n in range(99)}
    if how != "storage":
        model = {f"w{n}": one for n in range(999)}
    if how == "lists":
        model = [one]
        for _ in range(99):
            model = [model, model]
    save(tmp_path / "a", {"model": model})
    refused(tmp_path / "a", "at most 8 times its")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02K\x01.", b"text\n"])
def test_other_files_are_one_error(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    refused(tmp_path / "a", "is not a readable file of torch")


NESTED = b"N\x85" + 20 * b"q\x00h\x00\x86"  # a tuple that takes 2^20 steps to hash
NAMES = {
    "dict": b"ccollections\nOrderedDict\n",
    "encode": b"c_codecs\nencode\n",
    "namespace": b"cargparse\nNamespace\n",
}


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def of_persistent_id(kind, key):
    fields = text(b"storage") + kind + key + text(b"cpu") + b"K\x01"
    return b"\x80\x02(" + fields + b"tQ."


KEYS = {
    "item": b"\x80\x02}" + NESTED + b"Ns.",
    "items": b"\x80\x02}(" + NESTED + b"Nu.",
    "pair": b"\x80\x02" + NAMES["dict"] + b"](" + NESTED + b"N\x86e\x85R.",
    "type of a storage": of_persistent_id(NESTED, text(b"0")),
    "storage": of_persistent_id(b"ctorch\nFloatStorage\n", NESTED),
    "number": b"\x80\x02}\x8a\xff" + 255 * b"\x01" + b"Ns.",
}


@pytest.mark.parametrize("pickled", KEYS.values(), ids=KEYS)
def test_keys_are_plain(tmp_path, pickled):
    write_pickle(tmp_path / "a", pickled)
    refused(tmp_path / "a", r"has the key|it refers to|instead of a str")


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    twice = b"(" + 2 * (text(b"weight") + b"K\x01") + b"u."
    write_pickle(tmp_path / "a", b"\x80\x02}" + twice)
    refused(tmp_path / "a", "a dict has one key twice")


ITEMS = b"](" + 5_000 * b"K\x01K\x02\x86" + b"eq\x01"
STATE = (
    b"}(" + b"".join(b"M" + struct.pack("<H", n) + b"N" for n in range(5_000)) + b"u"
)
COPIES = {
    "encode": b"]("
    + (text(bytes(1 << 20)) + b"q\x000" + text(b"latin1") + b"q\x010")
    + NAMES["encode"]
    + b"q\x020"
    + 200 * b"h\x02h\x00h\x01\x86R"
    + b"e.",
    "dict": ITEMS + b"0](" + 2_000 * (NAMES["dict"] + b"h\x01\x85R") + b"e.",
    "namespace": STATE
    + b"q\x010]("
    + 500 * (NAMES["namespace"] + b")\x81h\x01b")
    + b"e.",
}


@pytest.mark.parametrize("pickled", COPIES.values(), ids=COPIES)
def test_calls_do_not_copy_the_same_many_times(tmp_path, pickled):
    write_pickle(tmp_path / "a", b"\x80\x02" + pickled)
    tracemalloc.start()
    refused(tmp_path / "a", "its calls copy more")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 160 << 20


def test_a_pickle_of_the_older_container_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr("t2t_jax.exchange.readers.torch_file._MAX_PICKLE_BYTES", 1_000)
    save_legacy(tmp_path / "a", ["a" * 600])
    assert read_torch_file(tmp_path / "a") == ["a" * 600]
    save_legacy(tmp_path / "a", ["a" * 600, "b" * 600])
    refused(tmp_path / "a", "a pickle of it has more than 1,000 bytes")
