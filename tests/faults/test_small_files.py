"""Small files that are directories, pipes or devices: one line, at once, 65 or 66.

Seen to fail: without `require_file` in files.py and in metrics_writer.py, without
`config_files.resolve`, and with the lock opened as any file is.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from t2t_jax.files import read_json_object
from tests.faults.running import main_refuses

pytestmark = pytest.mark.usefixtures("nothing_trained")

KINDS = {
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
}
TEXT = ["--source=text", "--reference=text"]
FEW = "--config.data.train=phrasebook:train:9"
MODES = {
    "train": ["--config.steps=3"],
    "prepare": [],
    "translate": ["--input=text"],
    "evaluate": TEXT,
    "score": TEXT,
    "average": ["--to=mean", "--last=1"],
    "export": ["--format=model_dir", "--to=out"],
    "describe": ["--devices=1"],
    "attention": ["--text=a", "--to=pictures"],
    "show_batch": ["--step=1"],
}
READ_BY_ALL = ("config.json", "overrides.json")
READ_BY = {
    **dict.fromkeys(READ_BY_ALL, MODES),
    "fingerprints.json": ("train", "prepare", "translate", "show_batch"),
    "vocab.model": ("train", "prepare", "evaluate", "score", "average", "export"),
    "data.json": ("train", "prepare"),
    "data_report.txt": ("train", "prepare"),
    "vocab.json": ("train",),
    "metrics.jsonl": ("train", "prepare", "show_batch"),
    "lock": ("train", "prepare", "recover"),
    "checkpoints/1/meta/metadata": ("translate", "average"),
    "checkpoints": ("train", "translate"),
}
CASES = [
    (name, mode, kind)
    for name, modes in READ_BY.items()
    for mode in modes
    for kind in KINDS
    if kind in ("directory", "pipe") or (name in READ_BY_ALL and mode == "train")
    if (name, kind) != ("checkpoints", "directory")
]


def refused(capsys, argv, codes=(65, 66)):
    began = time.monotonic()
    errors = main_refuses(capsys, argv, codes)
    told = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(told) == 1, errors
    # A bound against waiting for a pipe, which no one ever writes to.
    assert time.monotonic() - began < 60
    return errors


@pytest.mark.parametrize(("name", "mode", "kind"), CASES)
def test_a_file_of_another_kind_is_told_in_one_line(copy, capsys, name, mode, kind):
    Path("text").write_text("a\n")
    place = copy / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    KINDS[kind](place)
    argv = [f"--mode={mode}", f"--workdir={copy}", *MODES.get(mode, [])]
    codes = (65, 66, 73) if (name, mode) == ("lock", "recover") else (65, 66)
    errors = refused(capsys, argv, codes)
    assert name.split("/")[0] in errors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "flags",
    [
        ["--config={}"],
        ["--mode=evaluate", "--source={}", "--reference=text"],
        ["--mode=evaluate", "--source=text", "--reference={}"],
        ["--mode=score", "--source={}", "--reference=text"],
        ["--mode=prepare", "--config.data.train=text:{},text"],
        ["--mode=prepare", FEW, "--config.data.dev=text:text,{}"],
        ["--mode=prepare", FEW, "--config.vocabulary.file={}"],
    ],
    ids=" ".join,
)
def test_a_file_of_a_flag_is_told_in_one_line(one_step, tmp_path, capsys, flags, kind):
    Path("text").write_text("a\n")
    KINDS[kind](tmp_path / "odd")
    argv = [flag.format(tmp_path / "odd") for flag in flags]
    is_read = argv[0] in ("--mode=evaluate", "--mode=score")
    workdir = one_step if is_read else tmp_path / "run"
    errors = refused(capsys, [*argv, f"--workdir={workdir}"])
    assert "odd" in errors


def test_a_directory_to_translate_is_told_in_one_line(one_step, capsys):
    Path("odd").mkdir()  # A pipe may be translated.
    refused(capsys, ["--mode=translate", f"--workdir={one_step}", "--input=odd"])


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("x" * 300, 64, "must be a valid path"),
        ("a/" * 2_100, 66, "cannot be read: File name too long"),
        ("loop", 66, "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["long", "deep", "loop"],
)
@pytest.mark.parametrize("mode", ["train", "translate", "recover"])
def test_a_workdir_that_cannot_be_looked_for_is_told(capsys, mode, name, code, why):
    Path("loop").symlink_to("loop")
    errors = refused(capsys, [f"--mode={mode}", f"--workdir={name}"], (code,))
    assert why in errors


@pytest.mark.parametrize("name", ["config.json", "fingerprints.json"])
def test_a_file_that_may_not_be_read_is_told(copy, capsys, monkeypatch, name):
    def denied(path, **_):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return read_json_object(path, **_)

    monkeypatch.setattr("t2t_jax.run.workdir.read_json_object", denied)
    errors = refused(capsys, ["--mode=prepare", f"--workdir={copy}"], (66,))
    assert f"{copy / name} cannot be read: Permission denied. Fix" in errors
