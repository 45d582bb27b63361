"""Which directories are checkpoints, and what happens to the others.

Seen to fail: with `_is_step` always true (an empty folder is a step), and with
`exists` in its place in `recover` (an empty folder costs the checkpoint).
"""

import pytest

from t2t_jax.checkpointing.step_dirs import StepDirs


@pytest.fixture
def folders(tmp_path):
    return StepDirs(tmp_path / "checkpoints")


def make(folders, name, text="{}"):
    meta = folders.directory / str(name) / "meta"
    meta.mkdir(parents=True)
    (meta / "metadata").write_text(text)
    return meta.parent


def text_of(folders, name):
    return (folders.directory / name / "meta" / "metadata").read_text()


def names(folders):
    return sorted(path.name for path in folders.directory.iterdir())


def test_only_a_folder_of_a_plain_number_with_something_in_it_is_a_step(folders):
    for name in (5, 10, "007", "12.orbax-checkpoint-tmp", "corrupt-11", "-3", "²"):
        make(folders, name)
    (folders.directory / "99").mkdir()
    (folders.directory / "100").write_text("notes")
    (folders.directory / "101").mkdir()
    (folders.directory / "101" / "notes").write_text("")
    (folders.directory / "8" / "params").mkdir(parents=True)  # What is left of one.
    assert folders.steps() == [5, 8, 10]
    assert folders.stray_dirs() == ["100", "101", "99", "corrupt-11"]


def test_a_stray_entry_does_not_prevent_the_restore_of_a_replaced_checkpoint(folders):
    make(folders, "replaced-5")
    make(folders, "7.orbax-checkpoint-tmp")
    make(folders, "corrupt-3")
    make(folders, "replaced-7", '{"old": 1}')
    (folders.directory / "7").mkdir()
    make(folders, "replaced-9", '{"old": 2}')
    (folders.directory / "9").write_text("notes")
    folders.recover()
    assert names(folders) == ["5", "7", "9", "corrupt-3", "stray-7", "stray-9"]
    assert text_of(folders, "7") == '{"old": 1}'
    assert text_of(folders, "9") == '{"old": 2}'


def test_after_a_crash_a_checkpoint_that_was_replaced_is_removed(folders):
    make(folders, "replaced-7", '{"old": 1}')
    make(folders, 7, '{"new": 1}')
    for name in (
        "removed-5",
        "removed-replaced-5-2",
        "removed-probe-0",
        "replaced-7-2",
    ):
        make(folders, name)
    for name in ("removed-outliers", "replaced-names"):  # The user's.
        make(folders, name)
    folders.recover()
    assert names(folders) == ["7", "removed-outliers", "replaced-names"]
    assert text_of(folders, "7") == '{"new": 1}'
