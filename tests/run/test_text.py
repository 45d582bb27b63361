import dataclasses

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.phrasebook import examples
from t2t_jax.run.text import (
    MAX_EXAMPLES,
    example_sentences,
    languages_of,
    languages_of_spec,
)
from t2t_jax.run.workdir import Workdir


def trained_on(spec):
    return dataclasses.replace(Config(), data=DataConfig(train=spec))


@pytest.mark.parametrize(
    ("spec", "languages"),
    [
        ("text:a.en,a.de", [("en", "de")]),
        ("text:x/a.en.gz+b.txt,x/a.pt_BR.gz+b.txt[9:]", [("en", "pt_BR")]),
        ("text:train.src,train.tgt", []),
        ("tsv:pairs.tsv#3,1", []),
        ("tfds:wmt14_translate/fr-en:train[:1%]:fr-en", [("fr", "en")]),
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
    assert languages_of(run, config) == [("fi", "de")]
    model.write_text('{"imported": {"format": "marian"}}')
    assert languages_of(run, config) == [("en", "fr")]
    model.unlink()
    both = trained_on("text:a.en,a.de++text:a.en,a.fr")
    assert languages_of(run, both) == [("en", "de"), ("en", "fr")]


SAMPLES = """\
  source       A long sentence that says more than anybody would want to type at once.
  reference    x
  translation  y

  source       A cat sleeps.
  reference    source       z
  translation  y
"""


def begun(path, train, dev=""):
    """Makes a run of such data."""
    workdir = Workdir(path / "run")
    workdir.create()
    workdir.write_config(Config(data=DataConfig(train=train, dev=dev)))
    return workdir


def test_a_model_of_the_phrasebook_has_its_examples(tmp_path):
    found = example_sentences(begun(tmp_path, "phrasebook:train:9"))
    assert found == tuple(example.english for example in examples()[:MAX_EXAMPLES])


def test_another_run_has_short_ones_of_its_last_evaluation(tmp_path):
    workdir = begun(tmp_path, "text:a.en,a.de")
    (workdir.path / "samples").mkdir()
    (workdir.path / "samples" / "9.txt").write_text(SAMPLES.replace("cat", "dog"))
    (workdir.path / "samples" / "10.txt").write_text(SAMPLES)
    assert example_sentences(workdir) == ("A cat sleeps.",)


def test_before_an_evaluation_they_are_of_the_development_text(tmp_path):
    for name, line in (("d.en", "It rains.\n\n"), ("d.de", "Es regnet.\n\n")):
        (tmp_path / name).write_text(line)
    dev = f"text:{tmp_path}/d.en,{tmp_path}/d.de"
    assert example_sentences(begun(tmp_path, "tsv:a.tsv", dev)) == ("It rains.",)
