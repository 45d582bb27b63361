import gzip
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.cli.console.text_io import io_errors_as_user_errors
from t2t_jax.cli.translation import line_index
from t2t_jax.cli.translation.line_index import LineIndex
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
        patch.setattr(line_index, "_STRIDE", 3)
        found = LineIndex(str(path))
        assert found.count == len(lines)
        assert (
            list(found.read_range(min(first, len(lines)), min(end, len(lines))))
            == (lines[first:end])
        )


def test_the_hash_is_that_of_the_text_packed_or_not(tmp_path):
    (tmp_path / "a").write_bytes(b"a\nb\n")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "c").write_bytes(b"a\nb")
    first, same, other = (
        LineIndex(str(tmp_path / name)).sha256 for name in ("a", "b.gz", "c")
    )
    assert first == same != other


def test_what_is_wrong_with_a_file_names_its_flag(tmp_path):
    with pytest.raises(InputMissingError, match=r"--prefixes=.*no must be a file"):
        LineIndex(str(tmp_path / "no"), flag="prefixes")
    (tmp_path / "x.gz").write_bytes(b"a\n")
    with pytest.raises(DataError, match=r"--input=.*x\.gz is broken gzip"):
        LineIndex(str(tmp_path / "x.gz"))


def test_what_the_system_has_no_word_for_is_told_all_the_same():
    with pytest.raises(InputMissingError, match=r"that can be read: not seekable\."):
        with io_errors_as_user_errors("pipe"):
            raise io.UnsupportedOperation("not seekable")


@pytest.fixture
def four(tmp_path):
    path = tmp_path / "four"
    path.write_bytes(b"a\nb\nc\nd\n")
    return path


def change(path, content, *, later):
    """Writes a file anew, whose clock goes on or stands still."""
    was = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns + later))


@pytest.mark.parametrize("begun", [0, 1])
@pytest.mark.parametrize(
    ("content", "later"),
    [
        (b"a\nb\n", 0),  # cut
        (b"a\nb\nc\nd\ne\n", 0),
        (b"x\nb\nc\nd\n", 1),  # edited, some time later
    ],
)
def test_what_has_changed_is_not_read_on(four, begun, content, later):
    found = LineIndex(str(four), flag="prefixes")
    stretch = found.read_range(0, 4)
    before = [next(stretch) for _ in range(begun)]
    change(four, content, later=later)
    with pytest.raises(DataError, match=r"--prefixes=.*four has changed since the job"):
        list(stretch) if begun else next(stretch)  # Nothing is handed out first.
    assert before == ["a"] * begun


def test_a_stretch_has_all_its_lines_whatever_the_clock_says(four):
    found = LineIndex(str(four))
    change(four, b"a b c\nd\n", later=0)
    with pytest.raises(DataError, match="has changed since the job began"):
        list(found.read_range(2, 4))


def test_what_changes_while_it_is_read_through_is_refused(four, monkeypatch):
    class Late:
        def update(self, line):
            change(four, b"a\nb\nc\nd\n", later=1)

        def hexdigest(self):
            return ""

    monkeypatch.setattr(line_index.hashlib, "sha256", Late)
    with pytest.raises(DataError, match="has changed since the job began"):
        LineIndex(str(four))


def test_a_file_that_is_the_same_again_is_read_on(four):
    found = LineIndex(str(four))
    four.rename(four.with_name("aside"))
    four.write_bytes(b"a\nb\nc\nd\n")
    was = four.with_name("aside").stat()
    os.utime(four, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert list(found.read_range(1, 3)) == ["b", "c"]
