"""A file translated by shards, with a model that is none.

That a job which was killed goes on, and that processes share its shards, is seen in
tests/integration. Seen to fail: without the look at what shards were made of (a file of
two halves), without the lock of a shard (one translated twice), where shards are merged
before all are there, without either half of the record or where it comes after the
shards have gone, without the lock of merging or where it is not waited for.
"""

import dataclasses
import fcntl
import gzip
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.cli import processes as start
from t2t_jax.cli.modes import translate
from t2t_jax.cli.translation import sharded_job
from t2t_jax.cli.translation.sharded_job import LineIndex, OutputShards
from t2t_jax.errors import ConfigError, DataError, OutputError
from tests.cli import threads
from tests.cli.translations import SPOKEN, Killed, Loud, lines_of, loader, options_of

pytestmark = pytest.mark.usefixtures("place")

JOB = ("--output=out", "--shards=3")
FINISHED = ["in", "out", "out.shards.json", "run"]


@pytest.fixture
def killed_in(speak):
    """Runs a job that ends as soon as it begins with a line."""

    def run(line, *argv):
        class Mortal(Loud):
            def iter_translations(self, lines, *, first=0, **beside):
                if first >= line:
                    raise Killed
                yield from super().iter_translations(lines, first=first, **beside)

        with pytest.raises(Killed):
            speak("--output=out", *argv, loud=Mortal())

    return run


@pytest.fixture(params=["finished", "killed"])
def earlier(request, speak, killed_in):
    """A job that is finished, or has two of its three shards."""
    if request.param == "finished":
        speak(*JOB)
    else:
        killed_in(4, "--shards=3")


def test_a_finished_output_is_kept_by_resume_and_replaced_without(speak, capsys):
    speak(*JOB)
    was = os.stat("out")
    assert speak(*JOB, "--resume").calls == []
    assert os.stat("out") == was
    assert "All 7 lines were translated before.\n" in capsys.readouterr().err
    assert sorted(os.listdir()) == FINISHED
    assert len(speak(*JOB).calls) == 3


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--shards=4"], "--shards was 3 and is 4"),
        (["--beam_size=7"], "config.decoding.beam_size was 4 and is 7"),
        (["--prefixes=in"], "the content of --prefixes was None and is"),
        (["--ensemble=run"], r"--ensemble was \[\] and is \['run'\]"),
    ],
)
def test_other_settings_are_refused_before_a_model_is_loaded(monkeypatch, argv, reason):
    before = sorted(os.listdir())
    monkeypatch.delattr(sharded_job, "load_job")
    with pytest.raises(ConfigError, match=f"made with other settings: .*{reason}"):
        translate.run(options_of(*JOB, *argv, "--resume"))
    assert sorted(os.listdir()) == before


def test_a_job_of_before_a_key_goes_on_with_the_default_of_the_key(speak, killed_in):
    killed_in(4, "--shards=3")
    manifest = Path("out.shards/manifest.json")
    made_of = json.loads(manifest.read_text())
    assert made_of.pop("config.decoding.shortlist") == ""
    manifest.write_text(json.dumps(made_of))
    with pytest.raises(ConfigError, match="top_k was 0 and is 5"):
        speak(*JOB, "--resume", "--config.decoding.top_k=5")
    assert len(speak(*JOB, "--resume").calls) == 1


@pytest.mark.usefixtures("earlier")
def test_another_text_or_model_is_refused(place, speak):
    with pytest.raises(ConfigError, match="the content of the checkpoint was"):
        speak(*JOB, "--resume", loud=Loud(bias=1.0))
    (place / "in").write_text("a\n" * 7)
    with pytest.raises(ConfigError, match="the content of --input was"):
        speak(*JOB, "--resume")


def test_a_finished_output_that_was_edited_is_not_replaced(place, speak):
    speak(*JOB)
    (place / "out").write_text("corrected by hand\n")
    with pytest.raises(OutputError, match="out has been modified since it was written"):
        speak(*JOB, "--resume")
    assert lines_of("out") == ["corrected by hand"]


def test_corrupt_records_are_named_and_stay(place, speak):
    speak(*JOB)
    (place / "out.shards.json").write_text("{")
    with pytest.raises(DataError, match=r"out\.shards\.json is damaged"):
        speak(*JOB, "--resume")
    (place / "out.shards").write_text("mine")
    with pytest.raises(DataError, match=r"out\.shards has no readable manifest\.json"):
        speak(*JOB, "--resume")
    assert lines_of("out.shards") == ["mine"]
    (place / "out.shards").unlink()
    (place / "out.shards").mkdir()
    (place / "out.shards" / "diary").write_text("mine")
    with pytest.raises(DataError, match=r"has no readable manifest\.json"):
        speak(*JOB, "--resume")
    assert os.listdir("out.shards") == ["diary"]


@pytest.mark.parametrize("when", [2, 4])
@pytest.mark.parametrize("flag", ["input", "prefixes"])
def test_a_text_that_changes_under_a_job_ends_it(place, speak, when, flag):
    """Shards of it are made of the old text, or not at all."""
    changing = place / {"input": "in", "prefixes": "begins"}[flag]
    (place / "begins").write_text("\n" * len(SPOKEN))
    was, state = changing.read_bytes(), changing.stat()
    job = (*JOB, "--prefixes=begins")

    class Editor(Loud):
        def iter_translations(self, lines, *, first=0, **beside):
            if first == when:
                changing.write_bytes(was[: len(was) // 2])
            yield from super().iter_translations(lines, first=first, **beside)

    with pytest.raises(DataError, match=f"--{flag}=.* has changed since the job began"):
        speak(*job, loud=Editor())
    assert "out" not in os.listdir()
    done = {name for name in os.listdir("out.shards") if name.isdecimal()}
    assert done in ({"00000"}, {"00000", "00001"})

    changing.write_bytes(was)
    assert changing.stat().st_mtime_ns != state.st_mtime_ns
    assert len(speak(*job, "--resume").calls) == 3 - len(done)
    assert lines_of("out") == SPOKEN


def test_two_jobs_share_the_shards_and_one_merges_them(speak, killed_in, monkeypatch):
    both = threading.Barrier(2, timeout=20)
    calls = []

    class Slow(Loud):
        def iter_translations(self, lines, *, first=0, **beside):
            calls.append(first)
            if len(calls) <= 2:
                both.wait()  # until each of them is at work
            yield from super().iter_translations(lines, first=first, **beside)

    killed_in(0, "--shards=5")
    monkeypatch.setattr(sharded_job, "load_job", loader(Slow()))
    job = [options_of("--output=out", "--shards=5", "--resume")]
    jobs = [threading.Thread(target=translate.run, args=job) for _ in range(2)]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join(timeout=20)
        assert not one.is_alive()
    assert len(calls) == len(set(calls)) == 5
    assert lines_of("out") == SPOKEN
    assert sorted(os.listdir()) == FINISHED


def test_a_file_system_without_locks_will_do(speak, monkeypatch):
    def refuse(file, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    speak(*JOB)
    assert lines_of("out") == SPOKEN


@pytest.mark.parametrize("name", ["write_text", "rename"])
def test_a_job_killed_as_it_creates_its_shards_begins_again(speak, monkeypatch, name):
    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(sharded_job.shutil, "rmtree", lambda *_, **__: None)
        patch.setattr(Path if name == "write_text" else sharded_job.os, name, die)
        with pytest.raises(Killed):
            speak(*JOB)
    assert "out.shards" not in os.listdir()
    speak(*JOB, "--resume")
    assert lines_of("out") == SPOKEN


@pytest.mark.parametrize("is_finished", [False, True])
def test_jobs_that_begin_at_once_share_one_directory(place, monkeypatch, is_finished):
    jobs = [OutputShards(place / "out", count=2, lines=4) for _ in range(2)]
    rename, others = os.rename, []

    def renamed(source, to):
        with monkeypatch.context() as patch:
            patch.setattr(sharded_job.os, "rename", rename)
            jobs[1].create({}, resume=True)
            for number in range(2 * is_finished):
                jobs[1].write(number, [str(number)])
            if is_finished:
                jobs[1].merge()
        others.append(jobs[1].is_visible({}))
        rename(source, to)

    monkeypatch.setattr(sharded_job.os, "rename", renamed)
    jobs[0].create({}, resume=True)
    assert others == [True]
    assert jobs[0].is_visible({})
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_a_job_whose_shards_another_just_merged_is_done(speak, killed_in, monkeypatch):
    killed_in(4, "--shards=3")
    create, others = OutputShards.create, []

    def late(shards, made_of, *, resume):
        if not others:
            others.append(None)
            others.append(speak(*JOB, "--resume"))
        create(shards, made_of, resume=resume)

    monkeypatch.setattr(OutputShards, "create", late)
    loud = Loud()
    speak(*JOB, "--resume", loud=loud)
    assert [len(others[1].calls), loud.calls] == [1, []]
    assert lines_of("out") == SPOKEN


def test_the_record_is_written_before_shards_go_and_one_job_merges(place, monkeypatch):
    begun = OutputShards(place / "out", count=2, lines=4)
    begun.create({}, resume=False)
    for number in range(2):
        begun.write(number, [str(number)])
    rename, others = os.rename, []

    def renamed(source, to):
        assert json.loads(Path("out.shards.json").read_text())["made_of"] == {}
        others.append(threading.Thread(target=begun.merge))
        others[0].start()
        others[0].join(timeout=0.2)
        assert others[0].is_alive()
        rename(source, to)

    monkeypatch.setattr(sharded_job.os, "rename", renamed)
    begun.merge()
    others[0].join(timeout=20)
    assert len(others) == 1
    assert lines_of("out") == ["0", "1"]
    assert sorted(os.listdir()) == FINISHED


def test_a_process_with_another_input_ends_all_before_any_work(place, monkeypatch):
    (place / "other").write_text("a\n" * 7)
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)
    monkeypatch.setattr(threads, "SECONDS", 1)  # that process 0 waits
    options = [options_of(*JOB, f"--input={name}") for name in ("in", "other")]

    def job(processes):
        own = options[processes.index]
        return translate.run(dataclasses.replace(own, processes=processes))

    first, second = threads.on_all(job, count=2)
    assert isinstance(second, DataError)
    assert "process 0: the content of --input" in str(second)
    assert isinstance(first, AssertionError)  # waits, until it is ended by a notice
    assert sorted(os.listdir()) == ["in", "other", "run"]


@settings(deadline=None)
@given(st.data())
def test_any_range_of_lines_is_that_of_the_whole_file(tmp_path_factory, data):
    lines = data.draw(st.lists(st.sampled_from(["", "a", "ü\u2028", "x" * 30])))
    last_end = data.draw(st.sampled_from(["\n", ""])) if lines and lines[-1] else "\n"
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    first, end = sorted(data.draw(st.integers(0, len(lines))) for _ in range(2))
    path = tmp_path_factory.getbasetemp() / f"range.txt{suffix}"
    content = ("\n".join(lines) + last_end).encode() if lines else b""
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded_job, "_STRIDE", 3)
        found = LineIndex(str(path))
        assert found.count == len(lines)
        assert list(found.read_range(range(first, end))) == lines[first:end]
    assert found.sha256 == sharded_job.hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "later", "begun"),
    [
        (b"a\nb\n", 0, 1),  # cut
        (b"x\nb\nc\nd\n", 1, 0),  # edited, later
        (b"a b c\nd\n", 0, 0),  # the lines tell, and nothing else
    ],
)
def test_an_indexed_file_that_has_changed_is_not_read_on(place, content, later, begun):
    (place / "in").write_bytes(b"a\nb\nc\nd\n")
    lines = LineIndex("in").read_range(range(4))
    assert [next(lines) for _ in range(begun)] == ["a"] * begun
    was = os.stat("in")
    (place / "in").write_bytes(content)
    os.utime("in", ns=(was.st_atime_ns, was.st_mtime_ns + later))
    with pytest.raises(DataError, match="--input=in has changed since the job began"):
        list(lines)


def test_a_locked_shard_is_waited_for_and_then_made(speak, killed_in):
    killed_in(0, "--shards=2")
    with open("out.shards/00001.lock", "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        argv = ("--output=out", "--shards=2", "--resume")
        job = threading.Thread(target=speak, args=argv)
        job.start()
        job.join(timeout=0.5)
        assert job.is_alive()
        assert os.path.exists("out.shards/00000")
        assert not os.path.exists("out")
    job.join(timeout=20)
    assert lines_of("out") == SPOKEN
