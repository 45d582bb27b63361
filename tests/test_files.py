import pytest

from t2t_jax.files import write_whole


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "größe.txt"
    write_whole(path, "eins")
    write_whole(path, b"zwei")
    assert path.read_bytes() == b"zwei"
    assert [p.name for p in tmp_path.iterdir()] == ["größe.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_whole(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
