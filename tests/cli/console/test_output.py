import os

import pytest

from t2t_jax.cli.console.output import check_page, make_directory, write_file
from t2t_jax.errors import OutputError


def test_files_are_replaced_others_are_left_and_paths_are_printed(tmp_path, capsys):
    folder = make_directory(str(tmp_path / "a" / "b"))
    (folder / "mine").write_text("kept")
    for content in (b"old", "ä"):
        write_file(make_directory(str(folder)) / "theirs", content)
    assert (folder / "mine").read_text() == "kept"
    assert (folder / "theirs").read_bytes() == "ä".encode()
    assert capsys.readouterr().out == f"{folder / 'theirs'}\n" * 2


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot create --to=.*file: File exists"):
        make_directory(str(tmp_path / "file"))
    with pytest.raises(OutputError, match=r"file is not a directory\. Choose another"):
        check_page(tmp_path / "file" / "page.html")
    with pytest.raises(OutputError, match="it is a directory"):
        check_page(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    for check, path in ((make_directory, tmp_path), (check_page, tmp_path / "page")):
        with pytest.raises(OutputError, match=r"is not writable\."):
            check(str(path))
