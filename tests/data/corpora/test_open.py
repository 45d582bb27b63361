import re

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora import open as open_module
from t2t_jax.data.corpora.corpus import parts_of
from t2t_jax.data.corpora.open import count_pairs, files_of, open_corpus, train_and_dev
from t2t_jax.errors import ConfigError


def _numbered(tmp_path, count):
    (tmp_path / "a").write_text("".join(f"s{n}\n" for n in range(count)))
    (tmp_path / "b").write_text("".join(f"t{n}\n" for n in range(count)))
    return f"text:{tmp_path}/a,{tmp_path}/b"


# As they were when corpora came without weights; a run that began then goes on.
@pytest.mark.parametrize(
    ("part", "fingerprint"),
    [
        ("", "9813ade1e3c73266a2f464d6e00e92110d3764d4f2ec5c610a268bde64ebbb4a"),
        ("[1:]", "75f0649b4cbb5de1405ac1a36d08d81a0e6efba94756c281ad61bfeaa231ad20"),
        ("[:2]", "aa255d659bbaf28d4b2e9987ec36a9d1dae79e88802a915e55ca2b2472abccca"),
    ],
)
def test_fingerprints_stay_what_they_were(tmp_path, part, fingerprint):
    (tmp_path / "a").write_bytes(b"one\ntwo\nthree\n")
    (tmp_path / "b").write_bytes(b"eins\nzwei\ndrei\n")
    corpus = open_corpus(f"text:{tmp_path}/a,{tmp_path}/b{part}")
    assert corpus.fingerprint() == fingerprint


def test_slices_share_a_corpus_out_without_loss(tmp_path):
    whole = _numbered(tmp_path, 7)
    dev, train = open_corpus(f"{whole}[:3]"), open_corpus(f"{whole}[3:]")
    assert [source for source, _ in dev] == ["s0", "s1", "s2"]
    assert [*dev, *train] == list(open_corpus(whole))
    assert list(open_corpus(f"{whole}[2:4]")) == [("s2", "t2"), ("s3", "t3")]
    assert len({c.fingerprint() for c in (dev, train, open_corpus(whole))}) == 3


def test_hundredths_are_of_the_pairs_that_there_are(tmp_path):
    whole = _numbered(tmp_path, 17)
    dev, train = open_corpus(f"{whole}[:30%]"), open_corpus(f"{whole}[30%:]")
    assert dev.num_pairs() == 5  # of 5.1
    assert [*dev, *train] == list(open_corpus(whole))
    assert dev.fingerprint() == open_corpus(f"{whole}[:5]").fingerprint()
    assert open_corpus("phrasebook:test:700[1%:12]").num_pairs() == 5


def test_several_corpora_have_weights_of_their_own(tmp_path):
    (tmp_path / "c.tsv").write_text("one\teins\n")
    names = [_numbered(tmp_path, 3), f"tsv:{tmp_path}/c.tsv", "phrasebook:dev:7[:2]"]
    corpus = open_corpus(f"{names[0]}++2*{names[1]}++0.5*{names[2]}")
    parts = [(part.corpus.spec, part.weight) for part in parts_of(corpus)]
    assert parts == list(zip(names, (1.0, 2.0, 0.5), strict=True))
    assert list(corpus) == [pair for name in names for pair in open_corpus(name)]
    assert corpus.num_pairs() == 6


@pytest.mark.parametrize("weight", ["0", "1000.5", "-1", "1e+3", ""])
def test_a_weight_that_is_none_is_reported_what_a_weight_is(weight):
    name = f"{weight}*phrasebook:train:5"
    message = (
        rf"^data\.dev='{re.escape(name)}' must be prefixed by a weight from 0\.001 to "
        r"1000 and \*, such as 0\.5\*phrasebook:train:5\. Change config\.data\.dev\.$"
    )
    for spec in (name, f"phrasebook:dev:3++{name}", f"{name}++phrasebook:dev:3"):
        with pytest.raises(ConfigError, match=message):
            open_corpus(spec, key="data.dev")


def test_corpora_are_joined_where_a_name_begins_and_nowhere_else(tmp_path):
    folder = tmp_path / "c++"
    folder.mkdir()
    corpus = open_corpus(f"{_numbered(folder, 1)}++phrasebook:dev:3")
    assert [part.corpus.num_pairs() for part in parts_of(corpus)] == [1, 3]


@pytest.mark.parametrize(
    ("train", "keys", "expected"),
    [
        ("text:a,b", {}, ("text:a,b[5:]", "text:a,b[:5]")),
        ("2*text:a,b++tsv:c", {}, ("2*text:a,b[5:]++tsv:c", "text:a,b[:5]")),
        ("text:a+b,c+d", {}, ("text:a+b,c+d[5:]", "text:a+b,c+d[:5]")),
        ("text:a,b", {"dev": "text:c,d"}, ("text:a,b", "text:c,d")),
        ("text:a,b", {"dev_pairs": 0}, ("text:a,b", "")),
    ],
)
def test_development_pairs_are_cut_from_the_first_corpus(train, keys, expected):
    keys = {"dev_pairs": 5, **keys}
    assert train_and_dev(DataConfig(train=train, **keys)) == expected


def test_no_corpus_is_not_an_error_and_an_unknown_kind_is_one():
    assert "data.train is empty" in count_pairs("", key="data.train")["note"]
    with pytest.raises(ConfigError, match="must begin with one of"):
        count_pairs("txt:a,b", key="data.train")


def test_a_large_file_is_not_counted_and_named(tmp_path, monkeypatch):
    spec = f"phrasebook:dev:5++{_numbered(tmp_path, 3)}[:1]"
    assert count_pairs(spec, key="data.train")["pairs"] == 6
    monkeypatch.setattr(open_module, "_COUNTED_BYTES", 5)
    note = f"{tmp_path}/a has over 5 bytes and is not counted."
    found = {"spec": spec, "pairs": None, "note": note}
    assert count_pairs(spec, key="data.train") == found
    both = open_corpus(f"tsv:{tmp_path}/a+{tmp_path}/b#en-de[1:]")
    assert [*files_of(both)] == [tmp_path / "a", tmp_path / "b"]


def test_a_slice_without_a_colon_is_no_part_of_a_file_name(tmp_path):
    whole = _numbered(tmp_path, 3)
    for slice_ in ("[2]", "[:2", "[]"):
        with pytest.raises(ConfigError, match="must end in a slice with a colon"):
            open_corpus(f"{whole}{slice_}")
    (tmp_path / "b").rename(tmp_path / "b[2]")
    assert open_corpus(f"{whole}[2]").num_pairs() == 3


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("text:a,b+tsv:c", "text:a,b++tsv:c"),
        ("phrasebook:dev:3+2*tsv:c", "phrasebook:dev:3++2*tsv:c"),
        ("tsv:a[:3]+text:b,c+trees:d", "tsv:a[:3]++text:b,c++trees:d"),
    ],
)
def test_a_single_plus_between_corpora_is_recognized(spec, meant):
    with pytest.raises(ConfigError, match=re.escape(f"Set config.data.train={meant}.")):
        open_corpus(spec)
