"""What is read of the processor."""

import pytest

from t2t_jax.devices import processor
from t2t_jax.errors import ConfigError


@pytest.fixture
def lines(monkeypatch):
    def set_lines(*lines):
        monkeypatch.setattr(processor, "processor_lines", lambda: list(lines))

    return set_lines


def test_the_name_is_that_of_the_system_if_it_tells(lines, monkeypatch):
    lines("vendor_id\t: X", "model name\t: X 3: y")
    assert processor.processor_name() == "X 3: y"
    lines()
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert processor.processor_name() == "arm64"


@pytest.mark.parametrize("name", processor.BFLOAT16_FLAGS)
def test_bfloat16_is_multiplied_by_processors_that_say_so(lines, monkeypatch, name):
    monkeypatch.delenv(processor.CPU_DTYPE)
    others = f"flags\t\t: sse {name}x", "Features : bf16", ""
    for line in (f"flags\t\t: sse {name}", *others):
        lines(line)
        assert processor.multiplies_bfloat16() == (line not in others)


def test_a_variable_decides_for_all_processors(lines, monkeypatch):
    for dtype, name in (("float32", "avx512_bf16"), ("bfloat16", "avx2")):
        lines(f"flags\t\t: {name}")
        monkeypatch.setenv(processor.CPU_DTYPE, dtype)
        assert processor.multiplies_bfloat16() == (dtype == "bfloat16")
    monkeypatch.setenv(processor.CPU_DTYPE, "half")
    with pytest.raises(ConfigError, match=r"T2T_JAX_CPU_DTYPE='half'"):
        processor.multiplies_bfloat16()


def test_vnni_is_missed_only_where_instructions_are_known(lines):
    known = ("flags\t\t: avx2", True), ("flags\t\t: avx512_vnni", False)
    for line, is_missed in (*known, ("Features : asimd", False)):
        lines(line)
        assert processor.lacks_vnni() == is_missed
