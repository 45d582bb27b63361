import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.cli import stretches
from t2t_jax.cli.stretches import NumberedLines
from t2t_jax.errors import DataError, InputMissingError


@settings(deadline=None)
@given(st.data())
def test_any_stretch_is_that_of_the_whole_file(tmp_path_factory, data):
    lines = data.draw(st.lists(st.sampled_from(["", "a", "ü\u2028", "x" * 30])))
    last_end = data.draw(st.sampled_from(["\n", ""])) if lines and lines[-1] else "\n"
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    first, end = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 50))
    path = tmp_path_factory.getbasetemp() / f"stretch.txt{suffix}"
    content = ("\n".join(lines) + last_end).encode() if lines else b""
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_STRIDE", 3)
        found = NumberedLines(str(path))
        assert found.count == len(lines)
        assert (
            list(found.stretch(min(first, len(lines)), min(end, len(lines))))
            == (lines[first:end])
        )


def test_the_hash_is_that_of_the_text_packed_or_not(tmp_path):
    (tmp_path / "a").write_bytes(b"a\nb\n")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "c").write_bytes(b"a\nb")
    first, same, other = (
        NumberedLines(str(tmp_path / name)).sha256 for name in ("a", "b.gz", "c")
    )
    assert first == same != other


def test_what_is_wrong_with_a_file_names_its_flag(tmp_path):
    with pytest.raises(InputMissingError, match=r"--prefixes=.*no must be a file"):
        NumberedLines(str(tmp_path / "no"), flag="prefixes")
    (tmp_path / "x.gz").write_bytes(b"a\n")
    with pytest.raises(DataError, match=r"--input=.*x\.gz is broken gzip"):
        NumberedLines(str(tmp_path / "x.gz"))
