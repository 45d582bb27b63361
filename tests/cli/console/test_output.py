import os

import pytest

from t2t_jax.cli.console.output import OutputDirectory, OutputPage
from t2t_jax.errors import OutputError


def test_files_are_replaced_others_are_left_and_paths_are_printed(tmp_path, capsys):
    folder = tmp_path / "a" / "b"
    OutputDirectory(str(folder)).write("mine", "kept")
    to = OutputDirectory(str(folder))
    to.write("theirs", b"old")
    to.write("theirs", "ä")
    assert (folder / "mine").read_text() == "kept"
    assert (folder / "theirs").read_bytes() == "ä".encode()
    printed = [str(folder / name) for name in ("mine", "theirs", "theirs")]
    assert capsys.readouterr().out.splitlines() == printed


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot create --to=.*file: File exists"):
        OutputDirectory(str(tmp_path / "file"))
    with pytest.raises(OutputError, match=r"file is not a directory\. Choose another"):
        OutputPage(tmp_path / "file" / "page.html")
    with pytest.raises(OutputError, match="it is a directory"):
        OutputPage(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    for kind, path in ((OutputDirectory, tmp_path), (OutputPage, tmp_path / "page")):
        with pytest.raises(OutputError, match=r"is not writable\."):
            kind(str(path))
