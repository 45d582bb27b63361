"""Sets whose own files name code to be run.

Seen to fail: without `_require_classes_of_tfds` in `open_set` TFDS imports the module
of the proto and of the legacy form.
"""

import json
import re

import pytest

from t2t_jax.data.corpora.tfds_reader import open_set
from t2t_jax.errors import DataError

FEATURES = "tensorflow_datasets.core.features"
BOMB = {"type": "bomb.Feature", "content": {}}


@pytest.mark.parametrize(
    "feature",
    [
        {"pythonClassName": "bomb.Feature", "text": {}},
        {"python_class_name": "bomb.Feature", "text": {}},
        BOMB,
        {
            "pythonClassName": f"{FEATURES}.text_feature.Text",
            "jsonFeature": {"json": json.dumps(BOMB)},
        },
    ],
    ids=["proto", "proto by its own names", "legacy", "JSON within JSON"],
)
def test_a_set_that_names_code_of_others_is_refused_and_none_of_it_runs(
    tmp_path, monkeypatch, feature
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bomb.py").write_text("raise SystemExit('it was run')")
    (tmp_path / "dataset_info.json").write_text(
        json.dumps({"name": "a_set", "version": "1.0.0", "fileFormat": "array_record"})
    )
    told = {
        "pythonClassName": f"{FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": {"de": feature}},
    }
    if feature is BOMB:
        told = feature
    (tmp_path / "features.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=r"names bomb\.Feature, whose code would be"):
        open_set(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not valid JSON at line 1, column 2"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 900 + "{}", "not valid JSON at line 1, column 4503"),
        ("\udcff", "invalid UTF-8 (byte 0xff) at line 1, column 1"),
    ],
    ids=["cut", "deep", "open", "bytes"],
)
def test_a_description_that_is_none_is_damage(tmp_path, content, why):
    path = tmp_path / "features.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    why = re.escape(f"not a valid TFDS set (features.json: {why})")
    with pytest.raises(DataError, match=why):
        open_set(tmp_path)
