"""What is read of the processor, and what a training says of its precision there."""

import pytest

from t2t_jax.devices import processor


@pytest.fixture
def flags(monkeypatch):
    def set_flags(*names):
        lines = [
            "vendor_id\t: X",
            "model name\t: X 3: y",
            f"flags\t\t: {' '.join(names)}",
        ]
        monkeypatch.setattr(processor, "processor_lines", lambda: lines)

    return set_flags


def test_the_name_is_that_of_the_system(flags):
    flags()
    assert processor.processor_name() == "X 3: y"


@pytest.mark.parametrize("name", processor.BFLOAT16_FLAGS)
def test_bfloat16_is_offered_where_a_run_begins_on_what_multiplies_it(flags, name):
    flags("sse", name)
    assert "model.compute_dtype=bfloat16" in processor.bfloat16_hint(
        "float32", begins=True
    )
    assert not processor.bfloat16_hint("float32", begins=False)
    assert not processor.bfloat16_hint("bfloat16", begins=True)


@pytest.mark.parametrize("begins", [True, False])
def test_elsewhere_float32_is_said_to_be_faster(flags, begins):
    flags("sse", "avx512f", "avx512_bf16x")
    assert not processor.bfloat16_hint("float32", begins=begins)
    assert "float32 is faster" in processor.bfloat16_hint("bfloat16", begins=begins)


def test_without_cpuinfo_there_is_a_name_still(monkeypatch):
    monkeypatch.setattr(processor, "processor_lines", list)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert processor.processor_name() == "arm64"
