"""The pairs that are compared with the transcription of the paper, in one row."""

import jax.numpy as jnp

PAIRS = [
    ([5, 7, 11, 13, 2], [1, 8, 9, 6, 10, 12, 4]),
    ([17, 4, 2], [1, 3]),
    ([6, 9, 8, 2], [1, 4, 5, 28, 14]),
]


def packed(pairs):
    """Puts the pairs in one row, two slots of padding after them.

    Returns:
      The arguments of a model, by name.
    """

    def row(sentences):
        slots = [
            (token, segment, position)
            for segment, sentence in enumerate(sentences, start=1)
            for position, token in enumerate(sentence)
        ]
        return jnp.array([*slots, (0, 0, 0), (0, 0, 0)]).T[:, None]

    sources, targets = zip(*pairs, strict=True)
    source, source_segments, source_positions = row(sources)
    target, target_segments, target_positions = row(targets)
    return {
        "source": source,
        "target_inputs": target,
        "source_segments": source_segments,
        "target_segments": target_segments,
        "source_positions": source_positions,
        "target_positions": target_positions,
    }
