import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo_communication import collective_bytes
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DEVICES = 4


def compiled(function, *shapes, specs, out):
    """Compiles a function for 4 devices and returns XLA's program."""
    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    place = lambda spec: NamedSharding(mesh, PartitionSpec(*spec))  # noqa: E731
    jitted = jax.jit(
        function, in_shardings=tuple(map(place, specs)), out_shardings=place(out)
    )
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return jitted.lower(*arguments).compile().as_text()


def test_a_sum_over_devices_exchanges_what_it_results_in():
    program = compiled(lambda x: x.sum(0), (8, 13), specs=[("x",)], out=())
    assert collective_bytes(program) == {"all-reduce": 4 * 13}


def test_a_gathered_array_counts_whole():
    program = compiled(lambda x: x * 2, (8, 13), specs=[("x",)], out=())
    assert collective_bytes(program) == {"all-gather": 4 * 8 * 13}


def test_what_stays_where_it_is_is_not_exchanged():
    program = compiled(lambda x: x * 2, (8, 13), specs=[("x",)], out=("x",))
    assert collective_bytes(program) == {}


def test_a_loop_counts_as_often_as_it_runs():
    def summed(x):
        def add(total, _):
            return total + (x * total.sum()).sum(0), None

        return jax.lax.scan(add, jnp.zeros(13), None, length=5)[0]

    program = compiled(summed, (8, 13), specs=[("x",)], out=())
    assert collective_bytes(program)["all-reduce"] >= 5 * 4 * 13


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%a = bf16[6,5]{1,0} all-reduce(%x)", {"all-reduce": 60}),
        ("%a = (f32[3]{0}, pred[7]{0}) all-reduce(%x, %y)", {"all-reduce": 19}),
        (
            "%a = (f32[3]{0}, f32[12]{0}) all-gather-start(%x)",
            {"all-gather": 48},  # the operand stands first
        ),
        ("%a = f32[3]{0} all-gather-done(%x)", {}),
        ("%a = f8e4m3fn[7]{0} reduce-scatter(%x)", {"reduce-scatter": 7}),
        ("%a = f32[3]{0} add(%x, %y)", {}),
    ],
)
def test_a_line_of_a_program_is_read_as_xla_writes_it(line, wanted):
    program = f"ENTRY %main (x: f32[3]) -> f32[3] {{\n  {line}\n}}\n"
    assert collective_bytes(program) == wanted


def test_what_is_called_is_counted_once_for_each_call():
    program = """
%inside (x: f32[8]) -> f32[2] {
  %sum = f32[8]{0} all-reduce(%x), to_apply=%add
  ROOT %part = f32[2]{0} dynamic-slice(%sum, %i), dynamic_slice_sizes={2}
}

%other (x: f32[8]) -> f32[3] {
  ROOT %all = f32[3]{0} all-gather(%x)
}

ENTRY %main (x: f32[8]) -> f32[2] {
  %a = f32[2]{0} call(%x), to_apply=%inside
  %b = ((f32[8]), f32[2]) async-start(%x), calls=%inside
  %c = f32[2]{0} async-done(%b), calls=%inside
  ROOT %d = f32[2]{0} conditional(%p, %x, %x), branch_computations={%other, %other}
}
"""
    assert collective_bytes(program) == {"all-reduce": 2 * 32, "all-gather": 2 * 12}
