"""Section 3 of the paper, once more: plain NumPy, float64, position by position.

It shares no code with the package and takes its parameters as they are. Nothing here is
batched, masked or clever: attention is given exactly the positions that may be looked
at, so there is no mask that could be wrong in the same way twice.

`Choices` is what other toolkits decide otherwise; by default it is the paper's. What
can be seen in the parameters (biases, also of norms, separate matrices, depths, learned
positions) is taken from them.
"""

import math
from typing import NamedTuple

import numpy as np

BOS, EOS = 1, 2


class Choices(NamedTuple):
    """What the parameters do not show; the defaults are the paper's."""

    norm: str = "post"
    activation: str = "relu"
    scaled: bool = True
    positions: str = "sinusoidal"
    rates: str = "paper"
    first_position: int = 0
    start: str = "bos"
    tag_position: str = "first"
    epsilon: float = 1e-6


PAPER = Choices()


def layer_norm(x, p, epsilon):
    mean = sum(x) / len(x) if "bias" in p else 0.0  # without a bias: RMSNorm
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    normed = (x - mean) / math.sqrt(variance + epsilon)
    return p["scale"] * normed + p.get("bias", 0.0)


def softmax(z):
    e = np.exp(z - max(z))
    return e / sum(e)


def projected(x, p, head):
    """§3.2.2: x W of one head; of other toolkits x W + b."""
    y = x @ p["kernel"][:, head]
    return y + p["bias"][head] if "bias" in p else y


def turned(x, position):
    """Su et al. (2021), §3.2.2: each pair is a complex number, times e^(i m theta)."""
    depth = len(x)
    numbers = x.reshape(-1, 2) @ [1, 1j]
    for i in range(depth // 2):
        numbers[i] *= np.exp(1j * position / 10000 ** (2 * i / depth))
    return np.stack([numbers.real, numbers.imag], axis=-1).reshape(depth)


def attend(query, others, p, at=None):
    """§3.2: one position looks at a list of others; head by head, then W^O.

    With rotary positions it is `at` a number, and the others are from 0 on.
    """
    d_model, num_heads, d_k = p["query"]["kernel"].shape
    output = p["output"].get("bias", np.zeros(d_model))
    for head in range(num_heads if others else 0):
        q = projected(query, p["query"], head)
        keys = [projected(other, p["key"], head) for other in others]
        if at is not None:
            q = turned(q, at)
            keys = [turned(key, place) for place, key in enumerate(keys)]
        scores = [q @ key / math.sqrt(d_k) for key in keys]
        context = sum(
            weight * projected(other, p["value"], head)
            for weight, other in zip(softmax(np.array(scores)), others, strict=True)
        )
        output = output + context @ p["output"]["kernel"][head]
    return output


def activated(number, activation):
    """§3.3, max(0, x), and the functions of other toolkits."""
    if activation == "relu":
        return max(0, number)
    if activation == "gelu":  # x Phi(x), the normal distribution function
        return number * (1 + math.erf(number / math.sqrt(2))) / 2
    slope = {"swish": 1, "quick_gelu": 1.702}[activation]
    return number / (1 + math.exp(-slope * number))


def feed_forward(x, p, choices):
    """§3.3, equation 2; with a gate, equation 6 of Shazeer (2020)."""
    if "gate" in p:
        name = {"swiglu": "swish", "geglu": "gelu"}[choices.activation]
        gates = [activated(number, name) for number in x @ p["gate"]["kernel"]]
        inner = x @ p["inner"]["kernel"]
        gated = [gate * number for gate, number in zip(gates, inner, strict=True)]
        return np.array(gated) @ p["outer"]["kernel"]
    inner = x @ p["inner"]["kernel"] + p["inner"]["bias"]
    inner = np.array([activated(number, choices.activation) for number in inner])
    return inner @ p["outer"]["kernel"] + p["outer"]["bias"]


def position_vector(position, d_model, rates="paper"):
    """§3.5, or the wavelengths of tensor2tensor."""
    vector = np.zeros(d_model)
    for i in range(d_model // 2):
        exponent = 2 * i / d_model if rates == "paper" else i / (d_model // 2 - 1)
        angle = position / 10000**exponent
        vector[2 * i] = math.sin(angle)
        vector[2 * i + 1] = math.cos(angle)
    return vector


def embed(vectors, stack, choices):
    """§3.4 and §3.5: the sentence's vectors at the bottom of a stack."""
    d_model = len(vectors[0])
    scale = math.sqrt(d_model) if choices.scaled else 1.0
    if choices.positions == "rotary":
        return [vector * scale for vector in vectors]
    xs = []
    for position, vector in enumerate(vectors, start=choices.first_position):
        if "positions" in stack:  # learned, Table 3 (E)
            place = scale * stack["positions"]["learned"]["table"][position]
        else:
            place = position_vector(position, d_model, choices.rates)
        xs.append(vector * scale + place)
    return xs


def sublayer(xs, function, p, choices):
    """§3.1: LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)).

    `function` maps the vectors of all positions to as many.
    """
    if choices.norm == "post":
        return [
            layer_norm(x + y, p, choices.epsilon)
            for x, y in zip(xs, function(xs), strict=True)
        ]
    normed = [layer_norm(x, p, choices.epsilon) for x in xs]
    return [x + y for x, y in zip(xs, function(normed), strict=True)]


def numbers(xs, choices):
    """The positions that attention has to know."""
    return range(len(xs)) if choices.positions == "rotary" else [None] * len(xs)


def layers(stack):
    """A stack's layers, bottom first; it may have positions and a last norm as well."""
    number = sum(name.startswith("layer_") for name in stack)
    return [stack[f"layer_{n}"] for n in range(number)]


def finished(xs, stack, choices):
    """The norm that follows a stack of pre-norm."""
    if choices.norm == "post":
        return xs
    return [layer_norm(x, stack["final_norm"], choices.epsilon) for x in xs]


def encode(source, params, choices=PAPER):
    """§3.1, the encoder, over one sentence: a list of vectors."""
    if choices.tag_position == "last":
        source = [*source[1:], *source[:1]]
    stack = params["encoder"]
    table = params.get("source_embedding", params.get("embedding"))["table"]
    xs = embed([table[token] for token in source], stack, choices)
    for p in layers(stack):

        def look(xs, p=p):
            places = numbers(xs, choices)
            return [
                attend(x, xs, p["self_attention"], at)
                for x, at in zip(xs, places, strict=True)
            ]

        def network(xs, p=p):
            return [feed_forward(x, p["feed_forward"], choices) for x in xs]

        xs = sublayer(xs, look, p["self_attention_norm"], choices)
        xs = sublayer(xs, network, p["feed_forward_norm"], choices)
    return finished(xs, stack, choices)


def started(token, table, choices):
    """A target token's vector; the first may be something else than bos."""
    if token == BOS and choices.start == "zero":
        return np.zeros(table.shape[1])
    return table[EOS if token == BOS and choices.start == "eos" else token]


def decode(target_inputs, memory, params, choices=PAPER):
    """§3.1, the decoder, over one sentence: an array of logits [T, V]."""
    stack = params["decoder"]
    embedding = params.get("target_embedding", params.get("embedding"))
    table = embedding["table"]
    xs = embed([started(t, table, choices) for t in target_inputs], stack, choices)
    for p in layers(stack):

        def look_back(xs, p=p):
            places = numbers(xs, choices)
            return [
                attend(x, xs[: t + 1], p["self_attention"], places[t])
                for t, x in enumerate(xs)
            ]

        def look_across(xs, p=p):
            return [attend(x, memory, p["cross_attention"]) for x in xs]

        def network(xs, p=p):
            return [feed_forward(x, p["feed_forward"], choices) for x in xs]

        xs = sublayer(xs, look_back, p["self_attention_norm"], choices)
        xs = sublayer(xs, look_across, p["cross_attention_norm"], choices)
        xs = sublayer(xs, network, p["feed_forward_norm"], choices)
    pre_softmax = params.get("pre_softmax", embedding)
    bias = pre_softmax.get("bias", 0.0)
    return np.array(
        [pre_softmax["table"] @ x + bias for x in finished(xs, stack, choices)]
    )


def transformer(source, target_inputs, params, choices=PAPER):
    """Figure 1, for one pair of token lists without padding: logits [T, V]."""
    params = float64(params)
    return decode(target_inputs, encode(source, params, choices), params, choices)


def float64(tree):
    if isinstance(tree, dict):
        return {name: float64(leaf) for name, leaf in tree.items()}
    return np.asarray(tree, np.float64)
