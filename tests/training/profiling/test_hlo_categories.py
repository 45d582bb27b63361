"""What operations are for, read from programs drawn by hand and from compiled ones.

Seen to fail: without what is fused, for kinds and for parts; without `_PRODUCTS`,
`_MOVES` and "add and norm"; where a tuple's shape is not read.
"""

import pytest

from t2t_jax.training.profiling.hlo_categories import (
    OpCategory,
    categorize_all,
    categorize_ops,
)
from tests.training.copy_task import Trainer

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


def test_the_kind_is_that_of_all_that_is_fused_together():
    kinds = {name: category.kind for name, category in categorize_ops(DRAWN).items()}
    assert (
        kinds.items()
        >= {
            "product": "matrix products",
            "library": "matrix products",
            "other": "elementwise",
            "called": "reductions",
            "mean": "reductions",
            "plus": "elementwise",
            "moved": "copies",
            "row": "gathers and scatters",
            "shared": "exchange between devices",
        }.items()
    )


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


def test_a_training_step_has_every_part_and_products_where_the_paper_has_them():
    categories = categorize_ops(Trainer(1).compiled.as_text()).values()
    products = {"attention", "feed-forward", "logits"}
    others = {"add and norm", "embeddings", "loss", "optimizer", "unnamed"}
    assert {one.part for one in categories} == products | others
    found = {one.part for one in categories if one.kind == "matrix products"}
    assert found == products


def test_programs_of_one_name_keep_what_they_agree_on():
    def program(scope):
        named = DRAWN.replace("jit(f)/x/attention/y", scope)
        return named.replace("\n}\n", '\n}, execution_thread="another"\n')

    one, both = (
        categorize_all([program(scope), program("jit(s)/norm/b")])
        for scope in ("jit(s)/norm/b", "jit(s)/feed_forward/b")
    )
    assert one.keys() - both.keys() == {"jit_step/product"}
    assert one["jit_step/product"] == OpCategory("matrix products", "add and norm")


def test_a_computation_that_is_not_there_is_no_mistake():
    program = (
        "ENTRY %m (x: f32[2]) -> f32[2] {\n  %f = f32[2] fusion(%x), calls=%no\n}\n"
    )
    assert categorize_ops(program)["f"].kind == "copies"
