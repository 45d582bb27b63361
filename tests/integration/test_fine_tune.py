"""A run that begins with another model's parameters, on the real command line.

Seen to fail: where `RunCheckpointer.init` ignores `init_from`, and where the optimizer
ignores `frozen`.
"""

import numpy as np

import t2t_jax
from tests.integration import tiny
from tests.training.copy_task import require_same

KEYS = {
    **{key: value for key, value in tiny.TINY.items() if key.startswith("data.")},
    "data.dev": "",
    "data.dev_pairs": 0,
    "evaluation.every_steps": 0,
    "evaluation.patience": 0,
    "checkpoint.every_steps": 1,
    "training.frozen": "encoder",
}


def fine_tune(workdir, base, **changed):
    keys = {**KEYS, **{k.replace("__", "."): v for k, v in changed.items()}}
    given = [f"--config.{key}={value}" for key, value in keys.items()]
    first = ["--config=fine_tune", f"--config.init_from={base}", f"--workdir={workdir}"]
    return tiny.succeed(*first, *given).stderr.decode()


def test_a_run_begins_with_a_model_and_resumes_without_it(tmp_path, tiny_run):
    for name, base, steps in (
        ("run", tiny_run, 1),
        ("run", tmp_path / "gone", 2),
        ("straight", tiny_run, 2),
    ):
        said = fine_tune(tmp_path / name, base, steps=steps)
        begins = "Beginning with the parameters of step" in said
        assert begins == (base == tiny_run)
    paths = (tiny_run, tmp_path / "run", tmp_path / "straight")
    base, tuned, straight = map(t2t_jax.load, paths)
    assert tuned.vocabularies.fingerprint == base.vocabularies.fingerprint
    require_same(base.params["encoder"], tuned.params["encoder"])
    require_same(tuned.params, straight.params)
    tables = [model.params["embedding"]["table"] for model in (base, tuned)]
    # Two updates of Adam move a number by about the learning rate, 3e-6, at most.
    assert 0 < np.abs(tables[0] - tables[1]).max() < 1e-5


def test_a_run_without_progress_ends_and_stays_complete(tmp_path):
    # A learning rate of almost 0: BLEU stays what it was.
    keys = {
        **{"evaluation__every_steps": 1, "evaluation__patience": 2, "steps": 9},
        "optimizer__peak_learning_rate": 1e-12,
    }
    for expected in ("Done: 3 steps of 9, as 2 evaluations", "This run is complete"):
        done = tiny.succeed(*tiny.arguments(tmp_path / "run", **keys))
        assert expected in done.stderr.decode()
