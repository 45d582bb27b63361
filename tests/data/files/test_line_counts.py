import gzip
import os
import random

import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.files import file_facts
from t2t_jax.data.files.file_facts import estimate_lines
from t2t_jax.errors import DataError


@pytest.fixture(params=["lines", "lines.gz"])
def write(request, tmp_path):
    """Writes a file, plain and packed."""

    def write(text: bytes):
        path = tmp_path / request.param
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path

    return write


def test_large_files_are_estimated_by_the_share_of_their_bytes_that_was_read(
    write, monkeypatch
):
    monkeypatch.setattr(file_facts, "_BLOCK", 1 << 16)
    lines = [b"%030x\n" % random.Random(n).getrandbits(120) for n in range(200_000)]
    path = write(b"".join(lines))
    number, is_exact = estimate_lines(path, budget=1 << 20)
    assert not is_exact
    # Of a packed file up to 128 kB more are read than are unpacked.
    assert number == pytest.approx(200_000, rel=0.05 if path.suffix == ".gz" else 1e-3)


@pytest.mark.parametrize("kept", [1 / 2, 0.9])
def test_a_gzip_cut_short_is_bad_data_also_where_it_is_only_counted(tmp_path, kept):
    whole = gzip.compress(os.urandom(99_999).hex().encode() + b"\n")
    for side in ("en", "de"):
        path = tmp_path / f"a.{side}.gz"
        path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=r"a\.en\.gz: broken gzip"):
        open_corpus(f"text:{tmp_path}/a.en.gz,{tmp_path}/a.de.gz[:1%]")
    with pytest.raises(DataError, match="broken gzip"):
        estimate_lines(path, budget=10)
