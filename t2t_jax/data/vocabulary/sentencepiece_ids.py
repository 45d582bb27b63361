"""Gives a SentencePiece model another order of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK


def piece_count(model: bytes, *, name: str) -> int:
    """Returns the number of pieces of a SentencePiece model.

    Raises:
      DataError: it is not a SentencePiece model.
    """
    return len(parse_sentencepiece(model, name=name).pieces)


def special_ids(model: bytes, *, name: str) -> tuple[int | None, ...]:
    """Returns the ids of pad, bos, eos and unk in a SentencePiece model.

    Raises:
      DataError: it is not a SentencePiece model.
    """
    proto = parse_sentencepiece(model, name=name)
    found = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    spec = proto.trainer_spec
    names = (spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece)
    return tuple(map(found.get, names))


def with_our_ids(model: bytes, ids: Sequence[int | None], *, name: str) -> bytes:
    """Reorders the pieces of a SentencePiece model, whose order gives their ids.

    It splits text as before: the scores of the pieces, which decide that, stay.

    Args:
      ids: the old id of each new id, from 0; None for one that the model does not have.
        The first four are pad, bos, eos and unk.
      name: of the file, for messages.

    Raises:
      DataError: it is not a SentencePiece model, or has other ids.
    """
    proto = parse_sentencepiece(model, name=name)
    kinds = _messages().ModelProto.SentencePiece
    old, used = list(proto.pieces), {piece.piece for piece in proto.pieces}
    if sorted(one for one in ids if one is not None) != list(range(len(old))):
        fault = f"{name} has {len(old):,} pieces, and its model has others"
        raise DataError(f"{fault}. Pass the vocabulary of the model.")
    del proto.pieces[:]
    for number, one in enumerate(ids):
        piece = proto.pieces.add()
        if one is not None:
            piece.CopyFrom(old[one])
        else:
            piece.piece, piece.score = _new_name(number, used), 0.0
        if number in (PAD, BOS, EOS):
            piece.type = kinds.CONTROL
    proto.pieces[UNK].type = kinds.UNKNOWN
    spec = proto.trainer_spec
    for kind, number in {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}.items():
        setattr(spec, f"{kind}_id", number)
        setattr(spec, f"{kind}_piece", proto.pieces[number].piece)
    spec.vocab_size = len(proto.pieces)
    return proto.SerializeToString()  # type: ignore[no-any-return]


def _messages() -> Any:
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2


def _new_name(number: int, used: set[str]) -> str:
    """Returns a piece that the model does not have."""
    name = SPECIAL_PIECES[number] if number < len(SPECIAL_PIECES) else f"<id_{number}>"
    while name in used:
        name = f"<{name}>"
    used.add(name)
    return name


def parse_sentencepiece(model: bytes, *, name: str) -> Any:
    """Returns a SentencePiece model as a message `ModelProto`.

    Raises:
      DataError: it is not a SentencePiece model.
    """
    from google.protobuf.message import DecodeError

    proto = _messages().ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise DataError(f"{name}: is not a SentencePiece model.") from error
    if not proto.pieces:
        raise DataError(f"{name}: is not a SentencePiece model: it has no pieces.")
    return proto
