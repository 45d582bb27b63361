"""Jobs that come, or look, when the shards of another have just become the output.

Seen to fail: without each look at what is joined or gone (in `create`, `is_merged`,
`check_resumable`, `pending`, `try_lock`, `merge` and `_wait_until_visible`), without
either half of the record or where it comes after the shards have gone, without the lock
of joining or where it is not waited for, where shards go one by one, where every
process begins or joins, and with what others have made left uncounted, or counted
twice.
"""

import dataclasses
import errno
import itertools
import os
import shutil
import threading

import pytest

from t2t_jax.cli.modes import translate
from t2t_jax.cli.processes import start
from t2t_jax.cli.translation import sharded_job
from t2t_jax.cli.translation import shards as output_shards
from t2t_jax.cli.translation.shards import (
    OutputShards,
    is_complete,
    write_completion_record,
)
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, OutputError
from tests.cli.threads import on_all
from tests.cli.translations import (
    SPOKEN,
    Loud,
    killed_in,
    lines_of,
    loader,
    options_of,
)

JOB = ("--output=out", "--shards=3")
pytestmark = pytest.mark.usefixtures("place")


def test_a_job_that_comes_late_leaves_what_is_there(place, speak, capsys):
    speak(*JOB)
    was = os.stat("out")
    assert speak(*JOB, "--resume").calls == []
    assert os.stat("out") == was
    assert "All 7 lines were translated before.\n" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


@pytest.mark.parametrize("gone", ["out", "out.shards.json"])
def test_an_output_that_is_gone_is_made_again(place, speak, gone):
    speak(*JOB)
    (place / gone).unlink()
    assert len(speak(*JOB, "--resume").calls) == 3
    assert lines_of("out") == SPOKEN


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("--format=tsv",), "--format was '' and is 'tsv'"),
        (("--checkpoint=7",), "--checkpoint was 'best' and is '7'"),
        (("--beam_size=1",), "config.decoding.beam_size was 4 and is 1"),
        (("--format=tsv", "--n_best=2"), "config.decoding.n_best was 1 and is 2"),
        (("--prefixes=in",), "the content of --prefixes was None and is"),
        (("--ensemble=run",), r"--ensemble was \[\] and is \['run'\]"),
        (("--shards=2",), "--shards was 3 and is 2"),
    ],
)
def test_a_finished_output_of_other_settings_is_refused(
    speak, monkeypatch, argv, reason
):
    speak(*JOB)
    was = os.stat("out")
    # Before a model is loaded.
    monkeypatch.delattr(sharded_job, "load_job")
    message = rf"out is complete and was made with other settings: .*{reason}"
    with pytest.raises(ConfigError, match=message):
        translate.run(options_of(*JOB, *argv, "--resume"))
    assert os.stat("out") == was
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


def test_a_finished_output_of_another_model_or_text_is_refused(place, speak):
    speak(*JOB)
    with pytest.raises(ConfigError, match="the content of the checkpoint was"):
        speak(*JOB, "--resume", loud=Loud(bias=1.0))
    (place / "in").write_text("other\n")
    with pytest.raises(ConfigError, match="the content of --input was"):
        speak(*JOB, "--resume")
    assert lines_of("out") == SPOKEN


def test_a_finished_output_that_was_edited_is_not_replaced(place, speak):
    speak(*JOB)
    (place / "out").write_text("corrected by hand\n")
    with pytest.raises(OutputError, match="out has been modified since it was written"):
        speak(*JOB, "--resume")
    assert lines_of("out") == ["corrected by hand"]
    assert len(speak(*JOB).calls) == 3


def test_without_resume_a_job_begins_again(speak):
    speak(*JOB)
    assert len(speak(*JOB).calls) == 3
    killed_in(4, speak, "--shards=3")
    # What was joined before does not count where something is under way.
    assert [first for first, _ in speak(*JOB, "--resume").calls] == [4]


def test_what_is_written_down_is_compared_as_json(place):
    write_completion_record(place / "in", {"steps": (7, 8)})
    assert is_complete(place / "in", {"steps": (7, 8)})
    assert not is_complete(place / "in", {"steps": (7,)})


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
    monkeypatch.setattr(sharded_job, "SHARED_FS_TIMEOUT", 0.1)
    begin, others = OutputShards.create, []

    def begun(shards, made_of, *, resume):
        begin(shards, made_of, resume=resume)
        if not others:
            others.append(None)
            others.append(speak(*JOB, "--resume"))

    monkeypatch.setattr(OutputShards, "create", begun)
    late = Loud()
    speak(*JOB, loud=late)
    assert [len(others[1].calls), late.calls] == [3, []]
    assert lines_of("out") == SPOKEN


def test_a_directory_that_does_not_come_to_be_seen_is_named(speak, monkeypatch):
    monkeypatch.setattr(sharded_job, "SHARED_FS_TIMEOUT", 0.1)
    monkeypatch.setattr(OutputShards, "create", lambda shards, made_of, *, resume: None)
    with pytest.raises(OutputError, match="a file system that all processes share"):
        speak(*JOB)


def test_a_directory_that_is_not_the_one_that_was_begun_is_refused(speak, monkeypatch):
    begin = OutputShards.create

    def begin_another(shards, made_of, *, resume):
        begin(shards, {}, resume=resume)

    monkeypatch.setattr(OutputShards, "create", begin_another)
    with pytest.raises(
        ConfigError, match="was made with other settings: --mode was None and is"
    ):
        speak(*JOB)


def test_shards_that_go_while_they_are_listed_are_done(place, monkeypatch):
    shards = OutputShards(place / "out", count=3, lines=7)
    shards.create({}, resume=False)
    assert shards.pending() == [0, 1, 2]
    listed = os.listdir

    def gone(path):
        shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(output_shards.os, "listdir", gone)
    assert shards.pending() == []


def test_shards_that_go_while_they_are_compared_are_no_fault(place, monkeypatch):
    shards = OutputShards(place / "out", count=3, lines=7)
    shards.create({}, resume=False)
    read = output_shards.read_json_object

    def gone(path, *, advice):
        shutil.rmtree(path.parent)
        return read(path, advice=advice)

    monkeypatch.setattr(output_shards, "read_json_object", gone)
    shards.check_resumable({"the step": 7}, resume=True)


def begun(place):
    shards = OutputShards(place / "out", count=2, lines=2)
    shards.create({}, resume=False)
    for number in range(2):
        shards.write(number, [str(number)])
    return shards


def test_what_is_under_way_is_not_joined_whatever_was_before(place):
    write_completion_record(place / "in", {})
    shards = OutputShards(place / "in", count=2, lines=2)
    assert shards.is_merged({})
    shards.create({}, resume=False)
    assert not shards.is_merged({})


def test_of_two_that_begin_at_once_the_second_is_refused(place):
    begun(place)
    late = OutputShards(place / "out", count=2, lines=2)
    with pytest.raises(OutputError, match="Pass --resume to continue it"):
        late.create({}, resume=False)
    late.create({}, resume=True)
    assert sorted(os.listdir()) == ["in", "out.shards", "run"]


def test_a_shard_that_another_has_made_meanwhile_is_not_made_again(place):
    with begun(place).try_lock(1) as is_mine:
        assert not is_mine


def test_a_shard_that_another_has_joined_meanwhile_is_not_made_again(place):
    with OutputShards(place / "out", count=2, lines=2).try_lock(1) as is_mine:
        assert not is_mine


def test_of_two_that_are_done_at_once_one_joins_while_the_other_waits(
    place, monkeypatch
):
    shards, joined, others = begun(place), [], []
    keep = output_shards.write_completion_record

    def kept(output, made_of):
        joined.append(output)
        if not others:
            others.append(threading.Thread(target=shards.merge))
            others[0].start()
            others[0].join(timeout=0.2)
            assert others[0].is_alive()
        keep(output, made_of)

    monkeypatch.setattr(output_shards, "write_completion_record", kept)
    shards.merge()
    others[0].join(timeout=20)
    assert joined == [place / "out"]
    assert lines_of("out") == ["0", "1"]


def test_shards_go_all_at_once_and_when_the_file_is_on_record(place, monkeypatch):
    shards, gone = begun(place), []
    rename, remove = os.rename, shutil.rmtree

    def renamed(source, to):
        assert is_complete(place / "out", {})
        rename(source, to)

    def removed(path, **how):
        gone.append(path)
        assert not shards.directory.exists()
        remove(path, **how)

    monkeypatch.setattr(output_shards.os, "rename", renamed)
    monkeypatch.setattr(output_shards.shutil, "rmtree", removed)
    shards.merge()
    assert len(gone) == 1
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


def test_what_another_makes_is_counted_once_and_not_made(place):
    shards = OutputShards(place / "out", count=4, lines=8)
    shards.create({}, resume=False)
    turns = []
    for shard, is_mine in sharded_job._claim_shards(shards, Processes()):
        turns.append((shard, is_mine))
        for made in {0: (0, 2), 1: (1, 3)}.get(shard, ()):
            shards.write(made, ["a", "b"])
    assert turns == [(0, True), (2, False), (1, True), (3, False)]


def test_of_several_processes_one_begins_and_one_joins(place, monkeypatch):
    calls, begin, join = [], OutputShards.create, OutputShards.merge

    def begun(shards, made_of, *, resume):
        calls.append("begin")
        begin(shards, made_of, resume=resume)

    def joined(shards):
        calls.append("join")
        join(shards)

    monkeypatch.setattr(OutputShards, "create", begun)
    monkeypatch.setattr(OutputShards, "merge", joined)
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)
    parts = [Loud(), Loud()]
    monkeypatch.setattr(
        sharded_job,
        "load_job",
        lambda options: loader(parts[options.processes.index])(options),
    )

    chosen = options_of(*JOB)

    def job(processes):
        return translate.run(dataclasses.replace(chosen, processes=processes))

    assert on_all(job, count=2) == [0, 0]
    assert calls == ["begin", "join"]
    assert lines_of("out") == SPOKEN
    assert sum(len(loud.calls) for loud in parts) == 3
