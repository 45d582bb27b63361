import dataclasses

import pytest

from t2t_jax.config import Config, DataConfig
from t2t_jax.run.languages import (
    languages_of,
    languages_of_spec,
    only_pair,
)
from t2t_jax.run.workdir import Workdir


def trained_on(spec):
    return dataclasses.replace(Config(), data=DataConfig(train=spec))


@pytest.mark.parametrize(
    ("spec", "languages"),
    [
        ("text:a.en,a.de", [("en", "de")]),
        ("text:x/a.en.gz+b.txt,x/a.pt_BR.gz+b.txt[9:]", [("en", "pt_BR")]),
        ("text:en.txt,fr.txt", [("en", "fr")]),
        ("text:source.txt,target.txt", []),
        ("text:train.src,train.tgt", []),
        ("tsv:pairs.tsv#3,1", []),
        ("tfds:wmt14_translate/de-en:train:en-de", [("en", "de")]),
        ("tfds:wmt14_translate/fr-en:train[:1%]:fr-en", [("fr", "en")]),
        ("tfds:flores", []),
        ("0.5*text:a.fr,a.en++phrasebook:train:9", [("fr", "en"), ("en", "de")]),
        ("text:a.en,a.de++2*text:b.en,b.de++tsv:c.tsv", [("en", "de")]),
    ],
)
def test_languages_are_read_off_the_names_of_the_text(spec, languages):
    assert languages_of_spec(spec) == languages


def test_languages_of_an_import_are_known(tmp_path):
    config, run = trained_on("text:a.en,a.fr"), Workdir(tmp_path)
    assert languages_of(run, config) == [("en", "fr")]
    model = tmp_path / "model.json"
    model.write_text('{"imported": {"languages": ["fi", "de"]}}')
    assert only_pair(run, config) == ("fi", "de")
    model.write_text('{"imported": {"format": "marian"}}')
    assert only_pair(run, config) == ("en", "fr")
    model.unlink()
    assert only_pair(run, trained_on("text:a.en,a.de++text:a.en,a.fr")) is None
