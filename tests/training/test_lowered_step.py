"""The training step as it is lowered for accelerators, which need not be here."""

import dataclasses
import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from t2t_jax import jax_internals
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.loss import batch_of_shape
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import state_shapes
from t2t_jax.training.step import compile_evaluation, make_train_step
from t2t_jax.types import Batch

ROWS, LENGTH, WORDS = 4, 128, 300
CONFIG = TransformerConfig(
    vocab_size=WORDS, num_layers=1, d_model=32, d_ff=64, num_heads=2, d_k=16, d_v=16
)
GPU = SimpleNamespace(platform="gpu", compute_capability="9.0")
TPU = SimpleNamespace(platform="tpu")


def lowered(device, platform, *, devices=1, model=CONFIG, **training):
    """Lowers the step of a mesh of CPUs for other devices of the same number."""
    mesh = make_mesh(jax.devices()[:devices])
    optimizer = make_optimizer(OptimizerConfig(), d_model=CONFIG.d_model)
    module = make_module(model, devices=[device] * devices, mesh=mesh.shape)
    state, config = state_shapes(module, optimizer), TrainingConfig(**training)
    step = make_train_step(module, optimizer, mesh=mesh, config=config)
    shape = (ROWS * devices, LENGTH)
    traced = step.trace(state, batch_of_shape(shape), jax.eval_shape(jax.random.key, 0))
    return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.fixture
def _cudnn(monkeypatch):
    cudnn = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(jax_internals, "has_cudnn", lambda: True)
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 92_000)


@pytest.mark.usefixtures("_cudnn")
@pytest.mark.parametrize("devices", [1, 8])
def test_a_gpu_gets_cudnn_s_attention_without_a_gradient_of_its_bias(devices):
    text = lowered(GPU, "cuda", devices=devices)
    assert len(re.findall(r"__cudnn\$fmhaScaleBiasSoftmax\(", text)) == 3
    backward = re.findall(r"__cudnn\$fmhaScaleBiasSoftmaxBackward.*-> \((.*)\)", text)
    assert [results.count("bf16") for results in backward] == [3, 3, 3]
    # One mask for all heads, not one for each.
    assert f"tensor<{ROWS}x1x{LENGTH}x{LENGTH}xbf16>" in text
    assert f"tensor<{ROWS}x2x{LENGTH}x{LENGTH}xbf16>" not in text


@pytest.mark.parametrize("devices", [1, 8])
def test_a_tpu_gets_splash_attention(devices):
    text = lowered(TPU, "tpu", devices=devices)
    # The encoder's and that between the stacks are one function.
    assert len(re.findall(r"kernel_name = \"splash_mha_fwd", text)) == 2
    assert len(re.findall(r"kernel_name = \"splash_mha_dkv", text)) == 2


@pytest.mark.usefixtures("_cudnn")
@pytest.mark.parametrize(
    ("device", "platform", "kernel", "calls"),
    [
        (GPU, "cuda", r"__cudnn\$fmhaScaleBiasSoftmax\(", 3),
        (TPU, "tpu", r"kernel_name = \"splash_mha_fwd", 2),  # one of them called twice
    ],
)
def test_queries_and_keys_are_rotated_before_a_kernel(device, platform, kernel, calls):
    model = dataclasses.replace(CONFIG, positions="rotary")
    text = lowered(device, platform, model=model)
    assert len(re.findall(kernel, text)) == calls
    # Two in each self-attention, none in cross-attention, and they end in bfloat16.
    angles, heads = f"{ROWS}x1x{LENGTH}x16xf32", f"{ROWS}x2x{LENGTH}x16x"
    assert len(re.findall(rf"stablehlo.cosine .*{angles}", text)) == 4
    assert f"(tensor<{heads}f32>) -> tensor<{heads}bf16>" in text


@pytest.mark.usefixtures("_cudnn")
@pytest.mark.parametrize(
    ("device", "platform", "factors"),
    # Splash attention multiplies context and gradient in float32.
    [(GPU, "cuda", {"bf16"}), (TPU, "tpu", {"bf16", "f32"})],
)
def test_logits_are_read_once_and_products_multiply_bfloat16(device, platform, factors):
    text = lowered(device, platform)
    logits = f"tensor<{ROWS * LENGTH}x{WORDS}xf32>"
    (reduction,) = re.findall(rf"stablehlo.reduce.*{logits}, {logits}.*", text)
    assert reduction.count("init:") == 4  # maximum, sums, and the target
    products = re.findall(r"dot_general .* : \((.*?), (.*?)\) ->", text)
    assert {re.split("[x>]", x)[-2] for pair in products for x in pair} == factors


def test_an_evaluation_is_mapped_over_tpus_as_their_kernels_cannot_be_split():
    mesh = make_mesh(jax.devices()[:8])
    module = make_module(CONFIG, devices=[TPU] * 8, mesh=mesh.shape)
    tokens = jax.ShapeDtypeStruct((8, LENGTH), jnp.int32)
    params = jax.eval_shape(module.init, jax.random.key(0), tokens, tokens)["params"]
    batch = Batch(*[tokens] * 7, rows=jax.ShapeDtypeStruct((8,), jnp.int32))
    sums = compile_evaluation(module, label_smoothing=0.1, mesh=mesh)
    text = sums.trace(params, batch).lower(lowering_platforms=("tpu",)).as_text()
    assert "splash_mha_fwd" in text
