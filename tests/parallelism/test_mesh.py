import jax
import pytest
from jax.sharding import AxisType

from t2t_jax.parallelism.mesh import DATA, make_mesh, rows_for


def test_a_mesh_has_one_axis_over_the_devices_given_in_their_order():
    devices = jax.devices()[::-1][:5]
    mesh = make_mesh(devices)
    assert mesh.axis_names == (DATA,)
    assert mesh.devices.tolist() == devices


def test_without_devices_all_of_this_process_are_taken():
    assert make_mesh().devices.tolist() == jax.local_devices()


def test_the_axis_is_auto_so_that_modules_need_not_say_how_they_are_sharded():
    assert make_mesh().axis_types == (AxisType.Auto,)


@pytest.mark.parametrize(
    ("shards", "rows", "wanted"),
    [(1, 7, 7), (3, 1, 3), (3, 3, 3), (3, 4, 6), (7, 13, 14), (8, 96, 96)],
)
def test_rows_are_rounded_up_to_a_multiple_of_the_shards(shards, rows, wanted):
    assert rows_for(make_mesh(jax.devices()[:shards]), rows) == wanted
