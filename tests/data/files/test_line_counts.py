import gzip
import os

import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.files.file_facts import count_lines
from t2t_jax.errors import DataError


@pytest.mark.parametrize("kept", [1 / 2, 0.9])
def test_a_gzip_cut_short_is_bad_data_also_where_it_is_only_counted(tmp_path, kept):
    whole = gzip.compress(os.urandom(99_999).hex().encode() + b"\n")
    for side in ("en", "de"):
        path = tmp_path / f"a.{side}.gz"
        path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=r"a\.en\.gz: broken gzip"):
        open_corpus(f"text:{tmp_path}/a.en.gz,{tmp_path}/a.de.gz[:1%]")
    with pytest.raises(DataError, match="broken gzip"):
        count_lines(path)
