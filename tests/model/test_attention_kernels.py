"""Which kernel computes attention, on which device."""

import dataclasses
from types import SimpleNamespace

import pytest

from t2t_jax import jax_internals
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import RNNConfig, TransformerConfig


def gpus(*capabilities):
    return [SimpleNamespace(compute_capability=text) for text in capabilities]


def choose(config, devices, *, platform="gpu", **mesh):
    return resolve_attention(config, platform, devices=devices, **mesh)


@pytest.mark.parametrize(
    ("asked", "devices", "platform", "mesh", "has_cudnn", "kernel", "reason"),
    [
        ("cudnn", gpus("9.0", "8.0"), "gpu", {"data": 8}, True, "cudnn", ""),
        ("cudnn", gpus("9.0"), "gpu", {"data": 1, "fsdp": 8}, True, "cudnn", ""),
        ("cudnn", gpus("9.0"), "gpu", {"data": 2, "fsdp": 4}, True, "plain", "fsdp is"),
        ("cudnn", gpus("9.0", "7.5"), "cuda", {}, True, "plain", "older than Ampere"),
        ("cudnn", gpus("9.0"), "gpu", {}, False, "plain", "no cuDNN"),
        ("cudnn", gpus("gfx90a"), "gpu", {}, True, "plain", "not NVIDIA's"),
        ("splash", [], "tpu", {"data": 8, "fsdp": 1}, True, "splash", ""),
        ("splash", [], "tpu", {"tensor": 2}, True, "plain", "tensor is"),
        ("cudnn", [], "tpu", {}, True, "plain", "a TPU"),
        ("splash", gpus("9.0"), "gpu", {}, True, "plain", "a GPU"),
        ("cudnn", None, "cpu", {}, True, "plain", "a CPU"),
    ],
)
def test_each_device_gets_what_it_can_run(
    monkeypatch, asked, devices, platform, mesh, has_cudnn, kernel, reason
):
    monkeypatch.setattr(jax_internals, "has_cudnn", lambda: has_cudnn)
    config = TransformerConfig(attention=asked)
    given = {"devices": devices, "platform": platform, "mesh": mesh}
    choice = choose(config, **given)
    assert choice.kernel == kernel
    assert reason in choice.reason
    assert bool(choice.reason) == bool(reason)
    auto = choose(dataclasses.replace(config, attention="auto"), **given)
    own = {"gpu": "cudnn", "tpu": "splash"}.get(platform)
    assert auto == (own if reason in ("a GPU", "a TPU") else kernel, "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"compute_dtype": "float32"}, "activations are float32"),
        ({"attention_dropout": 0.1}, "attention_dropout needs the weights"),
        ({"d_v": 32}, "d_v=32"),
        ({"d_k": 136, "d_v": 136}, "d_k=136"),
        ({"attention": "plain"}, ""),
    ],
    ids=str,
)
def test_a_model_that_no_kernel_fits_is_plain(changes, reason):
    choice = choose(TransformerConfig(**{"attention": "cudnn", **changes}), gpus("9.0"))
    assert choice.kernel == choose(RNNConfig(), gpus("9.0")).kernel == "plain"
    assert reason in choice.reason


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_auto_is_plain_where_the_mesh_is_not_known(platform):
    config = TransformerConfig(attention="auto")
    assert choose(config, gpus("9.0"), platform=platform, mesh=None) == ("plain", "")
