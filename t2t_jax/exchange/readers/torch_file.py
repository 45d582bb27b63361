"""Reads files written by `torch.save`, without torch and without `pickle`.

A pickle is a program; here an interpreter runs the few opcodes that write dicts, lists,
numbers, strings and tensors, and a reference to anything else is refused by name. No
code of the file is executed.

Both containers are read: the zip archive of torch 1.6 and later, and the sequence of
pickles before it.
"""

from __future__ import annotations

import io
import math
import pickletools
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError, short_repr
from t2t_jax.exchange.readers.archive import MAX_RATIO, Archive, LimitedFile
from t2t_jax.files import damage_as_data_error

Array: TypeAlias = npt.NDArray[Any]

# A state dict of 1,000 tensors takes some 20,000 opcodes; each may make an object.
_MAX_OPCODES = 1_000_000
_MAX_PICKLE_BYTES = 64 << 20
# What a call copies counts as bytes of the pickle: an item of a dict as so many.
_BYTES_PER_ITEM = 64
_MAX_KEY_BITS = 64
_MAX_DIMENSIONS = 8
_MAX_ELEMENTS = 1 << 40
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001

_DTYPES: Mapping[str, npt.DTypeLike] = {
    "torch.DoubleStorage": np.float64,
    "torch.FloatStorage": np.float32,
    "torch.HalfStorage": np.float16,
    "torch.BFloat16Storage": ml_dtypes.bfloat16,
    "torch.LongStorage": np.int64,
    "torch.IntStorage": np.int32,
    "torch.ShortStorage": np.int16,
    "torch.CharStorage": np.int8,
    "torch.ByteStorage": np.uint8,
    "torch.BoolStorage": np.bool_,
}

_NAMESPACE = "argparse.Namespace"

# (key, element type, number of elements) -> the elements.
_LoadStorage: TypeAlias = Callable[[str, npt.DTypeLike, int], Array]


class _Name(str):
    """The name of an allowed class or function."""


class _Namespace(dict[str, Any]):
    """The attributes of an `argparse.Namespace`."""


class _Mark:
    """What the opcode MARK pushes."""


def read_torch_file(path: Path) -> Any:
    """Reads a file of `torch.save`.

    Returns:
      Its object: dicts (for `OrderedDict` and `argparse.Namespace`, too), lists,
      tuples, strings, bytes, numbers, None, and read-only NumPy arrays for tensors.

    Raises:
      DataError: the file is truncated or malformed, refers to a class or function that
        is not data, or its tensors, which may share elements, would be more than
        `MAX_RATIO` times as large as the file once each is copied.
      OSError: it cannot be read.
    """
    what = f"{path} is not a readable file of torch.save"
    with damage_as_data_error(what), path.open("rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        found = _read_zip(file) if is_zip else _read_legacy(file)
        size, copied = file.seek(0, io.SEEK_END), _copied_bytes(found, {})
    if copied > MAX_RATIO * size:
        raise DataError(
            f"{path}: the tensors of a file must take at most {MAX_RATIO} times its "
            f"{size:,} bytes, and copies of these take {short_repr(copied)}, as many "
            "share elements. Save each tensor once, and with elements of its own."
        )
    return found


def _copied_bytes(value: Any, known: dict[int, int]) -> int:
    """Returns the size of all tensors of a value, each as often as it occurs."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if not isinstance(value, dict | list | tuple):
        return 0
    if id(value) not in known:
        known[id(value)] = 0  # It may contain itself.
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = sum(_copied_bytes(item, known) for item in items)
    return known[id(value)]


def _read_zip(file: IO[bytes]) -> Any:
    """Reads an archive of `data.pkl` and `data/KEY`, all in one folder."""
    with Archive(file) as archive:
        (main,) = (name for name in archive.sizes if name.endswith("/data.pkl"))
        folder = main.removesuffix("data.pkl")
        order = "little"
        if f"{folder}byteorder" in archive.sizes:
            order = archive.read_member(f"{folder}byteorder", most=16).decode("ascii")
        if order not in ("little", "big"):
            raise ValueError(f"its byte order is {order!r}.")

        def load(key: str, dtype: npt.DTypeLike, size: int) -> Array:
            element = np.dtype(dtype).newbyteorder("<" if order == "little" else ">")
            name = f"{folder}data/{key}"
            content = archive.read_member(name, most=size * element.itemsize)
            return np.frombuffer(content, element, size).astype(dtype, copy=False)

        pickle = archive.read_member(main, most=_MAX_PICKLE_BYTES)
        return _Interpreter(load).run(io.BytesIO(pickle))


def _read_legacy(file: IO[bytes]) -> Any:
    """Reads pickles of magic, protocol, system, object and keys, and then storages."""
    left = file.seek(0, io.SEEK_END)
    file.seek(0)

    def reserve(key: str, dtype: npt.DTypeLike, size: int) -> Array:
        # The elements follow the object that refers to them.
        nonlocal left
        left -= size * np.dtype(dtype).itemsize
        if size < 0 or left < 0:
            raise ValueError("its storages have more elements than it")
        return np.zeros(size, dtype)

    interpreter = _Interpreter(reserve)
    if interpreter.run(file) != _LEGACY_MAGIC:
        raise ValueError("it does not begin as one")
    protocol, system = interpreter.run(file), interpreter.run(file)
    if protocol != _LEGACY_PROTOCOL or not system["little_endian"]:
        raise ValueError(
            f"it has protocol {short_repr(protocol)}, of system {short_repr(system)}"
        )
    found = interpreter.run(file)
    for key in _as(list, interpreter.run(file)):
        dtype, size, elements = interpreter.storages.pop(_as(str, key))
        if struct.unpack("<q", file.read(8)) != (size,):
            raise ValueError(f"a storage has not the {size:,} elements of its tensor")
        element = np.dtype(dtype).newbyteorder("<")
        elements[:] = np.frombuffer(file.read(size * element.itemsize), element, size)
    if interpreter.storages:
        raise ValueError("a storage of its tensors has no elements")
    return found


class _Interpreter:
    """Runs the opcodes of data, one pickle at a time.

    Attributes:
      stack, memo: of the pickle.
      storages: type, number of elements, and these, by key.
    """

    def __init__(self, load: _LoadStorage):
        self._load = load
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.storages: dict[str, tuple[npt.DTypeLike, int, Array]] = {}
        self._copied = 0

    def run(self, file: IO[bytes]) -> Any:
        """Runs the pickle at the position of the file, and returns its object."""
        self.stack, self.memo = [], {}
        limited = LimitedFile(file, _MAX_PICKLE_BYTES, name="a pickle of it")
        opcodes = pickletools.genops(limited)  # type: ignore[arg-type]
        for number, (opcode, argument, _) in enumerate(opcodes):
            if number == _MAX_OPCODES:
                raise ValueError(f"it has more than {_MAX_OPCODES:,} pickle opcodes.")
            if opcode.name == "STOP":
                break
            if opcode.name in _PUSHED:
                self.stack.append(_PUSHED[opcode.name](argument))
            elif act := _ACTIONS.get(opcode.name):
                act(self, argument)
            elif opcode.name not in _IGNORED:
                raise ValueError(f"it uses the pickle opcode {opcode.name}.")
        (result,) = self.stack
        return result

    def take(self, number: int) -> list[Any]:
        """Pops so many items."""
        return [self.stack.pop() for _ in range(number)][::-1]

    def take_marked(self) -> list[Any]:
        """Pops the last mark, and returns the items above it."""
        items: list[Any] = []
        while (item := self.stack.pop()) is not _Mark:
            items.append(item)
        return items[::-1]

    def memoize(self, index: int) -> None:
        """Remembers the last item."""
        self.memo[index] = self.stack[-1]

    def extend(self, items: list[Any]) -> None:
        """Adds items to the list below them."""
        _as(list, self.stack[-1]).extend(items)

    def update(self, items: list[Any]) -> None:
        """Adds keys and values to the dict below them."""
        keys, values = map(_key, items[::2]), _as(dict, self.stack[-1])
        wanted = len(values) + len(items) // 2
        values.update(zip(keys, items[1::2], strict=True))
        if len(values) != wanted:
            raise ValueError("a dict has one key twice.")

    def refer(self, _: None) -> None:
        """Replaces the description of a storage by its elements."""
        kind, name, key, _device, size, *view = _as(tuple, self.stack.pop())
        # A tuple of tuples may take forever to hash.
        is_type = isinstance(name, str) and name in _DTYPES
        if kind != "storage" or not is_type or view not in ([], [None]):
            raise ValueError(f"it refers to {short_repr((kind, name, *view))}.")
        dtype, size = _DTYPES[name], _as(int, size)
        if _as(str, key) not in self.storages:
            self.storages[key] = dtype, size, self._load(key, dtype, size)
        *known, storage = self.storages[key]
        if known != [dtype, size]:
            raise ValueError(f"its storage {key} has two types or sizes.")
        self.stack.append(storage)

    def make_namespace(self, _: None) -> None:
        """Replaces a class without arguments by an object of it."""
        name, arguments = self.take(2)
        if (name, arguments) != (_NAMESPACE, ()):
            raise ValueError(f"it makes an object of {short_repr(name)}.")
        self.stack.append(_Namespace())

    def set_state(self, _: None) -> None:
        """Sets the state of the object below it."""
        state = self.stack.pop()
        # An OrderedDict has state, too: the versions of modules, which are not needed.
        if isinstance(self.stack[-1], _Namespace):
            self._count(_as(dict, state))
            self.stack[-1].update(state)

    def call(self, _: None) -> None:
        """Replaces a function and its arguments by its result."""
        name, arguments = self.take(2)
        call = _CALLS.get(name) if isinstance(name, _Name) else None
        if call is None:
            raise ValueError(f"it calls {short_repr(name)}.")
        for argument in _as(tuple, arguments):
            self._count(argument)
        self.stack.append(call(*arguments))

    def _count(self, argument: Any) -> None:
        """Counts what a call copies: few opcodes can copy the same many times."""
        if isinstance(argument, str):
            self._copied += len(argument)
        elif isinstance(argument, list | dict):
            self._copied += _BYTES_PER_ITEM * len(argument)
        if self._copied > _MAX_PICKLE_BYTES:
            raise ValueError("its calls copy more than a state of a model has.")


_IGNORED = frozenset({"PROTO", "FRAME"})


def _allowed(name: str) -> _Name:
    if name not in _ALLOWED:
        raise ValueError(
            f"it refers to {name[:200]}, which is not data. Save what is needed "
            "of it anew: tensors, dicts, lists, numbers and text."
        )
    return _Name(name)


def _as(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value


def _key(value: Any) -> Any:
    """Returns a key of a dict, whose hash takes little time."""
    is_plain = value is None or type(value) in (str, bytes, bool, float)
    if not is_plain and (type(value) is not int or value.bit_length() > _MAX_KEY_BITS):
        raise ValueError(f"a dict has the key {short_repr(value)}.")
    return value


def _ordered_dict(pairs: Iterable[Any] = ()) -> dict[Any, Any]:
    """Returns a dict; Python 2 passed its items, as lists of two, to the call."""
    if pairs != () and not isinstance(pairs, list):
        raise ValueError(f"it makes a dict of {short_repr(pairs)}.")
    return {_key(key): value for key, value in pairs}


def _encode(text: Any, encoding: Any) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"it encodes text as {short_repr(encoding)}.")
    return _as(str, text).encode("latin-1")  # type: ignore[no-any-return]


def _view(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Array:
    """Returns a tensor of a storage, which it must not exceed."""
    size = len(_as(np.ndarray, storage))
    numbers = (offset, *_as(tuple, shape), *_as(tuple, strides))
    if (
        len(shape) != len(strides)
        or len(shape) > _MAX_DIMENSIONS
        or any(type(n) is not int or not 0 <= n <= _MAX_ELEMENTS for n in numbers)
    ):
        raise ValueError(f"a tensor is described as {short_repr(numbers)}.")
    steps = zip(shape, strides, strict=True)
    last = offset + sum((length - 1) * stride for length, stride in steps)
    # With strides of 0 a tensor could have more elements than its storage.
    if math.prod(shape) > size or (0 not in shape and last >= size):
        raise ValueError(
            f"a tensor of offset {offset:,}, shape {shape} and strides {strides} "
            f"exceeds its storage of {size:,} elements."
        )
    if 0 in shape:
        return np.empty(shape, storage.dtype)
    bytes_per_step = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(
        storage[offset:], shape, bytes_per_step, writeable=False
    )


_CALLS: Mapping[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_tensor_v2": _view,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "_codecs.encode": _encode,  # how bytes are written
}
_ALLOWED = frozenset({_NAMESPACE, *_CALLS, *_DTYPES})

_LITERALS = (
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES"),
)
# What an opcode pushes, of its argument.
_PUSHED: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_LITERALS, lambda argument: argument),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "MARK": lambda _: _Mark,
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
    "GLOBAL": lambda name: _allowed(name.replace(" ", ".", 1)),
}

# What an opcode changes.
_ACTIONS: Mapping[str, Callable[[_Interpreter, Any], Any]] = {
    "POP": lambda it, _: it.stack.pop(),
    "MEMOIZE": lambda it, _: it.memoize(len(it.memo)),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Interpreter.memoize),
    **dict.fromkeys(
        ("BINGET", "LONG_BINGET"), lambda it, index: it.stack.append(it.memo[index])
    ),
    "TUPLE": lambda it, _: it.stack.append(tuple(it.take_marked())),
    "TUPLE1": lambda it, _: it.stack.append(tuple(it.take(1))),
    "TUPLE2": lambda it, _: it.stack.append(tuple(it.take(2))),
    "TUPLE3": lambda it, _: it.stack.append(tuple(it.take(3))),
    "APPEND": lambda it, _: it.extend(it.take(1)),
    "APPENDS": lambda it, _: it.extend(it.take_marked()),
    "SETITEM": lambda it, _: it.update(it.take(2)),
    "SETITEMS": lambda it, _: it.update(it.take_marked()),
    "STACK_GLOBAL": lambda it, _: it.stack.append(
        _allowed(".".join(_as(str, name) for name in it.take(2)))
    ),
    "BINPERSID": _Interpreter.refer,
    "NEWOBJ": _Interpreter.make_namespace,
    "BUILD": _Interpreter.set_state,
    "REDUCE": _Interpreter.call,
}
