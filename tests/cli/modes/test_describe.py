import dataclasses
import json

import pytest

from t2t_jax.cli.modes.describe import count_pairs_of
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.errors import DataError
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.run.workdir import Workdir

CONFIG = dataclasses.replace(
    Config(), data=DataConfig(train="phrasebook:train:300", dev="phrasebook:dev:11")
)


def test_corpora_are_counted_unless_the_run_has_done_so(tmp_path):
    off = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(every_steps=0))
    none, run = Workdir(tmp_path / "none"), Workdir(tmp_path)
    found = count_pairs_of(CONFIG, workdir=none)
    assert (found["train"]["pairs"], found["dev"]["pairs"]) == (300, 11)
    assert list(count_pairs_of(off, workdir=none)) == ["train"]
    # Nothing is downloaded.
    data = DataConfig(train="tfds:wmt14_translate/de-en:train:en-de")
    absent = count_pairs_of(dataclasses.replace(off, data=data), workdir=none)["train"]
    assert absent["pairs"] is None
    assert "not a prepared set of TFDS" in absent["note"]
    told = {"spec": "text:a,b", "mean_length": {"source": 5.0, "target": 6.0}}
    record = {"train": {**told, "counts": {"read": 9, "kept": 7}}}
    (tmp_path / "data.json").write_text(json.dumps(record))
    found = count_pairs_of(off, workdir=run)
    assert found == {"train": {**told, "pairs": 7, "note": ""}}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"train": 3, "dev": 4}'])
def test_a_damaged_record_is_named(tmp_path, text):
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(DataError, match=r"data\.json is damaged"):
        count_pairs_of(CONFIG, workdir=Workdir(tmp_path))
