"""Costs read from programs: drawn ones, and what the compiler itself counts."""

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.devices.topology import parse_topology
from t2t_jax.run.description.program_costs import REACHED, ProgramCosts

H100 = parse_topology("gpu:h100:8")
HOSTS = parse_topology("gpu:h100:2x8")
V5E = parse_topology("tpu:v5e:2x4")
MS_OF_A_BYTE = 1e3 / H100.target.bandwidth
MS_OF_A_LINK = 1e3 / (REACHED * H100.target.link)


def program(lines, computations=""):
    return f"HloModule m\n\n{computations}\nENTRY %main (x: f32[8]) -> f32[8] {{\n" + (
        "\n".join(f"  {line}" for line in lines) + "\n}\n"
    )


def costs(lines, computations="", topology=H100):
    return ProgramCosts(program(lines, computations), topology)


def test_an_operation_takes_its_bytes_or_its_product():
    found = costs(
        [
            "%x = bf16[4096,8192]{1,0} parameter(0)",
            "%y = bf16[8192,2048]{1,0} parameter(1)",
            "%dot = bf16[4096,2048]{1,0} dot(%x, %y), lhs_contracting_dims={1}, "
            'rhs_contracting_dims={0}, metadata={op_name="jit(a)/feed_forward/b"}',
            "ROOT %add = bf16[4096,2048]{1,0} add(%dot, %dot), "
            'metadata={op_name="jit(a)/transpose(jvp(b))/feed_forward/c"}',
        ]
    )
    assert found.flops == 2 * 4096 * 8192 * 2048
    moved = 2 * (4096 * 8192 + 8192 * 2048 + 4096 * 2048), 2 * 3 * 4096 * 2048
    assert found.bytes == sum(moved)
    product = 1e3 * found.flops / (REACHED * H100.target.peak)
    assert found.parts == {
        ("feed-forward", "forward"): pytest.approx(product),
        ("feed-forward", "backward"): pytest.approx(moved[1] * MS_OF_A_BYTE),
    }
    assert found.ms == pytest.approx(product + moved[1] * MS_OF_A_BYTE)
    assert list(found.bounds) == ["products", "memory"]


START = (
    "%g = f32[1000000]{0} parameter(0)",
    "%start = f32[1000000]{0} all-reduce-start(%g), "
    "replica_groups=mesh['axis_0'=8,'axis_1'=1] {'axis_0'}, to_apply=%sum",
)
WORK = ("%w = f32[50000000]{0} parameter(1)", "%work = f32[50000000]{0} negate(%w)")
DONE = ("ROOT %done = f32[1000000]{0} all-reduce-done(%start)",)


def test_a_collective_is_hidden_by_the_work_after_its_start():
    sent = 2 * 7 / 8 * 4_000_000
    work = 2 * 200_000_000 * MS_OF_A_BYTE
    ms = sent * MS_OF_A_LINK
    assert ms < work
    hidden = costs([*START, *WORK, *DONE])
    exposed = costs([*START, DONE[0].replace("ROOT ", ""), *WORK])
    for found, waited in ((hidden, 0), (exposed, ms)):
        (one,) = found.collectives.values()
        assert (one.kind, one.count, one.bytes) == ("all-reduce", 1, sent)
        assert one.ms == pytest.approx(ms)
        assert one.exposed_ms == pytest.approx(waited)
        assert found.ms == pytest.approx(work + waited)


# Within hosts, and pairs of GPUs, one of each host.
@pytest.mark.parametrize(("axis", "members"), [("b", 8), ("a", 2)])
def test_links_between_hosts_are_slower(axis, members):
    groups = f"replica_groups=mesh['a'=2,'b'=8] {{'{axis}'}}, dimensions={{0}}"
    gathered = f"ROOT %r = f32[{members}000]{{0}} all-gather(%g), {groups}"
    found = costs(["%g = f32[1000]{0} parameter(0)", gathered], topology=HOSTS)
    rate = {"b": H100.target.link, "a": H100.target.gpu.network}[axis]
    assert found.ms == pytest.approx(1e3 * (members - 1) * 4000 / (REACHED * rate))


def test_the_body_of_a_loop_counts_as_often_as_it_runs():
    body = """%body (p: f32[1000]) -> f32[1000] {
  %p = f32[1000]{0} parameter(0)
  %once = f32[1000]{0} negate(%p)
  ROOT %gathered = f32[1000]{0} all-reduce(%once), to_apply=%sum
}
"""
    loop = "ROOT %loop = f32[1000]{0} while(%x), condition=%c, body=%body"
    x = "%x = f32[1000]{0} parameter(0)"
    once = costs([x, loop], body)
    known = ', backend_config={"known_trip_count":{"n":"7"}}'
    often = costs([x, loop + known], body)
    assert often.ms == pytest.approx(7 * once.ms)
    assert often.bytes == 7 * once.bytes == 7 * 8000
    assert often.collectives["all-reduce"].count == 7


def test_of_a_slice_its_own_bytes_move():
    fused = """%fused (p: f32[100000], i: s32[]) -> f32[10] {
  %p = f32[100000]{0} parameter(0)
  %i = s32[] parameter(1)
  ROOT %slice = f32[10]{0} dynamic-slice(%p, %i), dynamic_slice_sizes={10}
}

%put (q: f32[100000], u: f32[10], j: s32[]) -> f32[100000] {
  %q = f32[100000]{0} parameter(0)
  %u = f32[10]{0} parameter(1)
  %j = s32[] parameter(2)
  ROOT %update = f32[100000]{0} dynamic-update-slice(%q, %u, %j)
}
"""
    inputs = ["%x = f32[100000]{0} parameter(0)", "%n = s32[] parameter(1)"]
    cut = "%cut = f32[10]{0} fusion(%x, %n), kind=kLoop, calls=%fused"
    placed = "ROOT %y = f32[100000]{0} fusion(%x, %cut, %n), kind=kLoop, calls=%put"
    found = costs([*inputs, cut, placed], fused)
    assert found.bytes == (40 + 4 + 40) + (40 + 40 + 4 + 40)


@pytest.mark.parametrize(
    ("topology", "shape", "kernel"),
    [
        (H100, "bf16[3,256,8,64]", "__cudnn$fmhaSoftmax"),
        (V5E, "bf16[3,8,256,64]", "tpu_custom_call"),
    ],
)
def test_kernels_of_attention_count_their_products(topology, shape, kernel):
    call = f'custom-call(%q, %q, %q), custom_call_target="{kernel}"'
    forward = 'metadata={op_name="jit(a)/jvp(b)/self_attention/c"}'
    backward = 'metadata={op_name="jit(a)/transpose(jvp(b))/self_attention/c"}'
    query, out = f"%q = {shape} parameter(0)", f"%out = {shape} {call}, {forward}"
    gradient = f"ROOT %grad = {shape} {call}, {backward}"
    found = costs([query, out, gradient], topology=topology)
    assert found.flops == (2 + 5) * (2 * 3 * 8 * 256 * 256 * 64)
    assert found.calls == {kernel: 2}
    assert found.ms > 0


def test_a_tpu_takes_the_cycles_of_its_compiler():
    found = costs(
        [
            "%x = f32[8,128]{1,0:T(8,128)} parameter(0)",
            "ROOT %y = f32[8,128]{1,0:T(8,128)S(1)} fusion(%x), kind=kLoop, calls=%f, "
            'backend_config={"window_config":{"estimated_cycles":"3000000"}}',
        ],
        topology=V5E,
    )
    assert found.ms == pytest.approx(2.0)  # at 1.5 GHz


def test_a_kernel_for_tpus_says_its_operations_in_lines_of_their_own():
    found = costs(
        [
            "%q = bf16[8,128]{1,0} parameter(0)",
            "ROOT %k = bf16[8,128]{1,0} custom-call(%q), "
            'custom_call_target="tpu_custom_call", frontend_attributes={metadata={\n'
            '"block":"{\\"q\\": 256}"\n'
            '}}, metadata={op_name="jit(a)/self_attention/b"}, '
            'backend_config={"cost_estimate":{"flops":"197000000"}}',
        ],
        topology=V5E,
    )
    assert found.flops == 197_000_000
    assert found.parts == {("attention", "forward"): pytest.approx(1e-3 / REACHED)}


def test_products_are_those_that_the_compiler_counts():
    def two(x, w):
        return jnp.einsum("bij,jk->bik", x, w) @ w.T

    x, w = jnp.ones((3, 17, 29)), jnp.ones((29, 31))
    compiled = jax.jit(two).lower(x, w).compile()
    found = ProgramCosts(compiled.as_text(), H100)
    assert found.flops == 2 * (2 * 3 * 17 * 29 * 31)
    assert found.flops <= compiled.cost_analysis()["flops"] <= 1.1 * found.flops
