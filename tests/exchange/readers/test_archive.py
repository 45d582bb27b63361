"""Archives of strangers are refused before they are unpacked, or unpack within bounds.

Seen to fail: with `ZipFile.read`, without the check of methods, of sizes, of names.
"""

import tracemalloc
import zipfile

import numpy as np
import pytest

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.importer import find_format
from t2t_jax.exchange.readers.archive import Archive, read_npz
from t2t_jax.exchange.readers.torch_file import read_torch_file

UNPACKED = 100_000_000
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
def test_a_bomb_is_refused_without_being_unpacked(
    tmp_path, bounded, read, member, method, claimed
):
    forge(tmp_path / "model.npz", member, method, claimed=claimed)
    assert (tmp_path / "model.npz").stat().st_size < 200_000
    bounded()
    with pytest.raises(DataError, match="not a readable"):
        read(tmp_path / "model.npz")
    find_format(tmp_path)


def test_deflated_arrays_are_read(tmp_path):
    array = np.random.default_rng(3).normal(size=(7, 11)).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", a=array)
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz")["a"], array)


def test_a_directory_of_a_million_members_is_not_read(tmp_path, bounded):
    entry = b"PK\1\2" + bytes(42)
    size = len(entry) * 1_000_000
    end = b"PK\5\6" + bytes(8) + size.to_bytes(4, "little") + bytes(6)
    path = tmp_path / "a"
    path.write_bytes(entry * 1_000_000 + end)
    bounded()
    with path.open("rb") as file, pytest.raises(ValueError, match="its directory"):
        Archive(file)
