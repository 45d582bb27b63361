"""Draws the tensors of a model as tensor2tensor names them."""

import json

import numpy as np

from tests.exchange.tensorflow_save import save

SUBWORDS = ["<pad>", "<EOS>", *"_aestlowr,.", "lo", "low_", "est_", *"\\u;0123456789"]
D_MODEL, D_FF, HEADS = 12, 10, 3


def hparams_of(**changes):
    return {
        **{"hidden_size": D_MODEL, "filter_size": D_FF, "num_heads": HEADS},
        **{"num_hidden_layers": 2, "num_encoder_layers": 0, "num_decoder_layers": 3},
        **{"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},
        **{"norm_epsilon": 1e-6, "norm_type": "layer", "relu_dropout": 0.1},
        "multiply_embedding_mode": "sqrt_depth",
        "shared_embedding_and_softmax_weights": True,
        **{"symbol_modality_num_shards": 16, "attention_key_channels": 0},
        **changes,
    }


class State:
    """Tensors by name; `space` is the target space that was trained, None for none."""

    def __init__(self, hparams, *, sizes=None, space=8, seed=0, slots=True):
        self.rng, self.tensors = np.random.default_rng(seed), {}
        self.hparams, self.slots = hparams, slots
        self.pre = hparams["layer_preprocess_sequence"] == "n"
        for stack, names in {
            "encoder": ["self_attention"],
            "decoder": ["self_attention", "encdec_attention"],
        }.items():
            layers = hparams[f"num_{stack}_layers"] or hparams["num_hidden_layers"]
            for number in range(layers):
                self.draw_layer(f"body/{stack}/layer_{number}", names)
            if self.pre:
                self.draw_norm(f"body/{stack}")
        self.draw_matrices(sizes or (len(SUBWORDS),))
        if space is not None:
            self.draw("body/target_space_embedding/kernel", 32, D_MODEL)
            slot = np.zeros((32, D_MODEL), np.float32)
            slot[space] = 0.5
            if slots:
                name = "training/transformer/body/target_space_embedding/kernel/Adam"
                self.tensors[name] = slot
        self.tensors["global_step"] = np.asarray(7)
        self.tensors["losses_avg/problem_0/total_loss"] = np.float32(3).reshape(())

    def draw(self, name, *shape, center=0.0, scale=0.3):
        drawn = self.rng.normal(center, scale, shape).astype(np.float32)
        self.tensors[f"transformer/{name}"] = drawn
        if self.slots and "target_space" not in name:
            self.tensors[f"training/transformer/{name}/Adam"] = np.square(drawn)

    def draw_norm(self, scope):
        name = "layer_prepostprocess" if self.pre else "layer_postprocess"
        prefix = f"{scope}/{name}/layer_norm/layer_norm"
        self.draw(f"{prefix}_scale", D_MODEL, center=1.0, scale=0.1)
        self.draw(f"{prefix}_bias", D_MODEL)

    def draw_layer(self, layer, names):
        keys = self.hparams["attention_key_channels"] or D_MODEL
        for name in names:
            attention = f"{layer}/{name}/multihead_attention"
            for letter, width in (("q", keys), ("k", keys), ("v", D_MODEL)):
                self.draw(f"{attention}/{letter}/kernel", D_MODEL, width)
            self.draw(f"{attention}/output_transform/kernel", D_MODEL, D_MODEL)
            self.draw_norm(f"{layer}/{name}")
        for number, sizes in ((1, (D_MODEL, D_FF)), (2, (D_FF, D_MODEL))):
            self.draw(f"{layer}/ffn/conv{number}/kernel", *sizes)
            self.draw(f"{layer}/ffn/conv{number}/bias", sizes[1])
        self.draw_norm(f"{layer}/ffn")

    def draw_matrices(self, sizes):
        shared = self.hparams["shared_embedding_and_softmax_weights"]
        kinds = [(sizes[0], "shared"), (sizes[-1], "shared")]
        if not shared:
            kinds = [(sizes[0], "input_emb")]
            kinds += [(sizes[-1], "target_emb"), (sizes[-1], "softmax")]
        shards = self.hparams["symbol_modality_num_shards"]
        for size, kind in dict.fromkeys(kinds):
            for number in range(shards):
                rows = size // shards + (number < size % shards)
                modality = f"symbol_modality_{size}_{D_MODEL}"
                self.draw(f"{modality}/{kind}/weights_{number}", rows, D_MODEL)


def write(folder, tensors, hparams, *, subwords=SUBWORDS, name="model.ckpt-7"):
    """Writes a checkpoint, its hyper-parameters and its vocabulary."""
    save(folder / name, tensors)
    (folder / "hparams.json").write_text(json.dumps(hparams))
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "/train/{name}"\n')
    write_subwords(folder / "vocab.translate_ende.30.subwords", subwords)
    return folder / name


def write_subwords(path, subwords):
    path.write_text("".join(f"'{subword}'\n" for subword in subwords))
