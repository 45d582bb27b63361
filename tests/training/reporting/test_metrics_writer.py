"""What programs are told of a run, though the disk may be full.

Seen to fail: without the loop in `RetryingAppendFile.append` (a half record is lost),
without `MetricsWriter.attempt` catching, and without forgetting what failed when it
works again.
"""

import errno
import json
import re
import struct

import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData
from tensorboardX.record_writer import masked_crc32c

from t2t_jax.training.progress import RunProgress
from t2t_jax.training.reporting.metrics_writer import (
    TIME_FIELDS,
    MetricsFile,
    MetricsWriter,
    read_metrics,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, *steps, torn=""):
    path.write_text(
        "".join(f'{{"step": {n}, "kind": "train"}}\n' for n in steps) + torn
    )


def steps_in(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_what_is_appended_is_there_at_once(path):
    metrics = MetricsFile(path, step=0)
    metrics.append({"step": 3, "kind": "train", "signature": "größer"})
    assert list(read_metrics(path)) == [
        {"step": 3, "kind": "train", "signature": "größer"}
    ]
    metrics.close()


def test_records_after_the_restored_step_are_cut(path):
    write(path, 3, 5, 7, 11)
    metrics = MetricsFile(path, step=7)
    assert metrics.records == 3
    metrics.append({"step": 8})
    metrics.close()
    assert steps_in(path) == [3, 5, 7, 8]


def test_a_torn_last_line_is_dropped_and_the_next_record_starts_a_line(path):
    write(path, 3, 5, torn='{"step": 7, "lo')
    metrics = MetricsFile(path, step=100)
    metrics.append({"step": 7})
    metrics.close()
    assert steps_in(path) == [3, 5, 7]


def test_reading_leaves_a_torn_last_line_alone(path):
    write(path, 3, torn='{"st')
    assert [record["step"] for record in read_metrics(path)] == [3]
    assert path.read_text().endswith('{"st')


def test_a_file_that_is_not_there_has_no_records(path):
    assert list(read_metrics(path)) == []


def test_cutting_leaves_nothing_else_in_the_directory(path):
    write(path, 3)
    MetricsFile(path, step=3).close()
    assert [p.name for p in path.parent.iterdir()] == ["metrics.jsonl"]


def test_the_end_of_a_run_is_forgotten_when_it_goes_on(path):
    write(path, 3)
    with path.open("a") as file:
        file.write('{"step": 3, "kind": "final"}\n')
    MetricsFile(path, step=3).close()
    assert [record["kind"] for record in read_metrics(path)] == ["train"]


def test_a_damaged_line_in_the_middle_costs_that_line_only(path):
    write(path, 3)
    with path.open("ab") as file:
        file.write(b"\xff{\n[1]\n")
    with path.open("a") as file:
        file.write('{"step": 5, "kind": "train"}\n')
    MetricsFile(path, step=9).close()
    assert steps_in(path) == [3, 5]


def test_a_report_goes_to_the_file_and_the_events(tmp_path):
    reporter = MetricsWriter(tmp_path, step=0, log=print)
    reporter.write({"step": 50, "kind": "train", "loss": 2.5})
    reporter.write({"step": 50, "kind": "eval", "bleu": 31.5, "bleu_signature": "x"})
    reporter.close()
    records = list(read_metrics(tmp_path / "metrics.jsonl"))
    assert [(r["step"], r["kind"]) for r in records] == [(50, "train"), (50, "eval")]
    events = next(tmp_path.glob("events.out.*")).read_bytes()
    assert b"train/loss" in events
    assert b"eval/bleu" in events
    assert b"signature" not in events


def events_in(directory):
    """Reads TensorBoard's records, as TensorBoard does: length, sum, bytes, sum."""
    data, events = next(directory.glob("events.out.*")).read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        content = data[12 : 12 + length]
        sums = struct.unpack("<I", data[8:12]), data[12 + length : 16 + length]
        assert sums == (
            (masked_crc32c(data[:8]),),
            struct.pack("<I", masked_crc32c(content)),
        )
        events.append(Event.FromString(content))
        data = data[16 + length :]
    return events


def test_every_record_has_its_time_and_the_names_that_scripts_rely_on(tmp_path):
    reporter = MetricsWriter(tmp_path, step=0, log=print)
    reporter.write({"step": 5, "kind": "train", "loss": 2.5, "perplexity": 7.0})
    reporter.write_final(RunProgress(7))
    reporter.close()
    for record in read_metrics(tmp_path / "metrics.jsonl"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["time"])
        assert record["elapsed"] >= 0
        assert {"time", "elapsed"} <= set(TIME_FIELDS)
    (event, *_) = (e for e in events_in(tmp_path) if e.summary.value)
    assert [value.tag for value in event.summary.value] == [
        "train/loss",
        "train/perplexity",
    ]


def test_a_run_without_evaluation_has_no_best_bleu(tmp_path):
    reporter = MetricsWriter(tmp_path, step=0, log=print)
    reporter.write_final(RunProgress(7))
    reporter.write_final(RunProgress(7, best_score=0.0))
    reporter.close()
    none, zero = read_metrics(tmp_path / "metrics.jsonl")
    assert "best_bleu" not in none
    assert zero["best_bleu"] == 0.0


def test_tensorboard_is_told_what_is_smoothed_and_what_is_not(tmp_path):
    reporter = MetricsWriter(tmp_path, step=0, log=print)
    reporter.write({"step": 1, "kind": "eval", "loss": 2.5, "perplexity": 7.0})
    reporter.close()
    _, event = events_in(tmp_path)
    loss, perplexity = (v.metadata.summary_description for v in event.summary.value)
    assert "with label smoothing" in loss
    assert "without label smoothing" in perplexity


def test_tensorboard_gets_the_configuration_and_the_samples(tmp_path):
    settings = {"model.d_model": 512, "data.train": "text:a,b", "model.remat": False}
    reporter = MetricsWriter(tmp_path, step=0, log=print, settings=settings)
    reporter.write_samples(8, "  source  <b>\n  target  *c*")
    reporter.close()
    _, experiment, start, samples = (e for e in events_in(tmp_path))
    tags = [event.summary.value[0].tag for event in (experiment, start)]
    assert tags == ["_hparams_/experiment", "_hparams_/session_start_info"]
    parts = [
        HParamsPluginData.FromString(e.summary.value[0].metadata.plugin_data.content)
        for e in (experiment, start)
    ]
    compared = [info.name.tag for info in parts[0].experiment.metric_infos]
    assert compared == ["eval/bleu", "eval/perplexity", "eval/loss"]
    hparams = parts[1].session_start_info.hparams
    assert hparams["model.d_model"].number_value == 512
    assert hparams["data.train"].string_value == "text:a,b"
    assert hparams["model.remat"].WhichOneof("kind") == "bool_value"
    (text,) = samples.summary.value[0].tensor.string_val
    assert samples.step == 8
    # A block of code in Markdown, which shows it as it is.
    assert text.decode() == "      source  <b>\n      target  *c*"


def test_tensorboard_forgets_what_a_resumed_run_writes_again(tmp_path):
    reporter = MetricsWriter(tmp_path, step=7, log=print)
    reporter.write({"step": 8, "kind": "train", "loss": 2.5})
    reporter.close()
    version, start, figures = events_in(tmp_path)
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (8, start.session_log.START)
    assert (figures.step, figures.summary.value[0].simple_value) == (8, 2.5)


class FullDisk:
    """A file on a disk that has room for so many bytes, and then is full."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, content):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = content[: self.room]
        self.room -= len(part)
        return self.file.write(part)

    def close(self):
        self.file.close()


@pytest.fixture
def reporter(tmp_path):
    """Opens a report of which 25 bytes of each file fit on the disk, and no more."""
    said = []
    reporter = MetricsWriter(tmp_path, step=0, log=said.append)
    reporter.said = said
    for opened in (reporter._metrics, reporter._events):
        growing = opened._file
        growing._file = FullDisk(growing._file, 25)
    yield reporter
    reporter.close()


def make_room(reporter):
    for opened in (reporter._metrics, reporter._events):
        opened._file._file.room = 10_000


def write_steps(reporter, *steps):
    for step in steps:
        reporter.write({"step": step, "kind": "train", "loss": 1.5})


def test_a_full_disk_is_told_of_once_and_ends_nothing(reporter):
    write_steps(reporter, 1, 2, 3)
    assert [line.partition(":")[2] for line in reporter.said] == [
        " metrics.jsonl cannot be written: No space left on device. Training "
        "continues. Free disk space or fix permissions.",
        " The event file cannot be written: No space left on device. Training "
        "continues. Free disk space or fix permissions.",
    ]


def test_no_record_is_lost_or_torn_when_there_is_room_again(reporter, tmp_path):
    write_steps(reporter, 1, 2, 3)
    make_room(reporter)
    write_steps(reporter, 4, 5)
    assert steps_in(tmp_path / "metrics.jsonl") == [1, 2, 3, 4, 5]
    assert [event.step for event in events_in(tmp_path)[1:]] == [1, 2, 3, 4, 5]
    assert reporter.said[2:] == [
        "metrics.jsonl is written again.",
        "The event file is written again.",
    ]


def test_a_record_is_whole_at_once_though_the_system_takes_it_in_pieces(path):
    class Pieces(FullDisk):
        def write(self, content):
            return self.file.write(content[: self.room])

    metrics = MetricsFile(path, step=0)
    growing = metrics._file
    growing._file = Pieces(growing._file, 7)
    metrics.append({"step": 3, "kind": "train"})
    assert steps_in(path) == [3]
    metrics.close()


def test_anything_else_that_cannot_be_written_ends_nothing_either(reporter):
    def write(path):
        raise OSError(errno.EROFS, "Read-only file system", path)

    reporter.attempt("samples/8.txt", write, "samples/8.txt")
    assert "samples/8.txt cannot be written: Read-only file system" in reporter.said[0]
