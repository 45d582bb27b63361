"""What is read of the processor, and what a training says of its precision there."""

import pytest

from t2t_jax.devices import processor


@pytest.fixture
def lines(monkeypatch):
    def set_lines(*lines):
        monkeypatch.setattr(processor, "processor_lines", lambda: list(lines))

    return set_lines


def hint(dtype, *, begins):
    key = "rnn.compute_dtype"
    return processor.bfloat16_hint(dtype, key=key, begins=begins)


def test_the_name_is_that_of_the_system_if_it_tells(lines, monkeypatch):
    lines("vendor_id\t: X", "model name\t: X 3: y")
    assert processor.processor_name() == "X 3: y"
    lines()
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert processor.processor_name() == "arm64"


@pytest.mark.parametrize("name", processor.BFLOAT16_FLAGS)
def test_bfloat16_is_offered_where_a_run_begins_on_what_multiplies_it(lines, name):
    lines(f"flags\t\t: sse {name}")
    assert "with rnn.compute_dtype=bfloat16" in hint("float32", begins=True)
    assert not hint("float32", begins=False)
    assert not hint("bfloat16", begins=True)


@pytest.mark.parametrize("begins", [True, False])
def test_elsewhere_bfloat16_is_said_to_take_longer(lines, begins):
    lines("flags\t\t: sse avx512f avx512_bf16x")
    assert not hint("float32", begins=begins)
    assert "1.25 times as long" in hint("bfloat16", begins=begins)


@pytest.mark.parametrize("line", ["", "Features : fp asimd bf16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_of_other_processors_nothing_is_said(lines, line, dtype):
    lines(line)
    assert not hint(dtype, begins=True)


def test_vnni_is_missed_only_where_instructions_are_known(lines):
    found = []
    for line in (
        "flags\t\t: sse avx2",
        "flags\t\t: sse avx512_vnni",
        "Features : asimd",
    ):
        lines(line)
        found.append(processor.lacks_vnni())
    assert found == [True, False, False]
