"""Checkpoints are saved, resolved, restored and kept.

Seen to fail: with a writer that does not call `recover`.
"""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from t2t_jax.checkpointing.checkpoints import Checkpoints, without_checksums
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.errors import DataError
from t2t_jax.sharding.config import MeshConfig
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import shardings_for
from tests.checkpointing.small_states import like, params_of, save, trained

RULES = (("kernel", ("d_model", "")), (".*", ()))


def test_a_run_comes_back_bitwise_on_other_devices(checkpoints, one):
    params, state = trained(0)
    seven = make_mesh(jax.devices()[:7], config=MeshConfig(fsdp=7))
    scattered = jax.device_put(
        (params, state), shardings_for((params, state), seven, rules=RULES)
    )
    checkpoints.save(
        3, params=scattered[0], optimizer=scattered[1], meta={"kinds": ["final"]}
    )
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
    checkpoints.save(1, params=params, optimizer=None, meta={"kinds": []})
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


def test_the_write_check_leaves_nothing_and_has_a_name_per_process(
    checkpoints, monkeypatch
):
    seen = []
    monkeypatch.setattr("shutil.rmtree", lambda path, **_: seen.append(path.name))
    for index in (0, 1):
        monkeypatch.setattr("jax.process_index", lambda index=index: index)
        checkpoints.check_writable(5)
    assert len(set(seen)) == 2
    monkeypatch.undo()
    checkpoints.save(5, params=params_of(5), optimizer=None, meta={"kinds": []})
    checkpoints.check_writable(6)
    checkpoints.wait()
    assert checkpoints.steps() == [5]


def test_retention_is_remembered_by_another_process(tmp_path):
    for step, kinds, bleu in [(1, "best", 9.0), (2, "periodic", None)]:
        opened = CheckpointWriter(tmp_path, keep=1)
        save(opened, step, kinds, bleu=bleu)
        opened.wait()
    opened = CheckpointWriter(tmp_path, keep=1)
    save(opened, 3, "periodic")
    assert opened.steps() == [1, 3]
    opened.wait()


@pytest.mark.parametrize(("which", "step"), [("best", 2), ("last", 7), ("3", 3)])
def test_a_checkpoint_is_resolved_by_name_or_number(chosen, which, step):
    assert chosen.resolve_step(which) == step


def test_without_a_score_the_best_is_the_last(checkpoints):
    save(checkpoints, 2, "periodic")
    save(checkpoints, 3, "periodic")
    assert checkpoints.resolve_step("best") == 3


@pytest.mark.parametrize("which", ["5", "-1", "bset", "²", ""])
def test_an_unknown_checkpoint_is_refused_with_the_steps_there_are(chosen, which):
    with pytest.raises(DataError, match=r"best, last, or .*: 2, 3, 7\."):
        chosen.resolve_step(which)


def test_a_directory_without_checkpoints_is_an_error_and_not_created(tmp_path):
    empty = Checkpoints(tmp_path / "checkpoints")
    assert empty.steps() == []
    with pytest.raises(DataError, match="holds no checkpoint"):
        empty.resolve_step("best")
    assert not (tmp_path / "checkpoints").exists()


def test_what_a_killed_save_left_is_not_a_checkpoint_and_is_swept(checkpoints):
    save(checkpoints, 5, "final")
    left = checkpoints.directory / "7.orbax-checkpoint-tmp-1700000000"
    shutil.copytree(checkpoints.directory / "5", left)
    assert Checkpoints(checkpoints.directory).resolve_step("last") == 5
    assert left.exists()  # a reader sweeps nothing
    resumed = CheckpointWriter(checkpoints.directory, keep=2)
    save(resumed, 7, "final")
    resumed.wait()
    assert not left.exists()


def test_a_save_replaces_a_checkpoint_of_the_same_step(checkpoints):
    save(checkpoints, 5, "stopped")
    checkpoints.save(5, params=params_of(6), optimizer=None, meta={"kinds": ["best"]})
    checkpoints.wait()
    assert checkpoints.meta(5)["kinds"] == ["best"]
    assert [path.name for path in checkpoints.directory.iterdir()] == ["5"]
    checkpoints.verify(5)


def test_a_stray_file_in_the_way_of_a_save_is_moved_aside(checkpoints):
    checkpoints.directory.mkdir(parents=True)
    (checkpoints.directory / "5").write_text("notes")
    save(checkpoints, 5, "final")
    assert checkpoints.steps() == [5]
    assert (checkpoints.directory / "stray-5").read_text() == "notes"


def test_a_writer_recovers_from_a_crash_and_a_reader_does_not(
    checkpoints,
):
    save(checkpoints, 7, "periodic")
    checkpoints.wait()
    folder = checkpoints.directory
    (folder / "7").rename(folder / "replaced-7")
    (folder / "9.orbax-checkpoint-tmp").mkdir()
    left = {path.name for path in folder.iterdir()}
    assert Checkpoints(folder).steps() == []
    assert {path.name for path in folder.iterdir()} == left
    assert CheckpointWriter(folder, keep=2).steps() == [7]
    assert {path.name for path in folder.iterdir()} == {"7"}
