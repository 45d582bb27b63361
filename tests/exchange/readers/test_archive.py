"""Archives of strangers are refused before they are unpacked, or unpack within bounds.

Seen to fail: with `ZipFile.read`, without the check of methods, of sizes, of names.
"""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.importer import find_format
from t2t_jax.exchange.readers.archive import Archive, read_npz
from t2t_jax.exchange.readers.torch_file import read_torch_file

UNPACKED = 20_000_000
METHODS = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
READERS = pytest.mark.parametrize(
    ("read", "member"),
    [(read_npz, "special:model.yml.npy"), (read_torch_file, "m/data.pkl")],
)


def forge(path, member, method, *, claimed=None):
    """Writes an archive of zeros, which may claim another size."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(member, bytes(UNPACKED))
    if claimed is not None:
        content = bytearray(path.read_bytes())
        directory = content.index(b"PK\1\2")
        for place in (22, directory + 24):
            content[place : place + 4] = claimed.to_bytes(4, "little")
        path.write_bytes(content)


def refused(path, message):
    with pytest.raises(DataError, match=message):
        read_npz(path)


@pytest.fixture
def bounded():
    """Fails where more than 10 MB are held at once."""
    tracemalloc.start()
    yield tracemalloc.reset_peak
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@READERS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("claimed", [None, 1_000])
def test_a_bomb_is_never_unpacked(tmp_path, bounded, read, member, method, claimed):
    forge(tmp_path / "model.npz", member, method, claimed=claimed)
    assert (tmp_path / "model.npz").stat().st_size < 200_000
    bounded()
    with pytest.raises(DataError, match="not a readable"):
        read(tmp_path / "model.npz")
    find_format(tmp_path)


def test_a_directory_of_a_million_members_is_not_read(tmp_path, bounded):
    entry = b"PK\1\2" + bytes(42)
    size = len(entry) * 1_000_000
    end = b"PK\5\6" + bytes(8) + size.to_bytes(4, "little") + bytes(6)
    path = tmp_path / "a"
    path.write_bytes(entry * 1_000_000 + end)
    bounded()
    with path.open("rb") as file, pytest.raises(ValueError, match="its directory"):
        Archive(file)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_saved_is_read(tmp_path, save):
    rng = np.random.default_rng(3)
    saved = {
        "encoder_l1_self_Wq": rng.normal(size=(4, 3)).astype(np.float32),
        "special:model.yml": np.frombuffer(b"dim-emb: 4\0\0", np.int8),
        "fortran": np.asfortranarray(rng.normal(size=(2, 5))),
        "number": np.int64(7).reshape(()),
        "empty": np.zeros((0, 2), np.float16),
    }
    path = tmp_path / "model.npz"
    save(path, **saved)
    found = read_npz(path)
    assert found.keys() == saved.keys()
    for name, array in saved.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def write_member(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", content)


def test_a_shape_that_the_file_does_not_have_allocates_nothing(tmp_path):
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 1 << 20)}
    np.lib.format.write_array_header_1_0(file, header)
    write_member(tmp_path / "a.npz", file.getvalue() + bytes(64))
    refused(tmp_path / "a.npz", r"a\.npz is not a readable .*another size")


@pytest.mark.parametrize("name", ["Wemb", "Wemb\0x.npy"])
def test_two_arrays_of_one_name_are_refused(tmp_path, name):
    np.savez(tmp_path / "a.npz", Wemb=np.ones(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr(name, archive.read("Wemb.npy"))
    refused(tmp_path / "a.npz", r"two arrays have one name|twice")


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.asarray([{1}], object))
    refused(tmp_path / "a.npz", "an array of type object")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"a\n"),
        b"\x93NUMPY\x01\x00\x88\x13" + b"{" * 5_000,  # NumPy reads it as Python
    ],
)
def test_other_files_are_one_error(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    refused(tmp_path / "a", r"a is not a readable \.npz file")
    write_member(tmp_path / "a", content)
    refused(tmp_path / "a", r"a is not a readable \.npz file")
