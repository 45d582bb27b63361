"""Marian's Transformer, transcribed in NumPy from the names of its tensors.

Independent of the package: it reads a `.npz` with NumPy and its options with PyYAML.
"""

import math

import numpy as np
import yaml


class MarianModel:
    """A model file, with one forward pass in float64."""

    def __init__(self, path):
        with np.load(path) as file:
            arrays = dict(file)
        text = arrays.pop("special:model.yml").tobytes()
        self.options = yaml.safe_load(text.rstrip(b"\0").decode())
        self.arrays = {name: one.astype(np.float64) for name, one in arrays.items()}
        self.used = set()

    def get(self, name):
        self.used.add(name)
        return self.arrays[name]

    def log_probabilities(self, source, target):
        """Of each token of the target and its eos; ids are Marian's, eos is 0."""
        memory = self.run_stack("encoder", self.embed("encoder", [*source, 0]))
        vectors = self.embed("decoder", target)
        start = np.zeros((1, self.options["dim-emb"]))
        inputs = np.concatenate([start, vectors]) + self.sinusoids(len(target) + 1)
        outputs = self.run_stack("decoder", inputs, memory)
        logits = outputs @ self.output_matrix().T + self.get("decoder_ff_logit_out_b")
        peak = logits.max(-1, keepdims=True)
        logits = logits - peak - np.log(np.exp(logits - peak).sum(-1, keepdims=True))
        return logits[np.arange(len(target) + 1), [*target, 0]]

    def output_matrix(self):
        for name in ("decoder_ff_logit_out_Wt", "decoder_Wemb", "Wemb"):
            if name in self.arrays:
                return self.get(name)
        raise AssertionError("no output matrix")

    def embed(self, stack, ids):
        name = "Wemb" if "Wemb" in self.arrays else f"{stack}_Wemb"
        vectors = self.get(name)[np.array(ids, int)] * self.options["dim-emb"] ** 0.5
        # The decoder's are shifted by its start before they get positions.
        return vectors + (self.sinusoids(len(ids)) if stack == "encoder" else 0)

    def sinusoids(self, count):
        half = self.options["dim-emb"] // 2
        scale = np.log(10000) / (half - 1)
        angles = np.outer(np.arange(count), np.exp(-scale * np.arange(half)))
        return np.hstack([np.sin(angles), np.cos(angles)])

    def run_stack(self, stack, x, memory=None):
        depth = self.options[f"{stack[:3]}-depth"]
        for number in range(1, depth + 1):
            prefix = f"{stack}_l{number}"
            x = self.sublayer(
                f"{prefix}_self_Wo",
                x,
                lambda y, at=f"{prefix}_self": self.attend(
                    at, y, y, causal=memory is not None
                ),
            )
            if memory is not None:
                x = self.sublayer(
                    f"{prefix}_context_Wo",
                    x,
                    lambda y, at=f"{prefix}_context": self.attend(at, y, memory),
                )
            x = self.sublayer(
                f"{prefix}_ffn_ffn", x, lambda y, at=f"{prefix}_ffn": self.expand(at, y)
            )
        if self.options["transformer-postprocess-top"] == "n":
            x = self.normalize(f"{stack}_top", x)
        return x

    def sublayer(self, norm, x, function):
        if self.options["transformer-preprocess"] == "n":
            return x + function(self.normalize(norm, x, "_pre"))
        return self.normalize(norm, x + function(x))

    def normalize(self, name, x, suffix=""):
        centered = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-6)
        scale = self.get(f"{name}_ln_scale{suffix}")
        return centered / deviation * scale + self.get(f"{name}_ln_bias{suffix}")

    def attend(self, prefix, queries, keys, *, causal=False):
        def heads(x, letter):
            y = x @ self.get(f"{prefix}_W{letter}") + self.get(f"{prefix}_b{letter}")
            return np.stack(np.split(y, self.options["transformer-heads"], -1))

        query, key, value = heads(queries, "q"), heads(keys, "k"), heads(keys, "v")
        scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1])
        if causal:
            scores = np.where(np.tri(len(queries), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        context = np.concatenate(list(weights @ value), -1)
        return context @ self.get(f"{prefix}_Wo") + self.get(f"{prefix}_bo")

    def expand(self, prefix, x):
        inner = x @ self.get(f"{prefix}_W1") + self.get(f"{prefix}_b1")
        sigmoid = 1 / (1 + np.exp(-inner))
        normal = (1 + np.vectorize(math.erf)(inner / np.sqrt(2))) / 2
        active = {
            "relu": np.maximum(inner, 0),
            "swish": inner * sigmoid,
            "gelu": inner * normal,
        }[self.options["transformer-ffn-activation"]]
        return active @ self.get(f"{prefix}_W2") + self.get(f"{prefix}_b2")
