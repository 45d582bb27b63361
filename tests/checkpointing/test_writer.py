import pytest

from t2t_jax.checkpointing.checkpoints import NO_SCORE, dev_score
from t2t_jax.checkpointing.writer import steps_to_keep


def periodic(**more):
    return {"kinds": ["periodic"], **more}


def test_a_best_or_stopped_one_is_not_counted_among_the_periodic_ones():
    metas = {
        2: periodic(),
        3: {"kinds": ["best"], "bleu": 30.0},
        5: periodic(),
        7: {"kinds": ["stopped"]},
        11: periodic(),
        13: {"kinds": ["stopped"]},
    }
    assert steps_to_keep(metas, keep=2) == {3, 5, 11, 13}


def test_of_equal_scores_the_newest_is_the_best():
    metas = {n: periodic(bleu=20.0) for n in (5, 3, 7)}
    assert steps_to_keep({**metas, 9: periodic()}, keep=1) == {7, 9}


def test_an_unreadable_checkpoint_is_kept_and_not_counted():
    metas = {2: None, 3: periodic(), 5: periodic(), 7: None}
    assert steps_to_keep(metas, keep=1) == {2, 5, 7}


def test_there_may_be_nothing_to_keep():
    assert steps_to_keep({}, keep=3) == set()


@pytest.mark.parametrize(
    ("meta", "score"),
    [
        ({"bleu": 0.0}, 0.0),
        ({"bleu": 87.0, "f1": 72.5}, 72.5),
        ({}, NO_SCORE),
    ],
)
def test_a_score_of_nothing_is_not_no_score(meta, score):
    assert dev_score(meta) == score
