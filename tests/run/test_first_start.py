"""Settings and vocabulary of the model that a run begins with.

Seen to fail: without the comparison of vocabularies a run with another one trains on
ids whose rows are other subwords'; without `saved` a run cannot be resumed by its
command once the first model has been removed.
"""

import pytest

from t2t_jax.config import default, parse
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from t2t_jax.run.first_start import adopt_model, read_vocabularies
from t2t_jax.run.workdir import Workdir

MODEL = {
    "vocabulary": {"size": 7},
    "model": {"num_layers": 3, "activation": "swish", "dropout": 0.3},
    "decoding": {"beam_size": 6, "length_penalty": 1.0},
}


@pytest.fixture
def base(tmp_path):
    base = Workdir(tmp_path / "base")
    base.create()
    base.write_config(parse(MODEL))
    pieces = [*SPECIAL_PIECES, "a", "b", "c"]
    model = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    VocabularyPair(model, model).save(base.path)
    return base


def values(base, **changed):
    nested = default().to_dict()
    nested["init_from"] = str(base.path)
    for key, value in changed.items():
        section, name = key.split("__")
        nested[section][name] = value
    return nested


def test_the_network_is_that_of_the_model_and_training_is_ones_own(base):
    own = values(base, model__dropout=0.2, decoding__length_penalty=0.9)
    found = parse(adopt_model(own, saved=None))
    assert found.model.num_layers == 3
    assert found.model.activation == "swish"
    assert found.model.vocab_size == 7
    assert found.model.dropout == 0.2
    assert (found.decoding.beam_size, found.decoding.length_penalty) == (6, 0.9)
    assert found.init_from == str(base.path)


def test_a_chosen_default_is_a_choice(base):
    # 4 and "post" are the defaults, and 6 and 3 layers the model's.
    nested = values(base)
    chosen = {"decoding.beam_size": 4, "model.num_layers": 6}
    with pytest.raises(ConfigError, match=r"model\.num_layers=6 differs from 3"):
        adopt_model(nested, saved=None, chosen=chosen)
    del chosen["model.num_layers"]
    found = parse(adopt_model(nested, saved=None, chosen=chosen))
    assert found.decoding.beam_size == 4
    assert adopt_model(nested, saved=found, chosen=chosen) == adopt_model(
        nested, saved=None, chosen=chosen
    )


def test_another_network_is_refused_key_by_key(base):
    changed = values(base, model__num_layers=2, model__d_model=64, vocabulary__size=9)
    with pytest.raises(ConfigError) as error:
        adopt_model(changed, saved=None)
    assert len(error.value.problems) == 3
    assert error.value.problems[1].startswith("model.num_layers=2 differs from 3")


def test_a_run_is_resumed_without_the_first_model(base):
    saved = parse(adopt_model(values(base), saved=None))
    gone = values(base)
    gone["init_from"] = "nowhere"
    assert adopt_model(gone, saved=saved)["model"]["num_layers"] == 3
    with pytest.raises(InputMissingError, match=r"^init_from=nowhere is not a run"):
        adopt_model(gone, saved=None)


def test_the_vocabulary_is_that_of_the_model(base, tmp_path):
    config = parse(adopt_model(values(base), saved=None))
    assert read_vocabularies(config).shared
    for pieces, message in (
        (["a", "x", "c"], r"id 5 is 'x', not 'b'"),
        (["a", "b", "c", "d"], r"it has 8 subwords, not 7"),
    ):
        model = table_file("byte_pairs", [*SPECIAL_PIECES, *pieces], merges=None)
        (tmp_path / "other.model").write_bytes(model)
        changed = values(base, vocabulary__file=str(tmp_path / "other.model"))
        config = parse(adopt_model(changed, saved=None))
        with pytest.raises(DataError, match=message):
            read_vocabularies(config)
