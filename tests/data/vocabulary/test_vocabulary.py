import io
import json
import os

import pytest
import sentencepiece

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK

WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def train(size: int, lines: list[str] = WORDS, *, seed: int = 0, **keys) -> Vocabulary:
    config = VocabularyConfig(size=size, **keys)
    return Vocabulary.train(lines, config.size, seed=seed, config=config)


def test_the_first_pieces_are_those_of_sennrich_et_al():
    assert train(19).pieces(range(8)) == [
        *("<pad>", "<s>", "</s>", "<unk>"),
        *("es", "est", "lo", "low"),
    ]


def test_what_is_encoded_decodes_to_itself(vocabulary):
    lines = ["the old cat sees a house", "der Kater frisst", "", "likes"]
    ids = vocabulary.encode(lines)
    assert vocabulary.decode(ids) == lines
    assert ids[2] == []
    assert min(map(min, filter(None, ids))) > UNK
    assert vocabulary.encode([]) == []
    assert vocabulary.decode([]) == []


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "a </s> b", "<unk>"])
def test_text_never_becomes_a_control_id(text):
    vocabulary = train(30, [*WORDS, "< / > s p a d u n k b"])
    (ids,) = vocabulary.encode([text])
    assert not {PAD, BOS, EOS, UNK} & set(ids)
    assert vocabulary.decode([ids]) == [text]


def test_a_translation_is_one_line_whatever_its_pieces():
    vocabulary = train(277, byte_fallback=True)
    pieces = vocabulary.pieces(range(vocabulary.size))

    def spell(text: str) -> list[int]:
        return [pieces.index(f"<0x{byte:02X}>") for byte in text.encode()]

    for end in "\n\r\v\f\x1c\x85\u2028\u2029":
        (line,) = vocabulary.decode([[*spell("a"), *spell(end), *spell("b")]])
        assert line == "a b"


def test_training_is_a_function_of_text_and_seed():
    lines = [f"word{number} cat{number % 7}" for number in range(200)]
    sampled = {"sample_sentences": 50}
    fingerprint = train(40, lines, **sampled).fingerprint
    assert train(40, lines, **sampled).fingerprint == fingerprint
    assert train(40, lines, seed=1, **sampled).fingerprint != fingerprint


def test_a_sample_is_a_bound_and_blank_or_endless_lines_teach_nothing():
    fingerprint = train(19).fingerprint
    noisy = [*WORDS[:8], "", "  ", "xyz" * 333_333, *WORDS[8:]]
    assert train(19, noisy, sample_sentences=16).fingerprint == fingerprint
    with pytest.raises(DataError, match="must be at most"):
        train(19, noisy, sample_sentences=1)  # one word has not so many pieces


def test_a_saved_vocabulary_is_the_same_when_loaded(tmp_path, vocabulary):
    vocabulary.save(tmp_path / "run")
    assert Vocabulary.load(tmp_path / "run" / "vocab.model").model == vocabulary.model
    told = json.loads((tmp_path / "run" / "vocab.json").read_text())
    assert told["ids"] == {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
    assert told["size"] == len(told["pieces"]) == vocabulary.size == 97
    assert told["fingerprint"] == vocabulary.fingerprint
    assert sorted(os.listdir(tmp_path / "run")) == ["vocab.json", "vocab.model"]


def test_other_special_ids_are_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS), model_writer=model, vocab_size=16, minloglevel=2
    )
    with pytest.raises(
        DataError, match=r"has pad -1, bos 1, eos 2, unk 0(.|\n)*_size=16 --pad_id=0"
    ):
        Vocabulary(model.getvalue())


@pytest.mark.parametrize("line", ["\u200b", "\u00a0", "\ufeff\u200b"])
def test_text_of_invisible_characters_is_no_text(line):
    with pytest.raises(DataError, match="every line is blank"):
        Vocabulary.train([line] * 9, 29)
