import os

import pytest

from t2t_jax.cli.console.output_dir import OutputDirectory
from t2t_jax.errors import OutputError


def test_a_new_directory_is_made_and_its_files_are_named_on_stdout(tmp_path, capsys):
    to = OutputDirectory(str(tmp_path / "a" / "b"))
    to.write("one.txt", "ä")
    to.write("two.bin", b"\x00")
    assert (tmp_path / "a" / "b" / "one.txt").read_bytes() == "ä".encode()
    assert (tmp_path / "a" / "b" / "two.bin").read_bytes() == b"\x00"
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "a" / "b" / "one.txt"),
        str(tmp_path / "a" / "b" / "two.bin"),
    ]


def test_files_are_replaced_and_others_are_left(tmp_path):
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "theirs").write_text("old")
    OutputDirectory(str(tmp_path)).write("theirs", "new")
    assert (tmp_path / "mine").read_text() == "kept"
    assert (tmp_path / "theirs").read_text() == "new"


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot create --to="):
        OutputDirectory(str(tmp_path / "file"))


def test_a_directory_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(OutputError, match="is not writable"):
        OutputDirectory(str(tmp_path))
