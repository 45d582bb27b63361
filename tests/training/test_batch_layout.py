import jax
import pytest

from t2t_jax.sharding.config import MeshConfig
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.batch_layout import BatchLayout
from t2t_jax.types import BatchShard


def layout_of(*planned, micro_batches=1, devices=8, **sizes):
    mesh = make_mesh(jax.devices()[:devices], config=MeshConfig(**sizes))
    return BatchLayout(planned=planned, mesh=mesh, micro_batches=micro_batches)


def test_the_paper_s_batch_on_eight_devices_in_two_micro_batches():
    layout = layout_of((96, 256), micro_batches=2)
    assert layout.shapes == [(96, 256)]
    assert layout.row_multiple == 16
    assert layout.share == BatchShard()
    assert layout.text() == "8 devices x 2 micro-batches x 1,536 = 24,576 tokens a side"


def test_one_device_is_said_in_the_singular():
    text = layout_of((3, 4), devices=1).text()
    assert text == "1 device x 1 micro-batch x 12 = 12 tokens a side"


def test_devices_that_share_rows_are_no_parts_of_their_own():
    text = layout_of((8, 16), fsdp=2, tensor=2).text()
    assert text == (
        "8 devices (data 2, fsdp 2, tensor 2): 4 parts x 1 micro-batch x 32 = "
        "128 tokens a side"
    )


def test_empty_rows_are_named_with_the_number_that_fills_them():
    layout = layout_of((13, 10), micro_batches=1)
    assert layout.shapes == [(16, 10)]
    assert layout.text().splitlines()[1:] == [
        "3 of 16 rows x 10 slots are empty, so that all parts are alike. A "
        "data.tokens_per_batch of 160 would fill them."
    ]


def test_of_length_buckets_the_largest_counts_and_no_number_is_advised():
    text = layout_of((26, 5), (13, 10)).text()
    assert "= at most 160 tokens a side" in text
    assert "6 of 32 rows x 5 slots are empty" in text
    assert "3 of 16 rows x 10 slots are empty" in text
    assert "data.tokens_per_batch" not in text


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_parts_are_equal(micro_batches):
    layout = layout_of((7, 5), (3, 11), micro_batches=micro_batches, fsdp=2)
    assert all(rows % layout.row_multiple == 0 for rows, _ in layout.shapes)
    assert layout.row_multiple == 8 * micro_batches
