"""Section 3 of the paper, once more: plain NumPy, float64, position by position.

It shares no code with the package and takes its parameters as they are. Nothing here is
batched, masked or clever: attention is given exactly the positions that may be looked
at, so there is no mask that could be wrong in the same way twice.
"""

import math

import numpy as np

EPSILON = 1e-6


def layer_norm(x, p):
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    normed = (x - mean) / math.sqrt(variance + EPSILON)
    return p["scale"] * normed + p["bias"]


def softmax(z):
    e = np.exp(z - max(z))
    return e / sum(e)


def attend(query, others, p):
    """§3.2: one position looks at a list of others; head by head, then W^O."""
    if not others:
        return np.zeros_like(query)
    d_model, num_heads, d_k = p["query"]["kernel"].shape
    output = np.zeros(d_model)
    for head in range(num_heads):
        q = query @ p["query"]["kernel"][:, head]
        scores = [
            q @ (other @ p["key"]["kernel"][:, head]) / math.sqrt(d_k)
            for other in others
        ]
        context = sum(
            weight * (other @ p["value"]["kernel"][:, head])
            for weight, other in zip(softmax(np.array(scores)), others, strict=True)
        )
        output += context @ p["output"]["kernel"][head]
    return output


def feed_forward(x, p):
    """§3.3, equation 2."""
    inner = np.maximum(0, x @ p["inner"]["kernel"] + p["inner"]["bias"])
    return inner @ p["outer"]["kernel"] + p["outer"]["bias"]


def position_vector(position, d_model):
    """§3.5."""
    vector = np.zeros(d_model)
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i / d_model)
        vector[2 * i] = math.sin(angle)
        vector[2 * i + 1] = math.cos(angle)
    return vector


def embed(tokens, table):
    """§3.4 and §3.5: the sentence's vectors at the bottom of a stack."""
    d_model = table.shape[1]
    return [
        table[token] * math.sqrt(d_model) + position_vector(position, d_model)
        for position, token in enumerate(tokens)
    ]


def encode(source, params):
    """§3.1, the encoder, over one sentence: a list of vectors."""
    xs = embed(source, params["embedding"]["table"])
    for n in range(len(params["encoder"])):
        p = params["encoder"][f"layer_{n}"]
        xs = [
            layer_norm(x + attend(x, xs, p["self_attention"]), p["self_attention_norm"])
            for x in xs
        ]
        xs = [
            layer_norm(x + feed_forward(x, p["feed_forward"]), p["feed_forward_norm"])
            for x in xs
        ]
    return xs


def decode(target_inputs, memory, params):
    """§3.1, the decoder, over one sentence: an array of logits [T, V]."""
    table = params["embedding"]["table"]
    xs = embed(target_inputs, table)
    for n in range(len(params["decoder"])):
        p = params["decoder"][f"layer_{n}"]
        xs = [
            layer_norm(
                x + attend(x, xs[: t + 1], p["self_attention"]),
                p["self_attention_norm"],
            )
            for t, x in enumerate(xs)
        ]
        xs = [
            layer_norm(
                x + attend(x, memory, p["cross_attention"]), p["cross_attention_norm"]
            )
            for x in xs
        ]
        xs = [
            layer_norm(x + feed_forward(x, p["feed_forward"]), p["feed_forward_norm"])
            for x in xs
        ]
    return np.array([table @ x for x in xs])


def transformer(source, target_inputs, params):
    """Figure 1, for one pair of token lists without padding: logits [T, V]."""
    params = float64(params)
    return decode(target_inputs, encode(source, params), params)


def float64(tree):
    if isinstance(tree, dict):
        return {name: float64(leaf) for name, leaf in tree.items()}
    return np.asarray(tree, np.float64)
