import json
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax import load
from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.config import Config
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache import known_words
from t2t_jax.data.token_cache.known_words import KnownWords, distinct_hashes
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError, UserError
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.inference.average import (
    average_checkpoints,
    average_model,
    select_checkpoints,
)
from t2t_jax.run.inference.provenance import provenance_of
from t2t_jax.run.workdir import Workdir

CONFIG = Config(
    vocabulary=VocabularyConfig(size=101),
    model=TransformerConfig(
        num_layers=1, d_model=10, d_ff=7, num_heads=2, d_k=3, d_v=5, vocab_size=101
    ),
    decoding=DecodingConfig(beam_size=2, max_extra_tokens=3),
    checkpoint=CheckpointConfig(every_minutes=0, every_steps=10, keep=2),
)
# Step 40 was not kept, and two were saved for other reasons than the interval.
KINDS = dict.fromkeys((10, 20, 30, 50), "periodic") | {33: "best", 55: "final"}
WITH_AVERAGE = (10, 20)  # whose trained parameters are others


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """Makes a run that was never trained: every checkpoint is drawn by its step."""
    made = Workdir(tmp_path_factory.mktemp("averages") / "run")
    made.create()
    made.write_config(CONFIG)
    pairs = open_corpus("phrasebook:train:200")
    VocabularyPair.load_or_train(
        pairs, config=CONFIG.vocabulary, seed=0, log=print
    ).save(made.path)
    checkpoints = CheckpointWriter(made.checkpoints, keep=9)
    for step, kind in sorted(KINDS.items()):
        progress = {"step": step, "minutes": step**2, "position": [0, step]}
        meta = {"kinds": [kind], "progress": progress}
        if kind == "best":
            meta["bleu"] = 1.0
        items = {"params": drawn(step)}
        if step in WITH_AVERAGE:
            items["trained"] = drawn(-step)
        checkpoints.save(step, **items, meta=meta)
    checkpoints.wait()
    return made


def drawn(step):
    token = jnp.ones((1, 1), jnp.int32)
    module = make_module(CONFIG.network)
    return module.init(jax.random.key(step), token, token)["params"]


def mean_by_hand(*steps):
    trees = [drawn(step) for step in steps]

    def mean(*leaves):
        wide = np.stack([np.asarray(leaf, np.float64) for leaf in leaves])
        return wide.mean(axis=0).astype(np.float32)

    return jax.tree.map(mean, *trees)


def assert_equal(params, wanted):
    assert len(jax.tree.leaves(wanted)) > 20
    # The float64 sums are taken in another order; rounded to float32 none differs.
    jax.tree.map(np.testing.assert_array_equal, params, wanted)


def test_the_newest_periodic_checkpoints_are_averaged_as_many_as_are_kept(workdir):
    model = average_model(workdir, select_checkpoints(workdir))
    assert model.averaged_steps == (30, 50)
    assert model.step == 50
    assert_equal(model.params, mean_by_hand(30, 50))


@pytest.mark.parametrize(
    ("asked", "fault", "averaged"),
    [
        ({"last": 3}, "20, 30, 50: the gaps are 10, 20 steps", (20, 30, 50)),
        ({"steps": [50, 55]}, "55 is not periodic but final", (50, 55)),
        ({"steps": [20, 30, 20]}, "20 comes 2 times", (20, 20, 30)),
    ],
)
def test_a_fault_of_the_steps_is_refused_unless_it_is_forced(
    workdir, asked, fault, averaged
):
    with pytest.raises(DataError, match=fault):
        select_checkpoints(workdir, **asked)
    selected = select_checkpoints(workdir, **asked, force=True)
    forced = average_model(workdir, selected)
    assert forced.averaged_steps == averaged
    assert_equal(forced.params, mean_by_hand(*averaged))


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"steps": [10, 40]}, r"average_steps=10,40 .*10, 20, 30, 33, 50"),
        ({"last": 5}, r"last=5 .* holds 4\. Set --last to a num.* 1 to 4;"),
    ],
)
def test_checkpoints_that_are_not_there_are_an_error(workdir, asked, message, force):
    with pytest.raises(DataError, match=message):
        select_checkpoints(workdir, **asked, force=force)


def test_a_written_average_loads_and_records_its_steps(workdir, tmp_path):
    corpus = {"spec": "phrasebook:train:200", "fingerprint": "f"}
    lines = {"version": 1, "subwords": [29, 31], "sentences": [1, 2]}
    data = {"train": {**corpus, "counts": {"kept": 199}}, "source_lines": lines}
    (workdir.path / "data.json").write_text(json.dumps(data))
    words = KnownWords(distinct_hashes(["the old man"]))
    (workdir.path / known_words.FILE).write_bytes(words.to_bytes())
    steps = average_checkpoints(workdir, to=tmp_path / "model", steps=[30, 10, 20])
    for name in ("data.json", known_words.FILE):
        (workdir.path / name).unlink()
    assert steps == (10, 20, 30)
    model = load(tmp_path / "model")
    assert (model.step, model.averaged_steps) == (30, steps)
    assert_equal(model.params, mean_by_hand(10, 20, 30))
    assert model.translator().known_words.unseen_shares(["old dog"]) == [0.5]
    assert json.loads((tmp_path / "model" / "model.json").read_text()) == {
        "averaged_steps": [10, 20, 30],
        "step": 30,
        "kinds": ["average"],
        "unit": "steps",
        "gaps": [10, 10],
        "forced": False,
        "run": "run",
        "data": {"train": {**corpus, "pairs": 199}},
        "source_lines": lines,
    }
    assert model.source_lines.subwords.maximum == 31
    origin = provenance_of(Workdir(tmp_path / "model"), 30)
    assert (origin["run"], origin["data"]["train"]["pairs"]) == ("run", 199)


def test_the_trained_parameters_are_averaged_where_there_are_any(workdir, tmp_path):
    to = tmp_path / "mean"
    average_checkpoints(workdir, to=to, steps=WITH_AVERAGE, trained=True)
    assert_equal(load(to).params, mean_by_hand(-10, -20))
    with pytest.raises(UserError, match=r"--trained requires a run with a moving.*out"):
        average_checkpoints(
            workdir, to=tmp_path / "no", steps=(20, 30), force=True, trained=True
        )


def test_a_model_cannot_be_averaged_again(workdir, tmp_path):
    average_checkpoints(workdir, to=tmp_path / "model")
    model = Workdir(tmp_path / "model")
    with pytest.raises(UserError, match="is a model and not a training run"):
        average_checkpoints(model, to=tmp_path / "second", force=True)
    assert not (tmp_path / "second").exists()


def test_the_next_mean_compiles_nothing(workdir, caplog):
    compiled = []
    for steps in ((10, 20, 30), (30,), (20, 30, 50)):
        caplog.clear()
        selected = select_checkpoints(workdir, steps=steps, force=True)
        model = average_model(workdir, selected)
        with caplog.at_level(logging.WARNING), jax.log_compiles():
            # A limit that no other test has, whose programs would be found.
            model.translate(["The old teacher reads a book."], max_extra_tokens=7)
        compiled.append(sum("Compiling" in message for message in caplog.messages))
    assert compiled[0] > 0
    assert compiled[1:] == [0, 0]
