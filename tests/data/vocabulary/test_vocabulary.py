import io
import json
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import sentencepiece

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK

WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def train(size: int, lines: list[str] = WORDS, *, seed: int = 0, **keys) -> Vocabulary:
    config = VocabularyConfig(size=size, **keys)
    return Vocabulary.train(lines, config=config, seed=seed)


def test_the_first_pieces_are_those_of_sennrich_et_al():
    assert train(19).pieces(range(8)) == [
        *("<pad>", "<s>", "</s>", "<unk>"),
        *("es", "est", "lo", "low"),
    ]


def test_an_unseen_word_is_cut_into_pieces_that_were_seen():
    vocabulary = train(19)
    assert "lowest" not in WORDS
    (ids,) = vocabulary.encode(["lowest"])
    assert UNK not in ids
    assert vocabulary.decode([ids]) == ["lowest"]
    pieces = vocabulary.pieces(ids)
    assert len(pieces) > 1
    # Both halves were learnt from other words: low, lower, and newest, widest.
    assert "".join(pieces) == "\u2581lowest"
    assert any("low" in piece for piece in pieces)
    assert any("es" in piece for piece in pieces)


def test_what_is_encoded_decodes_to_itself(vocabulary):
    lines = ["the old cat sees a house", "der Kater frisst", "", "likes"]
    ids = vocabulary.encode(lines)
    assert vocabulary.decode(ids) == lines
    assert ids[2] == []
    assert min(map(min, filter(None, ids))) > UNK
    assert vocabulary.encode([]) == []
    assert vocabulary.decode([]) == []


def test_control_ids_vanish_wherever_they_stand(vocabulary):
    (ids,) = vocabulary.encode(["the cat sees"])
    spread = np.array([BOS, *ids[:2], PAD, *ids[2:], EOS, PAD, PAD], np.int32)
    assert vocabulary.decode([spread]) == ["the cat sees"]


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


def test_lines_are_learnt_from_in_their_order_and_let_go_of(monkeypatch):
    class Text(str):  # a plain str cannot be watched
        pass

    texts = [Text(word) for word in WORDS]
    watched = [weakref.ref(text) for text in texts]
    given, alive = [], []
    trainer = sentencepiece.SentencePieceTrainer.train

    def train_watched(*, sentence_iterator, **keys):
        def passed_on():
            for text in sentence_iterator:
                given.append(str(text))
                yield given[-1]
                del text
                alive.append(sum(ref() is not None for ref in watched))

        trainer(sentence_iterator=passed_on(), **keys)

    expected = train(19).fingerprint
    monkeypatch.setattr(
        sentencepiece.SentencePieceTrainer, "train", staticmethod(train_watched)
    )
    lines = iter(texts)
    del texts
    assert train(19, lines).fingerprint == expected
    assert given == WORDS
    assert alive == list(range(len(WORDS) - 1, -1, -1))


def test_a_sample_is_a_bound_and_blank_or_endless_lines_teach_nothing():
    fingerprint = train(19).fingerprint
    noisy = [*WORDS[:8], "", "  ", "xyz" * 333_333, *WORDS[8:]]
    assert train(19, noisy, sample_sentences=16).fingerprint == fingerprint
    with pytest.raises(DataError, match="must be at most"):
        train(19, noisy, sample_sentences=1)  # one word has not so many pieces


def test_a_text_too_small_for_the_size_is_reported_with_both_numbers():
    with pytest.raises(
        DataError,
        match=r"vocabulary\.size=400 must be at most (\d+) .*config\.vocabulary\.size",
    ) as caught:
        train(400)
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert train(largest).size == largest


def test_a_saved_vocabulary_is_the_same_when_loaded(tmp_path, vocabulary):
    vocabulary.save(tmp_path / "run")
    loaded = Vocabulary.load(tmp_path / "run" / "vocab.model")
    assert loaded.model == vocabulary.model
    told = json.loads((tmp_path / "run" / "vocab.json").read_text())
    assert told["ids"] == {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
    assert told["size"] == len(told["pieces"]) == vocabulary.size == 97
    assert told["fingerprint"] == vocabulary.fingerprint
    assert sorted(os.listdir(tmp_path / "run")) == ["vocab.json", "vocab.model"]


@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 99])
def test_garbage_is_not_a_vocabulary(tmp_path, content):
    (tmp_path / "vocab.model").write_bytes(content)
    with pytest.raises(DataError, match=r"vocab\.model: is not a SentencePiece model"):
        Vocabulary.load(tmp_path / "vocab.model")


def test_other_special_ids_are_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS), model_writer=model, vocab_size=16, minloglevel=2
    )
    with pytest.raises(
        DataError, match=r"has pad -1, bos 1, eos 2, unk 0(.|\n)*_size=16 --pad_id=0"
    ):
        Vocabulary(model.getvalue())


def test_sentencepiece_is_silent():
    program = (
        "from t2t_jax.data.vocabulary.vocabulary import Vocabulary\n"
        "from t2t_jax.data.config import VocabularyConfig\n"
        "for size in (400, 19):\n"
        "    try: Vocabulary.train(['low', 'newest widest lower'] * 9, seed=0,\n"
        "                          config=VocabularyConfig(size=size))\n"
        "    except ValueError: pass\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True
    )
    assert told.stdout + told.stderr == b""


@pytest.mark.parametrize("line", ["\u200b", "\u00a0", "\ufeff\u200b"])
def test_text_of_invisible_characters_is_no_text(line):
    with pytest.raises(DataError, match="every line of the text is blank"):
        Vocabulary.train([line] * 9, config=VocabularyConfig(size=29), seed=0)
