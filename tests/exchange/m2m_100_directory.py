"""Writes directories of M2M-100 and NLLB-200 from a toy SentencePiece model."""

import functools
import io
import json
import random

import sentencepiece

from tests.exchange.hf_directory import CONFIG, WORDS, draw, pieces

CODES = {
    "M2M-100": ("en", "de", "fr", "gu"),
    "NLLB-200": ("eng_Latn", "deu_Latn", "fra_Latn", "guj_Gujr"),
}
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


@functools.cache
def spm():
    """Returns a SentencePiece model with the special ids of fairseq's."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*WORDS, "straße école 日本語 ___ </s> ...,,, 12 AaBb"]),
        model_writer=written,
        model_type="bpe",
        vocab_size=60,
        minloglevel=2,
    )
    return written.getvalue()


def write_tokenizer(directory, kind, *, legacy=False):
    """Writes the files of a tokenizer; returns the size of its vocabulary."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "sentencepiece.bpe.model").write_bytes(spm())
    own, codes = pieces(spm())[3:], CODES[kind]
    settings = {"tokenizer_class": "M2M100Tokenizer", "language_codes": "m2m100"}
    if kind == "M2M-100":
        random.Random(0).shuffle(own)
        table = {piece: number for number, piece in enumerate([*SPECIAL, *own])}
        (directory / "vocab.json").write_text(json.dumps(table))
        size = len(table) + 108
    else:
        first = len(own) + 4
        added = dict(enumerate([*codes, "<mask>"], first)) | dict(enumerate(SPECIAL))
        settings = {
            "tokenizer_class": "NllbTokenizer",
            "added_tokens_decoder": {
                str(number): {
                    "content": token,
                    **dict.fromkeys(("lstrip", "normalized", "rstrip"), False),
                    **{"single_word": False, "special": True},
                }
                for number, token in sorted(added.items())
            },
            "additional_special_tokens": codes,
            "legacy_behaviour": legacy,
        }
        size = first + len(codes) + 3
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return size


def write_directory(directory, kind, **changes):
    """Writes a complete directory; returns its configuration and tensors."""
    from safetensors.numpy import save_file

    config = {
        **{key: CONFIG[key] for key in CONFIG if "layer" in key or "dim" in key},
        **{"model_type": "m2m_100", "vocab_size": write_tokenizer(directory, kind)},
        **{"d_model": 12, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
        **{"activation_function": "relu", "scale_embedding": True},
        **{"tie_word_embeddings": True, "share_encoder_decoder_embeddings": True},
        **{"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2},
        **{"decoder_start_token_id": 2, "max_position_embeddings": 40},
        **{"num_beams": 5, "max_length": 200, "early_stopping": True, **changes},
    }
    tensors = draw(config)
    (directory / "config.json").write_text(json.dumps(config))
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return config, tensors


def odd_lines(count=1_000):
    """Draws lines of odd characters, spaces, and what looks like a special piece."""
    rng = random.Random(0)
    characters = list(map(chr, range(1, 0x3000)))
    words = "low newest straße école 日本語 😀 👩‍👩‍👧 ﬁ ＡＢ e\u0301"
    controls = "\u00a0 \u200b \ufeff \u2028 \x00 \x01 \x1f \x7f \x85"
    parts = [
        *words.split(" "),
        *controls.split(" "),
        *("\t", "  ", "\u3000", "▁", "▁▁", "__de__", "deu_Latn", ">>de<<", "<s>"),
        *("</s>", "<pad>", "<unk>", "<mask>", "⁇", "\u202e", "\ud7ff", "1,234.5", "İ"),
    ]
    found = ["", " ", "  ", "▁", "__de__ low", " low ", "\x00", *CODES["NLLB-200"]]
    while len(found) < count:
        drawn = [
            rng.choice(parts if rng.random() < 0.7 else characters)
            for _ in range(rng.randint(1, 8))
        ]
        found.append(rng.choice(["", " ", " "]).join(drawn))
    return found
