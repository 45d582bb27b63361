"""Checkpoints are saved, resolved, restored and kept.

Seen to fail: with a writer that does not call `recover`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from t2t_jax.checkpointing.reader import (
    NO_SCORE,
    CheckpointReader,
    best_step,
    dev_score,
    without_checksums,
)
from t2t_jax.checkpointing.writer import CheckpointWriter, steps_to_keep
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import shardings_for
from tests.checkpointing.small_states import like, params_of, save, trained

RULES = (("kernel", ("d_model", "")), (".*", ()))


def test_a_run_comes_back_bitwise_on_other_devices(checkpoints, one):
    params, state = trained(0)
    seven = make_mesh(jax.devices()[:7], fsdp=7)
    scattered = jax.device_put(
        (params, state), shardings_for((params, state), seven, rules=RULES)
    )
    made = dict(zip(("params", "optimizer"), scattered, strict=True))
    checkpoints.save(3, **made, meta={"kinds": ["final"]})
    checkpoints.wait()
    wanted = {"params": like(params, one), "optimizer": like(state, one)}
    items, meta = checkpoints.read(3, wanted)
    checkpoints.check(3, items, meta)
    restored = (items["params"], items["optimizer"])
    assert without_checksums(meta) == {"kinds": ["final"]}
    assert jax.tree.structure(restored) == jax.tree.structure((params, state))
    jax.tree.map(np.testing.assert_array_equal, restored, (params, state))
    for leaf in jax.tree.leaves(restored):
        assert leaf.sharding.device_set == {jax.devices()[0]}
    scattered_again = checkpoints.params(3, like=like(params, seven, rules=RULES))
    assert scattered_again["encoder"]["layer_0"]["kernel"].sharding.spec == P("fsdp")
    jax.tree.map(np.testing.assert_array_equal, scattered_again, params)


def test_what_is_saved_is_what_it_was_though_the_buffers_are_donated(checkpoints, one):
    params = jax.tree.map(jnp.asarray, params_of(0))
    checkpoints.save(1, params=params, meta={"kinds": []})
    jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree), donate_argnums=0)(params)
    checkpoints.wait()
    restored = checkpoints.params(1, like=like(params_of(0), one))
    jax.tree.map(np.testing.assert_array_equal, restored, params_of(0))


def test_the_newest_periodic_ones_the_best_and_the_newest_survive(checkpoints):
    # keep=2. Each row: what is saved, and the steps that are left then.
    timeline = [
        (1, ("periodic",), None, [1]),
        (2, ("periodic", "best"), 20.0, [1, 2]),
        (3, ("periodic",), None, [2, 3]),
        (4, ("best",), 30.0, [2, 3, 4]),
        (5, ("periodic",), 25.0, [3, 4, 5]),
        (6, ("stopped",), None, [3, 4, 5, 6]),
        (7, ("periodic",), None, [4, 5, 7]),
        (8, ("best",), 40.0, [5, 7, 8]),
        (9, ("final",), None, [5, 7, 8, 9]),
    ]
    for step, kinds, bleu, left in timeline:
        save(checkpoints, step, *kinds, bleu=bleu)
        assert checkpoints.steps() == left, f"after step {step}"


# A name that nobody knows, and a score that would make it the best.
@pytest.mark.parametrize("change", [('"kinds"', '"kindr"'), ("2.0", "9.0")])
def test_a_damaged_older_one_neither_ends_a_save_nor_decides_what_goes(
    checkpoints, change
):
    for step in (1, 2, 3):
        save(checkpoints, step, "periodic", bleu=float(step))
    path = checkpoints.directory / "2" / "meta" / "metadata"
    path.write_text(path.read_text().replace(*change))
    for step in (4, 5, 6):
        save(checkpoints, step, "periodic")
    assert checkpoints.steps() == [2, 3, 5, 6]


def test_a_writer_recovers_from_a_crash_and_a_reader_does_not(checkpoints):
    save(checkpoints, 7, "periodic")
    checkpoints.wait()
    folder = checkpoints.directory
    (folder / "7").rename(folder / "replaced-7")
    (folder / "9.orbax-checkpoint-tmp").mkdir()
    left = {path.name for path in folder.iterdir()}
    assert CheckpointReader(folder).steps() == []
    assert {path.name for path in folder.iterdir()} == left
    assert CheckpointWriter(folder, keep=2).steps() == [7]
    assert {path.name for path in folder.iterdir()} == {"7"}


def test_an_unreadable_checkpoint_is_kept_and_of_equal_scores_the_newest():
    periodic = {"kinds": ["periodic"]}
    metas = {2: None, 3: periodic, 5: periodic, 7: None}
    assert steps_to_keep(metas, keep=1) == {2, 5, 7}
    metas = {n: {**periodic, "bleu": 20.0} for n in (5, 3, 7)}
    assert steps_to_keep({**metas, 9: periodic}, keep=1) == {7, 9}
    # Of a run, the one of the lower loss.
    metas[3] = {"kinds": ["periodic", "best"], "bleu": 20.0}
    assert (
        steps_to_keep({**metas, 9: periodic}, keep=1) == {3, 9} == {best_step(metas), 9}
    )


def test_a_score_of_nothing_is_not_no_score():
    scores = map(dev_score, [{"bleu": 0.0}, {"bleu": 87.0, "f1": 72.5}, {}])
    assert [*scores] == [0.0, 72.5, NO_SCORE]
