"""Jobs that come, or look, when the shards of another have just become the output."""

import errno
import itertools
import os
import shutil

import pytest

from t2t_jax.cli import output_shards, sharded_translation
from t2t_jax.cli.output_record import is_recorded, keep_record
from t2t_jax.cli.output_shards import OutputShards
from t2t_jax.errors import DataError, OutputError
from tests.cli.translations import SPOKEN, Loud, killed_in, lines_of

JOB = ("--output=out", "--shards=3")
pytestmark = pytest.mark.usefixtures("place")


def test_a_job_that_comes_late_leaves_what_is_there(place, speak, capsys):
    speak(*JOB)
    was = os.stat("out")
    assert speak(*JOB, "--resume").calls == []
    assert os.stat("out") == was
    assert "All 7 lines were there before.\n" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


@pytest.mark.parametrize(
    ("content", "argv"),
    [
        (None, JOB),
        ("0:A\n", JOB),
        ("", (*JOB, "--format=tsv")),
        ("", (*JOB, "--checkpoint=7")),
    ],
)
def test_what_is_not_there_as_it_was_made_is_made_again(place, speak, content, argv):
    speak(*JOB)
    if content:
        (place / "out").write_text(content)
    elif content is None:
        (place / "out").unlink()
    assert len(speak(*argv, "--resume").calls) == 3
    if argv == JOB:
        assert lines_of("out") == SPOKEN


def test_another_model_translates_again(speak):
    speak(*JOB)
    assert len(speak(*JOB, "--resume", loud=Loud(bias=1.0)).calls) == 3


def test_without_resume_a_job_begins_again(speak):
    speak(*JOB)
    assert len(speak(*JOB).calls) == 3
    killed_in(4, speak, "--shards=3")
    # What was joined before does not count where something is under way.
    assert [first for first, _ in speak(*JOB, "--resume").calls] == [4]


def test_what_is_written_down_is_compared_as_json(place):
    keep_record(place / "in", {"steps": (7, 8)})
    assert is_recorded(place / "in", {"steps": (7, 8)})
    assert not is_recorded(place / "in", {"steps": (7,)})


def test_a_damaged_record_is_named(place, speak):
    speak(*JOB)
    (place / "out.shards.json").write_text("{")
    with pytest.raises(DataError, match=r"out\.shards\.json is damaged.*\n?Remove it"):
        speak(*JOB, "--resume")


def test_a_job_whose_shards_another_joins_as_it_begins_is_done(speak, monkeypatch):
    """The other one is there from before the directory is looked for to the end."""
    killed_in(4, speak, "--shards=3")
    rename, others, processes = os.rename, [], itertools.count()

    def renamed(source, to):
        if others or to.name != "out.shards":
            return rename(source, to)
        others.append(None)
        others.append(speak(*JOB, "--resume"))
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(output_shards.os, "rename", renamed)
    monkeypatch.setattr(output_shards, "_this_process", lambda: str(next(processes)))
    late = Loud()
    speak(*JOB, "--resume", loud=late)
    assert [len(others[1].calls), late.calls] == [1, []]
    assert lines_of("out") == SPOKEN


def test_a_job_whose_shards_another_joins_once_it_has_begun_is_done(speak, monkeypatch):
    monkeypatch.setattr(sharded_translation, "VISIBLE_SECONDS", 0.1)
    begin, others = OutputShards.begin, []

    def begun(shards, made_of, *, resume):
        begin(shards, made_of, resume=resume)
        if not others:
            others.append(None)
            others.append(speak(*JOB, "--resume"))

    monkeypatch.setattr(OutputShards, "begin", begun)
    late = Loud()
    speak(*JOB, loud=late)
    assert [len(others[1].calls), late.calls] == [3, []]
    assert lines_of("out") == SPOKEN


def test_a_directory_that_does_not_come_to_be_seen_is_named(speak, monkeypatch):
    monkeypatch.setattr(sharded_translation, "VISIBLE_SECONDS", 0.1)
    monkeypatch.setattr(OutputShards, "begin", lambda shards, made_of, *, resume: None)
    with pytest.raises(OutputError, match="a file system that all processes share"):
        speak(*JOB)


def test_shards_that_go_while_they_are_listed_are_done(place, monkeypatch):
    shards = OutputShards(place / "out", count=3, lines=7)
    shards.begin({}, resume=False)
    assert shards.unfinished() == [0, 1, 2]
    listed = os.listdir

    def gone(path):
        shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(output_shards.os, "listdir", gone)
    assert shards.unfinished() == []


def test_shards_that_go_while_they_are_compared_are_no_fault(place, monkeypatch):
    shards = OutputShards(place / "out", count=3, lines=7)
    shards.begin({}, resume=False)
    read = output_shards.read_object

    def gone(path, *, mend):
        shutil.rmtree(path.parent)
        return read(path, mend=mend)

    monkeypatch.setattr(output_shards, "read_object", gone)
    shards.require({"the step": 7}, resume=True)
