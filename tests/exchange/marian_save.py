"""Writes small models of Marian: random tensors by Marian's names."""

import io

import numpy as np
import sentencepiece

OPTIONS = {
    "type": "transformer",
    "dim-emb": 8,
    "transformer-heads": 2,
    "transformer-dim-ffn": 12,
    "enc-depth": 2,
    "dec-depth": 1,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "tied-embeddings-all": True,
    "tied-embeddings": False,
    "output-omit-bias": False,
}
SENTENCES = ["low lower newest widest", "the new lid is low", "wide is new"]


def sentencepiece_model(size=24, *, kind="bpe", sentences=SENTENCES):
    """Returns a model in Marian's order of ids: </s> 0, <unk> 1."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        pad_id=-1,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
    )
    return written.getvalue()


class _Tensors(dict):
    """Random tensors by name."""

    def __init__(self, options, rng):
        self._rng, self._d_model = rng, options["dim-emb"]
        self._d_ff = options["transformer-dim-ffn"]
        self._pre = "_pre" * ("n" in options["transformer-preprocess"])

    def add(self, name, *shape):
        self[name] = self._rng.normal(0, 0.3, shape).astype(np.float32)

    def add_norm(self, name, suffix=""):
        self.add(f"{name}_bias{suffix}", 1, self._d_model)
        self[f"{name}_scale{suffix}"] = np.exp(self[f"{name}_bias{suffix}"])

    def add_stack(self, stack, depth, attentions):
        d_model, d_ff, pre = self._d_model, self._d_ff, self._pre
        for prefix in (f"{stack}_l{layer}" for layer in range(1, depth + 1)):
            for attention in attentions:
                for letter in "qkvo":
                    self.add(f"{prefix}_{attention}_W{letter}", d_model, d_model)
                    self.add(f"{prefix}_{attention}_b{letter}", 1, d_model)
                self.add_norm(f"{prefix}_{attention}_Wo_ln", pre)
            for number, shape in ((1, (d_model, d_ff)), (2, (d_ff, d_model))):
                self.add(f"{prefix}_ffn_W{number}", *shape)
                self.add(f"{prefix}_ffn_b{number}", 1, shape[1])
            self.add_norm(f"{prefix}_ffn_ffn_ln", pre)
        if pre:
            self.add_norm(f"{stack}_top_ln")


def tensors_of(options, sizes, *, rng, positions=0):
    """Returns random tensors; `sizes` are those of source and target vocabulary."""
    tensors, d_model = _Tensors(options, rng), options["dim-emb"]
    tensors.add_stack("encoder", options["enc-depth"], ("self",))
    tensors.add_stack("decoder", options["dec-depth"], ("self", "context"))
    if options["tied-embeddings-all"]:
        tensors.add("Wemb", sizes[1], d_model)
    else:
        tensors.add("encoder_Wemb", sizes[0], d_model)
        tensors.add("decoder_Wemb", sizes[1], d_model)
        if not options["tied-embeddings"]:
            tensors.add("decoder_ff_logit_out_W", d_model, sizes[1])
    if not options["output-omit-bias"]:
        tensors.add("decoder_ff_logit_out_b", 1, sizes[1])
    if positions:
        tensors.add("Wpos", positions, d_model)
    return tensors


def save(path, options=None, *, tensors=None, nuls=3):
    """Writes `model.npz`, with the options padded by NULs as Marian pads them."""
    import yaml

    options = {**OPTIONS, **(options or {})}
    if tensors is None:
        tensors = tensors_of(options, (24, 24), rng=np.random.default_rng(0))
    written = yaml.safe_dump(options).encode() + b"\0" * nuls
    special = np.frombuffer(written, np.int8)
    np.savez(path, **tensors, **{"special:model.yml": special})
    return options, tensors
