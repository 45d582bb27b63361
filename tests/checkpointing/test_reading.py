"""A checkpoint is believed only where it is bit for bit what was saved.

Seen to fail: without the comparison in `_require_sums`, and with the seal broken
outside of the `try` in `Reader.arrays` (the other processes hear of nothing).
"""

import shutil

import numpy as np
import orbax.checkpoint as ocp
import pytest

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.damage import DamagedError
from t2t_jax.errors import DataError
from tests.checkpointing.small_states import like, params_of, save, trained

# Reading a damaged checkpoint leaves coroutines of Orbax that nobody awaits.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


def test_parameters_of_another_shape_are_refused(checkpoints, one):
    save(checkpoints, 5, "final")
    other = params_of(5) | {"bias": np.zeros(6, np.float32)}
    reason = r"5 was written for another model: bias was saved as float32\[5\] and is "
    with pytest.raises(DataError, match=reason):
        checkpoints.params(5, like=like(other, one))


def test_parameters_of_other_names_are_refused(checkpoints, one):
    save(checkpoints, 5, "final")
    other = params_of(5)
    other["decoder"] = other.pop("encoder")
    with pytest.raises(DataError, match="another model: encoder/layer_0/kernel was"):
        checkpoints.params(5, like=like(other, one))


@pytest.mark.parametrize("item", ["params", "meta"])
def test_a_checkpoint_with_a_missing_part_is_named(checkpoints, one, item):
    save(checkpoints, 5, "final")
    shutil.rmtree(checkpoints.directory / "5" / item)
    reader = Checkpoints(checkpoints.directory)
    with pytest.raises(DataError, match="checkpoints/5 is damaged: ") as info:
        reader.meta(5) if item == "meta" else reader.params(
            5, like=like(params_of(5), one)
        )
    assert info.value.exit_code == 65


def test_a_truncated_checkpoint_is_named(checkpoints, one):
    save(checkpoints, 5, "final")
    for path in (checkpoints.directory / "5" / "params").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="checkpoints/5 is damaged: "):
        checkpoints.params(5, like=like(params_of(5), one))


def test_what_is_verified_on_the_host_is_what_was_saved(checkpoints, one):
    params, state = trained(7)
    checkpoints.save(3, params=params, optimizer=state, meta={"kinds": []})
    checkpoints.wait()
    checkpoints.verify(3)


def other_value(folder):
    """Writes another array into a checkpoint, which Orbax reads without an error."""
    changed = params_of(5)
    changed["bias"] = np.nextafter(changed["bias"], np.float32(9))
    shutil.rmtree(folder / "params")
    with ocp.StandardCheckpointer() as writer:
        writer.save(folder / "params", changed)


@pytest.mark.parametrize("way", ["params", "verify"])
def test_one_other_bit_of_an_array_is_damage(checkpoints, one, way):
    save(checkpoints, 3, "periodic")
    save(checkpoints, 5, "final")
    other_value(checkpoints.directory / "5")
    reader = Checkpoints(checkpoints.directory)
    read = {
        "params": lambda: reader.params(5, like=like(params_of(5), one)),
        "verify": lambda: reader.verify(5),
    }
    with pytest.raises(DamagedError, match=r"in params, bias was .*\n.*there: 3\."):
        read[way]()
    assert reader.meta(5) == {"kinds": ["final"]}


def test_a_process_that_could_not_read_makes_all_of_them_refuse(checkpoints, one):
    params, state = trained(7)
    checkpoints.save(3, params=params, optimizer=state, meta={"kinds": []})
    checkpoints.wait()
    told = []

    def others_could_not(could):
        told.append(could)
        return False

    shapes = {"params": like(params, one), "optimizer": like(state, one)}
    with pytest.raises(DamagedError, match="another process could not read it"):
        checkpoints.training(3, **shapes, all_could=others_could_not)
    shutil.rmtree(checkpoints.directory / "3" / "meta")
    with pytest.raises(DamagedError, match="its meta cannot be read"):
        checkpoints.training(3, **shapes, all_could=others_could_not)
    assert told == [True, False]


def test_the_best_is_not_chosen_where_a_score_cannot_be_read(chosen):
    (chosen.directory / "3" / "meta" / "metadata").write_text("{}")
    with pytest.raises(DamagedError, match="3 is damaged: its meta is not what was"):
        chosen.choose("best")
    assert chosen.choose("last") == 7
