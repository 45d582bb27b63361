import pytest

from t2t_jax.config import Config
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.report.curves import steps_of
from t2t_jax.run.status import standing
from t2t_jax.run.workdir import Workdir
from tests.report.made_up_run import eval_record, records, write_records


@pytest.fixture
def workdir(tmp_path):
    return Workdir(tmp_path)


def stand(workdir, found, steps=100, **options):
    config = Config(steps=steps, evaluation=EvaluationConfig(patience=3))
    workdir.write_config(config)
    write_records(workdir.path, found)
    return standing(workdir, config, steps_of(found), **options)


@pytest.mark.parametrize(
    ("found", "steps", "state", "reason"),
    [
        (records(), 100, "complete", "Done."),
        (records(), 500, "complete", "Ended early: "),
        (records()[:-1], 500, "stopped", "Saved at step 100, "),
    ],
)
def test_the_end_of_training_is_seen_while_locked(workdir, found, steps, state, reason):
    (workdir.checkpoints / "100/meta").mkdir(parents=True)
    (workdir.checkpoints / "100/meta/metadata").write_text('{"kinds": ["stopped"]}')
    with workdir.locked():
        over = stand(workdir, found, steps, is_over=True)
        assert stand(workdir, found, steps)["state"] == "running"
    assert over["state"] == state
    assert over["reason"].startswith(reason)
    assert over["seconds_left"] is None


@pytest.mark.parametrize(
    ("losses", "best"), [([6.5, 6.0, 6.25], 20), ([6.0, 6.0, 6.5], 10)]
)
def test_of_equal_scores_the_first_of_the_lowest_loss_is_best(workdir, losses, best):
    found = [eval_record(10 * n, 5.0, loss=x) for n, x in enumerate(losses, start=1)]
    unscored = {**eval_record(40, 6.0), "bleu": None}
    assert stand(workdir, [*found, unscored])["best"]["step"] == best
