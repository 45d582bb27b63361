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

from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.training.reporting.metrics_writer import (
    TIME_FIELDS,
    MetricsWriter,
    open_metrics,
    read_metrics,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def records_of(*steps, kind="train"):
    return b"".join(b'{"step": %d, "kind": "%s"}\n' % (n, kind.encode()) for n in steps)


def steps_in(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (records_of(3, 5, 7, 11), [3, 5, 7]),  # later steps run again
        (records_of(3, 5) + b'{"step": 7, "lo', [3, 5]),  # torn
        (records_of(3) + b"\xff{\n[1]\n" + records_of(5), [3, 5]),  # damaged
        (records_of(3) + records_of(7, kind="final"), [3]),  # goes on
        (b"", []),
    ],
)
def test_a_resumed_run_goes_on_after_the_records_of_its_step(path, before, kept):
    path.write_bytes(before)
    reads = [r["step"] for r in read_metrics(path) if r["kind"] == "train"]
    assert [step for step in reads if step <= 7] == kept
    assert path.read_bytes() == before
    metrics = open_metrics(path, step=7)
    metrics.write('{"step": 8, "kind": "train", "signature": "größer"}\n'.encode())
    *_, last = read_metrics(path)  # at once
    assert last["signature"] == "größer"
    metrics.close()
    assert steps_in(path) == [*kept, 8]
    assert [p.name for p in path.parent.iterdir()] == ["metrics.jsonl"]


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


@pytest.fixture
def writer(tmp_path):
    """Opens a report, whose messages are in `said`."""
    said = []
    writer = MetricsWriter(tmp_path, step=0, log=said.append)
    writer.said = said
    yield writer
    writer.close()


def test_what_is_not_finite_is_null(writer, tmp_path):
    numbers = {"loss": float("nan"), "nll": float("inf"), "bleu": 0.5}
    writer.write({"step": 5, "kind": "eval", **numbers})
    (record,) = read_metrics(tmp_path / "metrics.jsonl")
    assert (record["loss"], record["nll"], record["bleu"]) == (None, None, 0.5)


def test_a_record_goes_to_the_file_with_its_time_and_to_tensorboard(writer, tmp_path):
    writer.write({"step": 5, "kind": "train", "loss": 2.5, "perplexity": 7.0})
    writer.write({"step": 5, "kind": "eval", "bleu": 31.5, "bleu_signature": "x"})
    writer.write_final(RunProgress(7))
    writer.write_final(RunProgress(7, best_score=0.0))
    *written, none, zero = read_metrics(tmp_path / "metrics.jsonl")
    assert [(r["step"], r["kind"]) for r in written] == [(5, "train"), (5, "eval")]
    assert "best_bleu" not in none
    assert zero["best_bleu"] == 0.0
    for record in (*written, none):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["time"])
        assert record["elapsed"] >= 0
        assert {"time", "elapsed"} <= set(TIME_FIELDS)
    _, train, evaluated, *_ = events_in(tmp_path)
    tags = [value.tag for value in train.summary.value]
    assert tags == ["train/loss", "train/perplexity"]
    assert [value.tag for value in evaluated.summary.value] == ["eval/bleu"]


def test_tensorboard_gets_the_configuration_and_the_samples(tmp_path):
    settings = {"model.d_model": 512, "data.train": "text:a,b", "model.remat": False}
    reporter = MetricsWriter(tmp_path, step=0, log=print, settings=settings)
    reporter.write_samples(8, "  source  <b>\n  target  *c*")
    reporter.close()
    _, experiment, start, samples = (e for e in events_in(tmp_path))
    tags = [event.summary.value[0].tag for event in (experiment, start)]
    assert tags == ["_hparams_/experiment", "_hparams_/session_start_info"]
    plugin = start.summary.value[0].metadata.plugin_data
    hparams = HParamsPluginData.FromString(plugin.content).session_start_info.hparams
    assert hparams["model.d_model"].number_value == 512
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
def full(writer):
    """Leaves room for 25 bytes of each file on the disk, and no more."""
    for opened in (writer._metrics, writer._events):
        opened._file = FullDisk(opened._file, 25)
    return writer


def write_steps(writer, *steps):
    for step in steps:
        writer.write({"step": step, "kind": "train", "loss": 1.5})


def test_a_full_disk_is_told_of_once_and_loses_and_tears_no_record(full, tmp_path):
    write_steps(full, 1, 2, 3)
    for opened in (full._metrics, full._events):
        opened._file.room = 10_000
    write_steps(full, 4, 5)
    assert steps_in(tmp_path / "metrics.jsonl") == [1, 2, 3, 4, 5]
    assert [event.step for event in events_in(tmp_path)[1:]] == [1, 2, 3, 4, 5]
    reason = "cannot be written: No space left on device."
    assert [reason in line for line in full.said] == [True, True, False, False]
    assert full.said[2:] == [
        "metrics.jsonl is written again.",
        "The event file is written again.",
    ]
