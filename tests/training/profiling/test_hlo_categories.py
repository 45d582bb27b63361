"""What operations are for, read from programs drawn by hand and from compiled ones.

Seen to fail: without what is fused, for kinds and for parts; without `_PRODUCTS`,
`_MOVES` and "add and norm"; where a tuple's shape is not read.
"""

from functools import partial

import jax
import pytest

from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.profiling.hlo_categories import (
    OpCategory,
    categorize_all,
    categorize_ops,
)
from t2t_jax.training.state import init_state, state_shardings
from t2t_jax.training.step import lower_step, make_train_step

DRAWN = """\
HloModule jit_step, is_scheduled=true

%add_of_two (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%inner (p: f32[2,3]) -> f32[3] {
  %p = f32[2,3]{1,0} parameter(0)
  ROOT %reduced = f32[3]{0} reduce(%p, %zero), dimensions={0}, to_apply=%add_of_two
}

%outer (q: f32[2,3]) -> f32[3] {
  %q = f32[2,3]{1,0} parameter(0)
  ROOT %within = f32[3]{0} fusion(%q), kind=kLoop, calls=%inner
}

ENTRY %main (x: f32[2,3]) -> (f32[3], f32[2,3]) {
  %x = f32[2,3]{1,0} parameter(0)
  %product = f32[2,3]{1,0} dot(%x, %x), metadata={op_name="jit(f)/x/attention/y"}
  %library = (f32[2,3]{1,0}, /*index=1*/s8[9]{0}) custom-call(%x), \
custom_call_target="__cublas$gemm"
  %other = f32[2,3]{1,0} custom-call(%x), custom_call_target="TopK"
  %called = f32[3]{0} call(%x), to_apply=%outer
  %mean = f32[3]{0} fusion(%x), kind=kLoop, calls=%inner
  %plus = f32[2,3]{1,0} fusion(%x), kind=kLoop, calls=%add_of_two
  %moved = f32[2,3]{0,1} copy(%x)
  %row = f32[3]{0} gather(%x, %x)
  %shared = (f32[3]{0}, f32[3]{0}) all-reduce-start(%row), to_apply=%add_of_two
  ROOT %out = (f32[3]{0}, f32[2,3]{1,0}) tuple(%mean, %plus)
}
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("product", "matrix products"),
        ("library", "matrix products"),
        ("other", "elementwise"),
        ("called", "reductions"),
        ("mean", "reductions"),
        ("plus", "elementwise"),
        ("moved", "copies"),
        ("row", "gathers and scatters"),
        ("shared", "exchange between devices"),
    ],
)
def test_the_kind_is_that_of_all_that_is_fused_together(name, kind):
    assert categorize_ops(DRAWN)[name].kind == kind


@pytest.mark.parametrize(
    ("scope", "part"),
    [
        ("jit(s)/jvp(T)/T.encode/encoder/layer_0/a_norm/self_attention/q", "attention"),
        ("jit(s)/transpose(jvp(T))/decoder.read/cross_attention.keys/k", "attention"),
        ("jit(s)/jvp(T)/encoder/layer_0/f_norm/feed_forward/dot", "feed-forward"),
        ("jit(s)/jvp(T)/encoder/layer_0/feed_forward_norm/norm/mul", "add and norm"),
        ("jit(s)/jvp(T)/T.decode/embedding.logits/dot", "logits"),
        ("jit(s)/jvp(T)/T.decode/embedding/take", "embeddings"),
        ("jit(s)/jvp(T)/T.decode/decoder/dropout/mul", "embeddings"),
        ("jit(s)/jvp(T)/T.decode/T._embed_targets/jit(_where)/a", "embeddings"),
        ("jit(s)/transpose(jvp())/sub", "loss"),
        ("jit(s)/mul", "optimizer"),
        ("", "unnamed"),
    ],
)
def test_the_part_is_told_by_the_name_in_jax(scope, part):
    named = DRAWN.replace("jit(f)/x/attention/y", scope)
    assert categorize_ops(named)["product"] == OpCategory("matrix products", part)


def test_what_has_no_name_has_that_of_what_is_fused_in_it():
    named = DRAWN.replace("to_apply=%add_of_two\n", 'x={op_name="jit(f)/norm/b"}\n', 1)
    assert categorize_ops(named)["mean"] == categorize_ops(named)["called"]
    assert categorize_ops(named)["mean"].part == "add and norm"


@pytest.fixture(scope="module")
def of_a_step():
    """The roles in a real training step, of a model with all of its parts."""
    config = TransformerConfig(
        vocab_size=31, num_layers=1, d_model=14, d_ff=22, num_heads=2, d_k=5, d_v=3
    )
    optimizer = make_optimizer(OptimizerConfig(), d_model=config.d_model)
    module = make_module(config)
    mesh = make_mesh(jax.devices()[:1])
    shapes = jax.eval_shape(partial(init_state, module, optimizer), jax.random.key(0))
    step = make_train_step(
        TrainingConfig(),
        module=module,
        optimizer=optimizer,
        mesh=mesh,
        shardings=state_shardings(shapes, mesh),
    )
    compiled = lower_step(step, shapes, batch_shape=(3, 7)).compile()
    return list(categorize_ops(compiled.as_text()).values())


def test_a_training_step_has_every_part_but_another_model_s(of_a_step):
    assert {role.part for role in of_a_step} == {
        *("attention", "feed-forward", "add and norm", "logits", "embeddings"),
        *("loss", "optimizer", "unnamed"),
    }


def test_its_products_are_where_the_paper_has_them(of_a_step):
    found = {role.part for role in of_a_step if role.kind == "matrix products"}
    assert found == {"attention", "feed-forward", "logits"}


def test_programs_of_one_name_keep_what_they_agree_on():
    def program(scope):
        return (
            "HloModule jit_step, is_scheduled=true\n\n"
            "ENTRY %main (x: f32[2]) -> f32[2] {\n"
            f'  %a = f32[2] add(%x, %x), metadata={{op_name="jit(s)/{scope}/b"}}\n'
            '  %c = f32[2] add(%x, %x), metadata={op_name="jit(s)/norm/b"}\n'
            '}, execution_thread="another"\n'
        )

    both = categorize_all([program("feed_forward"), program("norm")])
    assert both == {"jit_step/c": OpCategory("elementwise", "add and norm")}
    assert len(categorize_all([program("norm")] * 2)) == 2


def test_a_computation_that_is_not_there_is_no_mistake():
    program = (
        "ENTRY %m (x: f32[2]) -> f32[2] {\n  %f = f32[2] fusion(%x), calls=%no\n}\n"
    )
    assert categorize_ops(program)["f"].kind == "copies"
