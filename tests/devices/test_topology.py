"""Devices that are not here: their names, and they, where a compiler is installed."""

from importlib.util import find_spec

import pytest

from t2t_jax.devices import topology
from t2t_jax.devices.topology import TARGETS, parse_topology
from t2t_jax.errors import UserError

needs_gpu_compiler = pytest.mark.skipif(
    not any(map(find_spec, topology._COMPILERS["gpu"])),
    reason="needs the extra aot-gpu",
)
needs_tpu_compiler = pytest.mark.skipif(
    not find_spec("libtpu"), reason="needs the extra aot-tpu"
)


@pytest.mark.parametrize(
    ("text", "shape", "linked"),
    [
        ("gpu:h100:8", (1, 8), 8),
        ("gpu:a100:2x8", (2, 8), 8),
        ("tpu:v5e:2x4", (2, 4), 8),
        ("tpu:v5p:2x2x4", (2, 2, 4), 16),
        ("tpu:v6e:16x16", (16, 16), 256),
    ],
)
def test_names_of_devices(text, shape, linked):
    found = parse_topology(text)
    assert (found.shape, found.linked) == (shape, linked)
    assert found.target.platform == text.partition(":")[0]


@pytest.mark.parametrize("text", ["", "gpu", "gpu:p100:8", "tpu:h100:8", "h100:8"])
def test_an_unknown_target_lists_the_known_ones(text):
    with pytest.raises(UserError) as error:
        parse_topology(text)
    names = [f"{one.platform}:{name}" for name, one in TARGETS.items()]
    assert [name for name in names if name not in str(error.value)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("gpu:h100", "gpu:h100:", "gpu:h100:0", "gpu:h100:-8", "gpu:h100:8x"),
        *("gpu:h100:2x2x2", "tpu:v5e:8", "tpu:v5p:2x4", "tpu:v5e:2x4x1"),
        *("gpu:h100:257", "gpu:h100:33x8", "tpu:v5e:16x17", "tpu:v5e:2*4"),
        "tpu:v5e:3x5",
    ],
)
def test_other_shapes_are_refused(text):
    with pytest.raises(UserError, match="must end in the number of devices"):
        parse_topology(text)


def test_without_a_compiler_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(topology, "find_spec", lambda package: None)
    for text, extra in (("gpu:h100:8", "aot-gpu"), ("tpu:v5e:2x4", "aot-tpu")):
        with pytest.raises(UserError, match=rf"pip install 't2t-jax\[{extra}\]'"):
            parse_topology(text).devices()


@needs_gpu_compiler
@pytest.mark.parametrize("name", [name for name, one in TARGETS.items() if one.gpu])
def test_gpus_are_made_of_their_description(name):
    devices = parse_topology(f"gpu:{name}:2x8").devices()
    target = TARGETS[name]
    assert {d.process_index for d in devices} == {0, 1}
    assert len(devices) == 16
    assert devices[0].device_kind == target.gpu.kind
    major, minor = target.gpu.capability
    assert devices[0].compute_capability == f"{major}.{minor}"


@needs_tpu_compiler
@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("tpu:v5e:1x1", 1), ("tpu:v5e:2x4", 8), ("tpu:v6e:16x16", 256)),
        *(("tpu:v5p:1x1x1", 1), ("tpu:v5p:2x2x2", 8)),
    ],
)
def test_tpus_are_made_of_their_name(text, count):
    devices = parse_topology(text).devices()
    assert {device.platform for device in devices} == {"tpu"}
    assert len(devices) == count
