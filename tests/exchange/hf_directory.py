"""Writes directories of MarianMTModels by hand: JSON, SentencePiece, tensors."""

import functools
import json

import numpy as np
import sentencepiece

from tests.exchange.marian_save import sentencepiece_model

WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
CONFIG = {
    **{"model_type": "marian", "architectures": ["MarianMTModel"]},
    **{"d_model": 12, "encoder_ffn_dim": 19, "decoder_ffn_dim": 19},
    **{"encoder_layers": 2, "encoder_attention_heads": 3},
    **{"decoder_layers": 1, "decoder_attention_heads": 3},
    **{"activation_function": "swish", "scale_embedding": True},
    **{"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
    **{"max_position_embeddings": 40, "is_encoder_decoder": True},
    **{"bos_token_id": 0, "eos_token_id": 0, "forced_eos_token_id": 0},
    **{"normalize_before": False, "static_position_embeddings": True},
    **{"num_beams": 6, "max_length": 512},
}


@functools.cache
def spm(kind="unigram", size=16):
    return sentencepiece_model(size, kind=kind, sentences=WORDS)


def pieces(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(len(processor))]


def vocabulary():
    """Pieces and ids of `vocab.json`: not in the order of the SentencePiece model."""
    both = {*pieces(spm()), *pieces(spm("bpe", 19))}
    rest = sorted(both - {"</s>", "<unk>"})
    every = ["</s>", "<unk>", ">>de<<", *rest, "<pad>"]
    return {piece: number for number, piece in enumerate(every)}


def draw(config, *, seed=0):
    """Draws all tensors of a configuration, by HF's names."""
    rng = np.random.default_rng(seed)
    tensors = {}

    def add(name, *shape, center=0.0):
        drawn = rng.normal(center, 0.3, size=shape)
        tensors[name] = drawn.astype(np.float32)

    d_model, d_ff = config["d_model"], config["encoder_ffn_dim"]
    for stack, attentions in (
        ("encoder", ["self_attn"]),
        ("decoder", ["self_attn", "encoder_attn"]),
    ):
        for number in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            shapes = {
                f"{name}.{letter}_proj": (d_model, d_model)
                for name in attentions
                for letter in ("q", "k", "v", "out")
            }
            shapes |= {"fc1": (d_ff, d_model), "fc2": (d_model, d_ff)}
            for name, shape in shapes.items():
                add(f"{layer}.{name}.weight", *shape)
                add(f"{layer}.{name}.bias", shape[0])
            for name in (*attentions, "final"):
                add(f"{layer}.{name}_layer_norm.weight", d_model, center=1.0)
                add(f"{layer}.{name}_layer_norm.bias", d_model)
    size = config["vocab_size"]
    target_size = config.get("decoder_vocab_size", size)
    if config["share_encoder_decoder_embeddings"]:
        add("model.shared.weight", size, d_model)
        tensors["model.shared.weight"][config["pad_token_id"]] = 0
    else:
        add("model.encoder.embed_tokens.weight", size, d_model)
        add("model.decoder.embed_tokens.weight", target_size, d_model)
    if not config["tie_word_embeddings"]:
        add("lm_head.weight", target_size, d_model)
    add("final_logits_bias", 1, target_size)
    tensors["final_logits_bias"][0, config["pad_token_id"]] = 0
    return tensors


def configuration(**changes):
    size = len(vocabulary())
    ids = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    return {**CONFIG, "vocab_size": size, **ids, **changes}


def write_directory(directory, config=None, tensors=None):
    """Writes a complete directory, with `model.safetensors`."""
    from safetensors.numpy import save_file

    config = configuration() if config is None else config
    tensors = draw(config) if tensors is None else tensors
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "source.spm").write_bytes(spm())
    (directory / "target.spm").write_bytes(spm("bpe", 19))
    (directory / "vocab.json").write_text(json.dumps(vocabulary()))
    tokenizer = {"source_lang": "en", "target_lang": "de"}
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def change_json(path, **changes):
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}))
