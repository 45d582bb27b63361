"""TranslationJob a file by shards, with a model that is none.

Seen to fail: without the look at what shards were made of (a file of two halves),
without the lock of a shard (one translated twice), where shards are joined before all
are there, and where those of an earlier job are looked at with the model only.
"""

import dataclasses
import fcntl
import json
import os
import threading

import pytest

from t2t_jax.cli.modes import translate
from t2t_jax.cli.processes import start
from t2t_jax.cli.translation import sharded_job
from t2t_jax.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    OutputError,
    UserError,
)
from tests.cli import threads
from tests.cli.translations import (
    SPOKEN,
    Loud,
    killed_in,
    lines_of,
    loader,
    options_of,
)

pytestmark = pytest.mark.usefixtures("place")


def test_what_was_killed_goes_on_with_what_is_missing(place, speak):
    killed_in(4, speak, "--shards=3")
    assert "out" not in os.listdir()
    done = [name for name in os.listdir("out.shards") if name.isdecimal()]
    assert sorted(done) == ["00000", "00001"]

    loud = speak("--output=out", "--shards=3", "--resume")
    assert [first for first, _ in loud.calls] == [4]
    assert lines_of("out") == SPOKEN
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


def test_resuming_what_has_not_begun_begins(speak):
    speak("--output=out", "--shards=3", "--resume")
    assert lines_of("out") == SPOKEN


def test_what_an_earlier_job_has_left_is_not_taken_unasked(speak):
    killed_in(4, speak, "--shards=3")
    with pytest.raises(
        OutputError, match="Pass --resume to continue it, or remove the directory"
    ):
        speak("--output=out", "--shards=3")


def test_where_shards_cannot_be_made_the_output_is_named(speak):
    with pytest.raises(OutputError) as raised:
        speak("--output=/proc/out", "--shards=3")
    assert str(raised.value) == (
        "Cannot write --output=/proc/out: the directory of its shards, out.shards, "
        "cannot be created (No such file or directory). Choose another."
    )


def test_what_is_there_is_looked_at_before_a_model_is_loaded(speak, monkeypatch):
    killed_in(4, speak, "--shards=3")
    monkeypatch.delattr(sharded_job, "load_job")
    with pytest.raises(
        OutputError, match="Pass --resume to continue it, or remove the directory"
    ):
        translate.run(options_of("--output=out", "--shards=3"))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--shards=4"], "--shards was 3 and is 4"),
        (["--shards=3", "--beam_size=7"], "config.decoding.beam_size was 4 and is 7"),
        (["--shards=3", "--format=tsv"], "--format was '' and is 'tsv'"),
        (["--shards=3", "--checkpoint=5"], "--checkpoint was 'best' and is '5'"),
    ],
)
def test_shards_are_gone_on_with_by_the_same_command_only(speak, argv, said):
    killed_in(4, speak, "--shards=3")
    with pytest.raises(
        ConfigError, match=f"out.shards was made with other settings: .*{said}"
    ):
        speak("--output=out", "--resume", *argv)


def test_shards_of_another_text_or_model_are_not_gone_on_with(place, speak):
    killed_in(4, speak, "--shards=3")
    with pytest.raises(ConfigError, match="the content of the checkpoint was"):
        speak("--output=out", "--resume", "--shards=3", loud=Loud(bias=1.0))
    (place / "in").write_text("a\n" * 7)
    with pytest.raises(ConfigError, match="the content of --input was"):
        speak("--output=out", "--resume", "--shards=3")


def test_a_directory_of_that_name_that_is_none_of_ours_stays(place, speak):
    (place / "out.shards").mkdir()
    (place / "out.shards" / "diary").write_text("mine")
    with pytest.raises(DataError, match=r"has no readable manifest\.json"):
        speak("--output=out", "--resume", "--shards=3")
    assert os.listdir("out.shards") == ["diary"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--shards=2"], "--shards requires files for --input and --output"),
        (["--shards=2", "--output=out", "--input=-"], "--shards requires files"),
    ],
)
def test_shards_need_files(argv, said):
    with pytest.raises(UserError, match=said):
        translate.run(options_of(*argv))


@pytest.mark.parametrize("flag", ["input", "prefixes"])
def test_what_is_read_again_and_again_is_no_pipe(flag):
    argv = ("--shards=2", "--output=out", f"--{flag}=/dev/null")
    with pytest.raises(InputMissingError, match=f"--{flag}=/dev/null must be a file"):
        translate.run(options_of(*argv))


@pytest.mark.parametrize("when", [2, 4])
@pytest.mark.parametrize("flag", ["input", "prefixes"])
def test_a_text_that_changes_under_a_job_ends_it(place, speak, when, flag):
    """Shards of it are made of the old text, or not at all."""
    changing = place / {"input": "in", "prefixes": "begins"}[flag]
    (place / "begins").write_text("\n" * len(SPOKEN))
    was, state = changing.read_bytes(), changing.stat()
    job = ("--output=out", "--prefixes=begins", "--shards=3")

    class Editor(Loud):
        def iter_translations(self, lines, *, first=0, **beside):
            if first == when:
                changing.write_bytes(was[: len(was) // 2])
            yield from super().iter_translations(lines, first=first, **beside)

    with pytest.raises(DataError, match=f"--{flag}=.* has changed since the job began"):
        speak(*job, loud=Editor())
    assert "out" not in os.listdir()
    done = {int(name) for name in os.listdir("out.shards") if name.isdecimal()}
    assert done in ({0}, {0, 1})

    changing.write_bytes(was)
    assert changing.stat().st_mtime_ns != state.st_mtime_ns
    assert len(speak(*job, "--resume").calls) == 3 - len(done)
    assert lines_of("out") == SPOKEN


@pytest.mark.parametrize(
    ("output", "said"),
    [("in", "is one of the input files"), ("run", "must be a file for --shards")],
)
def test_an_output_of_shards_is_a_file_of_its_own(output, said):
    with pytest.raises(OutputError, match=said):
        translate.run(options_of("--shards=2", f"--output={output}"))


def test_a_process_with_another_input_ends_all_before_anything_is_made(
    place, monkeypatch
):
    (place / "other").write_text("a\n" * 7)
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)
    monkeypatch.setattr(threads, "SECONDS", 1)  # that process 0 waits
    monkeypatch.delattr(sharded_job, "load_job")
    options = [
        options_of("--output=out", "--shards=2", f"--input={name}")
        for name in ("in", "other")
    ]

    def job(processes):
        one = dataclasses.replace(options[processes.index], processes=processes)
        return translate.run(one)

    first, second = threads.on_all(job, count=2)
    assert isinstance(second, DataError)
    assert "Process 1 has other files than process 0: the content of --input is" in str(
        second
    )
    assert isinstance(first, AssertionError)  # waits, until it is ended by a notice
    assert sorted(os.listdir()) == ["in", "other", "run"]


def test_shards_of_a_version_with_more_settings_are_resumed(place, speak):
    killed_in(4, speak, "--shards=3")
    manifest = place / "out.shards" / "manifest.json"
    made_of = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(made_of | {"--protocol": "", "--last": 0}))
    speak("--output=out", "--shards=3", "--resume")
    assert lines_of("out") == SPOKEN


def test_two_jobs_share_the_shards_and_one_joins_them(place, speak, monkeypatch):
    both = threading.Barrier(2, timeout=20)
    calls = []

    class Slow(Loud):
        def iter_translations(self, lines, *, first=0, **beside):
            calls.append(first)
            if len(calls) <= 2:
                both.wait()  # until each of them is at work
            yield from super().iter_translations(lines, first=first, **beside)

    killed_in(0, speak, "--shards=5")
    job = ("--output=out", "--shards=5", "--resume")
    for module in (translate, sharded_job):
        monkeypatch.setattr(module, "load_job", loader(Slow()))
    jobs = [
        threading.Thread(target=translate.run, args=[options_of(*job)])
        for _ in range(2)
    ]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join(timeout=20)
        assert not one.is_alive()
    assert len(calls) == len(set(calls)) == 5
    assert lines_of("out") == SPOKEN
    assert sorted(os.listdir()) == ["in", "out", "out.shards.json", "run"]


def test_a_shard_that_somebody_holds_is_waited_for_and_then_made(place, speak):
    killed_in(0, speak, "--shards=2")
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


def test_a_file_system_without_locks_does(place, speak, monkeypatch):
    def refuse(file, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    speak("--output=out", "--shards=3")
    assert lines_of("out") == SPOKEN


def test_a_manifest_says_what_shards_are_made_of(place, speak):
    killed_in(4, speak, "--shards=3", "--n_best=2", "--format=tsv")
    told = json.loads((place / "out.shards" / "manifest.json").read_text())
    assert told["config.decoding.n_best"] == 2
    assert told["the step of --checkpoint"] == [7]
    assert "--resume" not in told
