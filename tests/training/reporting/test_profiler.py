"""A real trace, and what is read of traces and of programs, drawn by hand and compiled.

Which steps a run traces, and that its records are those of a run without, is in
tests/integration/test_profile.py. Seen to fail: without `python_tracer_level`; without
the ends that a CPU notes apart, or taken by their number alone; where any event counts
as an operation; where what is under way is given up when another begins. Of categories:
without what is fused; without `_PRODUCTS`, `_MOVES` and "add and norm"; where a tuple's
shape is not read.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.training.reporting.profiler import (
    OpCategory,
    Operation,
    Profiler,
    categorize_ops,
    operations,
    self_times,
    summarize_trace,
)
from tests.training.copy_task import Trainer


def test_a_real_trace_has_the_steps_and_what_the_devices_did(tmp_path):
    said = []
    traced = Profiler(range(3, 6), folder=tmp_path, log=said.append)
    square = jax.jit(lambda x: jnp.tanh(x @ x))
    x = square(jnp.ones((128, 128))).block_until_ready()
    program = square.lower(x).compile().as_text()
    with traced.stop_on_exit(0, programs=lambda: [program]):
        for step in range(1, 8):
            if traced.starts_at(step):
                traced.start(step)
            with traced.annotate(step):
                x = square(x).block_until_ready()
            if traced.ends_at(step):
                traced.stop()
    (file,) = tmp_path.rglob("*.xplane.pb")
    assert (file.parent / "perfetto_trace.json.gz").is_file()
    events = [
        event
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes
        for line in plane.lines
        for event in line.events
    ]
    assert [dict(e.stats)["step_num"] for e in events if e.name == "train"] == [3, 4, 5]
    assert not any(event.name.startswith("$") for event in events)  # Python's calls
    assert str(tmp_path) in said[0]
    assert "matrix products" in said[1]
    assert "other programs" not in said[1]


ROLES = {
    "jit_step/dot.1": OpCategory("matrix products", "attention"),
    "jit_step/dot.2": OpCategory("matrix products", "logits"),
    "jit_step/add.3": OpCategory("elementwise", "attention"),
}


def event(name, begin, end, **stats):
    when = {"start_ns": begin, "end_ns": end}
    return SimpleNamespace(name=name, **when, stats=list(stats.items()))


def plane(*lines):
    return SimpleNamespace(lines=[SimpleNamespace(events=line) for line in lines])


def done(name, begin, end, module="jit_step"):
    return event("a kernel", begin, end, hlo_module=module, hlo_op=name)


@pytest.fixture
def said_of(monkeypatch):
    """Makes of planes what `summarize_trace` reads of a file."""

    def read(*planes):
        data = SimpleNamespace(planes=planes)
        reader = SimpleNamespace(from_file=lambda path: data)
        monkeypatch.setattr(jax.profiler, "ProfileData", reader)
        return summarize_trace("a file", ROLES)

    return read


def test_what_other_threads_go_on_with_ends_where_that_is_said():
    found = operations(
        plane(
            [
                event("dot.1", 3, 5, hlo_op="dot.1", _p=17),
                event("dot.2", 5, 9, hlo_op="dot.2", _p=19),
                event("end: dot.2", 7, 7, _c=19),
            ],
            [event("end: dot.1", 12, 13, _c=17), event("end: dot.2", 40, 41, _c=17)],
        )
    )
    assert list(found) == [Operation("dot.1", 3, 12), Operation("dot.2", 5, 9)]


def test_a_moment_is_of_the_operation_that_began_last():
    #   0         1         2
    #   0123456789012345678901234567
    #   loop---------
    #      dot-----
    #       in
    #                 first---
    #                  sec-
    #                     longer
    #                            dot
    spans = [
        *(("dot", 3, 11), ("loop", 0, 13), ("in", 4, 6), ("first", 14, 22)),
        *(("sec", 15, 19), ("longer", 18, 24), ("dot", 25, 28)),
    ]
    times = self_times(Operation(*span) for span in spans)
    assert times == {"loop": 5, "dot": 9, "in": 2, "first": 1, "sec": 3, "longer": 6}
    assert times.total() == 28 - (14 - 13) - (25 - 24)


def test_a_summary_adds_up_by_kind_and_by_part(said_of):
    said = said_of(
        plane(
            [done("dot.1", 0, 8), done("dot.2", 12, 16), event("host", 0, 99)],
            [done("add.3", 16, 20), done("dot.1", 4, 8)],
            [],
        )
    )
    assert said == (
        "The devices were busy for 80.0 % of the time between the first and the last "
        "operation: matrix products 75.0 %, elementwise 25.0 %.\n"
        "By parts of the step: attention 75.0 %, logits 25.0 %."
    )


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
    kinds = {
        **dict.fromkeys(("product", "library"), "matrix products"),
        **dict.fromkeys(("other", "plus"), "elementwise"),
        **dict.fromkeys(("called", "mean"), "reductions"),
        "moved": "copies",
        "row": "gathers and scatters",
        "shared": "exchange between devices",
    }
    found = categorize_ops(DRAWN)
    assert {name: found[name].kind for name in kinds} == kinds


@pytest.mark.parametrize(
    ("scope", "part"),
    [
        ("jit(s)/jvp(T)/T.encode/encoder/layer_0/a_norm/self_attention/q", "attention"),
        ("jit(s)/transpose(jvp(T))/decoder.read/cross_attention.keys/k", "attention"),
        ("jit(s)/jvp(T)/encoder/layer_0/feed_forward_norm/norm/mul", "add and norm"),
        ("jit(s)/jvp(T)/T.decode/embedding.logits/dot", "logits"),
        ("jit(s)/jvp(T)/T.decode/embedding/take", "embeddings"),
        ("jit(s)/transpose(jvp())/sub", "loss"),
        ("jit(s)/mul", "optimizer"),
        ("", "unnamed"),
    ],
)
def test_the_part_is_told_by_the_name_in_jax(scope, part):
    named = DRAWN.replace("jit(f)/x/attention/y", scope)
    assert categorize_ops(named)["product"] == OpCategory("matrix products", part)


def test_a_training_step_has_every_part_and_products_where_the_paper_has_them():
    categories = categorize_ops(Trainer(1).compiled.as_text()).values()
    products = {"attention", "feed-forward", "logits"}
    others = {"add and norm", "embeddings", "loss", "optimizer", "unnamed"}
    assert {one.part for one in categories} == products | others
    found = {one.part for one in categories if one.kind == "matrix products"}
    assert found == products
