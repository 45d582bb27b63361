import gzip
import tracemalloc

import pytest

from t2t_jax.data.files.lines import MAX_LINE_BYTES, read_lines
from t2t_jax.errors import DataError


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\x85c\vd\fe\n".encode(), ["a\u2028b\x85c\vd\fe"]),
    ],
)
def test_a_line_ends_at_lf_and_nowhere_else(tmp_path, content, lines):
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    assert list(read_lines(tmp_path / "plain")) == lines
    assert list(read_lines(tmp_path / "packed.gz")) == lines


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-32", "UTF-32")],
)
def test_text_in_utf_16_is_recognized_by_name(tmp_path, encoding, name, ending):
    path = tmp_path / f"news{ending}"
    content = "The cat sleeps.\nÄ\n\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if ending else content)
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert caught.value.problems == (
        f"{path}: is {name} and not UTF-8. Convert it to UTF-8: "
        f"iconv -f {name} -t UTF-8 {path} > NEW",
    )


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda whole: whole[:-20], "it ends too early"),
        (lambda whole: b"plain text\n", "not a gzip file"),
        (lambda whole: whole[:-8] + bytes(8), "its checksum is wrong"),
        (lambda whole: whole[:2] + b"\7" + whole[3:], "its content is damaged"),
        (lambda whole: whole[:10] + b"\xff" * 99, "its content is damaged"),
    ],
    ids=["cut", "plain", "checksum", "method", "content"],
)
def test_broken_gzip_is_reported(tmp_path, damage, fault):
    whole = gzip.compress(bytes(range(32, 127)) * 100)
    (tmp_path / "news.gz").write_bytes(damage(whole))
    with pytest.raises(DataError, match=rf"news\.gz:\d+: broken gzip: {fault}\."):
        list(read_lines(tmp_path / "news.gz"))


def test_memory_is_bounded_while_a_line_is_read(tmp_path):
    # Seen to fail: with `for line in file` in `bounded_lines`, 100 MB.
    zeros = gzip.compress(b"a" * 10_000_000)
    (tmp_path / "news.gz").write_bytes(gzip.compress(b"fine\n") + 10 * zeros)
    read = read_lines(tmp_path / "news.gz")
    assert next(read) == "fine"
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"news\.gz:2: has over 1,048,576 bytes"):
            next(read)
        assert tracemalloc.get_traced_memory()[1] < 5 * MAX_LINE_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_exactly_the_limit_is_read(tmp_path, end):
    news = tmp_path / "news"
    news.write_bytes(b"a" * (MAX_LINE_BYTES - len(end)) + end)
    assert list(map(len, read_lines(news))) == [MAX_LINE_BYTES - len(end)]
    news.write_bytes(b"a" + news.read_bytes())
    with pytest.raises(DataError, match="news:1: has over"):
        list(read_lines(news))
