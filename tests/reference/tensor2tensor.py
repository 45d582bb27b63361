"""tensor2tensor's Transformer, once more: plain NumPy, float64, on its own tensors.

It shares no code with the package. Sentences are lists of its ids (pad 0, EOS 1),
without padding; a source ends with EOS, and targets are shifted right by a vector of
zeros. Tensors are found by the ends of their names.
"""

import math

import numpy as np

EOS = 1


class Model:
    """A model from its tensors and hyper-parameters, as read from its files.

    `sizes` are those of the matrices of source and target, if they differ.
    """

    def __init__(self, tensors, hparams, *, space, sizes=("", "")):
        self.tensors = {
            name.partition("body/")[2] or name.rpartition("transformer/")[2]: array
            for name, array in tensors.items()
            if not name.startswith(("training/", "losses_avg/", "train_stats/"))
        }
        self.hparams, self.space, self.sizes = hparams, space, sizes
        self.width = hparams["hidden_size"]

    def tensor(self, name):
        return np.asarray(self.tensors[name], np.float64)

    def matrix(self, size, *kinds):
        """All shards of the first kind that there is, one below the other."""
        for kind in kinds:
            shards = {
                int(name.rpartition("_")[2]): array
                for name, array in self.tensors.items()
                if f"/{kind}/weights_" in name and f"_{size}" in name
            }
            if shards:
                parts = [shards[number] for number in range(len(shards))]
                return np.concatenate(parts).astype(np.float64)
        raise AssertionError(kinds)

    def norm(self, x, scope):
        for name in ("layer_prepostprocess", "layer_postprocess"):
            prefix = f"{scope}/{name}/layer_norm/layer_norm"
            if f"{prefix}_scale" in self.tensors:
                mean = x.mean(axis=-1, keepdims=True)
                variance = np.square(x - mean).mean(axis=-1, keepdims=True)
                x = (x - mean) / np.sqrt(variance + self.hparams["norm_epsilon"])
                return x * self.tensor(f"{prefix}_scale") + self.tensor(
                    f"{prefix}_bias"
                )
        raise AssertionError(scope)

    def preprocess(self, x, scope):
        return self.norm(x, scope) if self.pre else x

    def postprocess(self, x, y, scope):
        return x + y if self.pre else self.norm(x + y, scope)

    @property
    def pre(self):
        return "n" in self.hparams["layer_preprocess_sequence"].replace("none", "")

    def attention(self, x, others, scope, *, causal=False):
        scope = f"{scope}/multihead_attention"
        q, k, v = (
            inputs @ self.tensor(f"{scope}/{name}/kernel")
            for inputs, name in ((x, "q"), (others, "k"), (others, "v"))
        )
        heads = self.hparams["num_heads"]
        outputs = []
        for q1, k1, v1 in zip(
            *(np.split(all_heads, heads, axis=1) for all_heads in (q, k, v)),
            strict=True,
        ):
            scores = q1 @ k1.T * q1.shape[1] ** -0.5
            if causal:
                scores = np.where(np.tri(len(x)) > 0, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            outputs.append(weights / weights.sum(axis=1, keepdims=True) @ v1)
        joined = np.concatenate(outputs, axis=1)
        return joined @ self.tensor(f"{scope}/output_transform/kernel")

    def feed_forward(self, x, scope):
        for number in (1, 2):
            layer = f"{scope}/conv{number}"
            x = x @ self.tensor(f"{layer}/kernel") + self.tensor(f"{layer}/bias")
            if number == 1:
                x = np.maximum(x, 0)
        return x

    def add_timing(self, x):
        number = self.width // 2
        step = math.log(10000) / max(number - 1, 1)
        rates = np.exp(-step * np.arange(number))
        angles = np.arange(len(x))[:, None] * rates[None]
        return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def embed(self, tokens, *matrix):
        x = self.matrix(*matrix)[tokens]
        if self.hparams.get("multiply_embedding_mode", "sqrt_depth") == "sqrt_depth":
            x = x * math.sqrt(self.width)
        return x

    def layers(self, stack):
        return range(
            self.hparams.get(f"num_{stack}_layers") or self.hparams["num_hidden_layers"]
        )

    def encode(self, source):
        x = self.embed(source, self.sizes[0], "input_emb", "shared")
        if self.space is not None:
            x = x + self.tensor("target_space_embedding/kernel")[self.space]
        x = self.add_timing(x)
        for number in self.layers("encoder"):
            scope = f"encoder/layer_{number}/self_attention"
            y = self.preprocess(x, scope)
            x = self.postprocess(x, self.attention(y, y, scope), scope)
            scope = f"encoder/layer_{number}/ffn"
            y = self.preprocess(x, scope)
            x = self.postprocess(x, self.feed_forward(y, scope), scope)
        return self.preprocess(x, "encoder")

    def logits(self, source, targets):
        """Scores each target given those before it: [T + 1, V] for T targets."""
        memory = self.encode(source)
        x = np.zeros((len(targets) + 1, self.width))
        x[1:] = self.embed(targets, self.sizes[1], "target_emb", "shared")
        x = self.add_timing(x)
        for number in self.layers("decoder"):
            layer = f"decoder/layer_{number}"
            scope = f"{layer}/self_attention"
            y = self.preprocess(x, scope)
            y = self.attention(y, y, scope, causal=True)
            x = self.postprocess(x, y, scope)
            scope = f"{layer}/encdec_attention"
            y = self.attention(self.preprocess(x, scope), memory, scope)
            x = self.postprocess(x, y, scope)
            scope = f"{layer}/ffn"
            y = self.feed_forward(self.preprocess(x, scope), scope)
            x = self.postprocess(x, y, scope)
        return (
            self.preprocess(x, "decoder")
            @ self.matrix(self.sizes[1], "softmax", "shared").T
        )


def greedy(model, source, *, most):
    """The most probable tokens but pad, up to EOS."""
    output = []
    while len(output) < most:
        logits = model.logits(source, np.array(output, int))[-1]
        best = int(logits[1:].argmax()) + 1
        if best == EOS:
            break
        output.append(best)
    return output
