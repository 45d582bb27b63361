"""Which kernel computes attention, on which device."""

import dataclasses
import types

import jax
import pytest

from t2t_jax.model import attention_kernels
from t2t_jax.model.attention_kernels import (
    DeviceSupport,
    choose_kernel,
    device_support,
    resolve_attention,
)
from t2t_jax.model.config import RNNConfig, TransformerConfig

HOPPER = DeviceSupport("gpu", (9, 0))
AMPERE = DeviceSupport("gpu", (8, 6))
TURING = DeviceSupport("gpu", (7, 5))
CPU = DeviceSupport("cpu")


@pytest.mark.parametrize(
    ("asked", "support", "kernel"),
    [
        ("plain", HOPPER, "plain"),
        ("auto", TURING, "plain"),
        ("auto", AMPERE, "cudnn"),
        ("auto", HOPPER, "cudnn"),
        ("cudnn", CPU, "plain"),
        ("cudnn_packed", AMPERE, "cudnn"),
        ("cudnn_packed", HOPPER, "cudnn_packed"),
        ("cudnn_packed", HOPPER._replace(no_packing="no rows"), "cudnn"),
        ("cudnn_packed", HOPPER._replace(no_cudnn="none"), "plain"),
        ("tokamax", HOPPER, "tokamax"),
        ("tokamax", AMPERE, "plain"),
        ("tokamax", DeviceSupport("gpu", (12, 0)), "plain"),
        ("auto", HOPPER._replace(no_cudnn="JAX finds no cuDNN"), "plain"),
    ],
)
def test_each_device_gets_what_it_can_run(asked, support, kernel):
    choice = choose_kernel(TransformerConfig(attention=asked), support, packs_rows=True)
    assert choice.kernel == kernel
    replaced = asked not in ("auto", kernel)
    assert bool(choice.reason) == replaced


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"compute_dtype": "float32"}, "activations are float32"),
        ({"attention_dropout": 0.1}, "attention_dropout needs the weights"),
        ({"d_v": 32}, "d_v=32"),
        ({"d_k": 136, "d_v": 136}, "d_k=136"),
    ],
    ids=str,
)
@pytest.mark.parametrize("asked", ["cudnn", "cudnn_packed", "tokamax", "auto"])
def test_a_model_that_no_kernel_fits_is_plain(changes, reason, asked):
    config = TransformerConfig(attention=asked, **changes)
    choice = choose_kernel(config, HOPPER, packs_rows=True)
    assert choice.kernel == "plain"
    assert reason in choice.reason or asked == "auto"


def test_packed_rows_are_for_steps_in_one_part():
    config = TransformerConfig(attention="cudnn_packed")
    choice = choose_kernel(config, HOPPER, packs_rows=False)
    assert choice.kernel == "cudnn"
    assert "in parts" in choice.reason


def absent():
    raise RuntimeError("cuDNN is not detected.")


@pytest.mark.parametrize(
    ("cudnn_version", "no_cudnn"),
    [(lambda: 92_300, ""), (absent, "JAX finds no cuDNN")],
)
def test_the_oldest_gpu_decides_and_what_is_installed(
    monkeypatch, cudnn_version, no_cudnn
):
    cudnn = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(cudnn, "check_cudnn_version", cudnn_version)
    monkeypatch.setattr(attention_kernels, "version", lambda name: "0.2.0")
    gpus = [
        types.SimpleNamespace(platform="gpu", compute_capability=text)
        for text in ("9.0", "8.6")
    ]
    monkeypatch.setattr(jax, "local_devices", lambda: gpus)
    device_support.cache_clear()
    found = device_support("gpu")
    device_support.cache_clear()
    assert found.capability == (8, 6)
    assert (found.no_cudnn, found.no_packing) == (no_cudnn, "")
    assert found.no_tokamax == "tokamax 0.2.0 is not known to have ranges of keys"


def test_here_it_is_plain_and_in_a_recurrent_model():
    assert resolve_attention(RNNConfig(), "gpu").kernel == "plain"
    config = TransformerConfig(attention="auto")
    assert resolve_attention(config, "cpu") == ("plain", "")
    asked = dataclasses.replace(config, attention="tokamax")
    assert resolve_attention(asked, "cpu") == ("plain", "the device is a CPU")
