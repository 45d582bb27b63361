import json
import re
import shutil
import subprocess
import sys

import pytest

from t2t_jax.data.corpora.corpus import direction_of
from t2t_jax.data.corpora.open import count_pairs, open_corpus
from t2t_jax.data.corpora.tfds import open_set
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from tests.data.tfds_sets import write_wmt14

GERMAN = [(f"Satz {number}", f"sentence {number}") for number in range(101)]
STRANGE = [("ä\nö\r\nü", "NUL\0byte"), ("a\rb\u2028c", ""), ("\n", "x")]
NAME = "tfds:wmt14_translate/de-en"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A directory of TFDS with 101 pairs to train on and 3 strange ones."""
    home = tmp_path_factory.mktemp("tfds")
    write_wmt14(home, {"train": GERMAN, "validation": STRANGE})
    return home


@pytest.fixture(autouse=True)
def home(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    return prepared


@pytest.fixture
def copied(prepared, tmp_path, monkeypatch):
    """A copy to do harm to: the directory of the set's version."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "copy"))
    shutil.copytree(prepared, tmp_path / "copy")
    return tmp_path / "copy" / "wmt14_translate" / "de-en" / "1.0.0"


def test_a_split_is_read_in_either_direction_and_again():
    corpus = open_corpus(f"{NAME}:train:de-en")
    assert sorted(corpus) == sorted(GERMAN)
    assert list(corpus) == list(corpus) == list(open_corpus(f"{NAME}:train"))
    assert corpus.num_pairs() == 101
    turned = open_corpus(f"{NAME}:train:en-de")
    assert [(german, english) for english, german in turned] == list(corpus)
    assert turned.fingerprint() != corpus.fingerprint()
    named = open_corpus(f"{NAME}:train:en-de#en-de")
    assert (direction_of(named), [*named]) == (("en", "de"), [*turned])


def test_slices_and_sums_are_those_of_tfds():
    whole = list(open_corpus(f"{NAME}:train"))
    first = open_corpus(f"{NAME}:train[:10%]")
    assert list(first) == whole[:10]
    assert first.num_pairs() == 10
    assert list(open_corpus(f"{NAME}:train[-7:]")) == whole[-7:]
    ends = open_corpus(f"{NAME}:train[:2]+train[99:]")
    assert list(ends) == [*whole[:2], *whole[99:]]


def test_the_fingerprint_is_of_what_is_read_and_not_of_its_name(tmp_path, monkeypatch):
    def prints(*parts):
        return {open_corpus(f"{NAME}:{part}").fingerprint() for part in parts}

    before = prints("train", "train[:10]", "train[10:]", "validation")
    assert len(before) == 4
    assert len(prints("train[:10]", "train[:10%]", "train[0:10]")) == 1
    # Other text of the same size.
    other = [(german.replace("Satz", "Wort"), english) for german, english in GERMAN]
    write_wmt14(tmp_path, {"train": other})
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert not prints("train") & before


def test_a_pair_is_two_lines_whatever_is_in_it():
    pairs = set(open_corpus(f"{NAME}:validation:de-en"))
    assert pairs == {("ä ö ü", "NUL byte"), ("a\rb\u2028c", ""), (" ", "x")}


def test_the_newest_version_is_read_unless_one_is_named(copied):
    for version in ("1.0.1", "1.0.10", "1.0.9", "incomplete.1.1.0"):
        shutil.copytree(copied, copied.with_name(version))
    assert open_corpus(f"{NAME}:train").directory.name == "1.0.10"
    assert open_corpus(f"{NAME}/1.0.9:train").directory.name == "1.0.9"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (NAME, "must be tfds:NAME/CONFIG:SPLIT:SOURCE"),
        (f"{NAME}:train:en-de[:7]", "a slice belongs to the split"),
        (f"{NAME}:test", r"train \(101 examples\), validation \(3 examples\)"),
        (f"{NAME}:train[101:]", r"the set has train \(101 examples\), valid"),
        (f"{NAME}:train:en-fr", "must end in one of :de-en, :en-de"),
    ],
)
def test_a_wrong_spec_is_told_what_there_is(spec, message):
    with pytest.raises(ConfigError, match=message):
        open_corpus(spec)


def _cut_short(records: bytes) -> bytes:
    return records[: len(records) // 2]


def _flipped(records: bytes) -> bytes:
    place = records.index(b"sentence")
    return records[:place] + bytes([records[place] ^ 1]) + records[place + 1 :]


@pytest.mark.parametrize("harm", [_cut_short, _flipped])
def test_a_damaged_file_of_records_is_reported_by_all_readers(copied, harm):
    (path,) = copied.glob("*-train*")
    path.write_bytes(harm(path.read_bytes()))
    corpus = open_corpus(f"{NAME}:train")
    message = rf"^{re.escape(str(copied))}: a record file is damaged \(.+\)\. Remove"
    for read in (list, type(corpus).fingerprint):
        with pytest.raises(DataError, match=message):
            read(corpus)


def test_a_missing_set_names_the_command_that_prepares_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    command = "tfds build wmt14_translate/de-en --file_format=array_record --data_dir="
    with pytest.raises(InputMissingError, match=f"{command}{tmp_path / 'none'}"):
        open_corpus(f"{NAME}:train")
    found = count_pairs(f"{NAME}:train", key="data.train")
    assert found["pairs"] is None
    assert command in found["note"]
    assert not (tmp_path / "none").exists()


def test_neither_tensorflow_nor_jax_is_imported_and_tfds_only_where_it_is_named():
    code = (
        "import sys; from t2t_jax.data.corpora.open import open_corpus\n"
        "list(open_corpus('phrasebook:dev:3'))\n"
        "assert 'tensorflow_datasets' not in sys.modules\n"
        f"assert len(list(open_corpus('{NAME}:train'))) == 101\n"
        "assert not {'tensorflow', 'jax'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
    info = {"name": "a_set", "version": "1.0.0", "fileFormat": "array_record"}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    told = {
        "pythonClassName": f"{FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": {"de": feature}},
    }
    told = feature if feature is BOMB else told
    (tmp_path / "features.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=r"names bomb\.Feature, whose code would be"):
        open_set(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 900 + "{}", "Expecting ',' delimiter: line 1 column 4503"),
        ("\udcff", "'utf-8' codec can't decode byte 0xff in position 0"),
    ],
    ids=["cut", "deep", "open", "bytes"],
)
def test_a_description_that_is_none_is_damage(tmp_path, content, why):
    path = tmp_path / "features.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    why = re.escape(f"not a valid TFDS set (features.json: {why}")
    with pytest.raises(DataError, match=why):
        open_set(tmp_path)
