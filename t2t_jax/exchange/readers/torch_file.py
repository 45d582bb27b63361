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
from t2t_jax.exchange.readers.archive import BAD_ZIP_ERRORS, MAX_RATIO, Archive

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

_ORDERED_DICT = "collections.OrderedDict"
_NAMESPACE = "argparse.Namespace"
_TENSOR = "torch._utils._rebuild_tensor_v2"
_PARAMETER = "torch._utils._rebuild_parameter"
_ENCODE = "_codecs.encode"  # how bytes are written
_ALLOWED = frozenset(
    {_ORDERED_DICT, _NAMESPACE, _TENSOR, _PARAMETER, _ENCODE, *_DTYPES}
)

_UNREADABLE = (
    *BAD_ZIP_ERRORS,
    *(ArithmeticError, MemoryError, RecursionError, TypeError),
)
"""What a damaged file raises."""

_LoadStorage: TypeAlias = Callable[[str, npt.DTypeLike, int], Array | None]
"""(key, element type, number of elements) -> the elements; None leaves them out."""


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
    try:
        with path.open("rb") as file:
            is_zip = file.read(4) == b"PK\x03\x04"
            file.seek(0)
            found = _read_zip(file) if is_zip else _read_legacy(file)
            size, copied = file.seek(0, io.SEEK_END), _copied_bytes(found, {})
    except DataError as error:
        raise DataError(f"{path} is not a readable file of torch.save: {error}") from (
            error
        )
    except _UNREADABLE as error:
        raise DataError(
            f"{path} is not a readable file of torch.save: it is truncated or "
            f"malformed ({str(error)[:200]})."
        ) from error
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
            raise DataError(f"its byte order is {order!r}.")

        def load(key: str, dtype: npt.DTypeLike, size: int) -> Array:
            element = np.dtype(dtype).newbyteorder("<" if order == "little" else ">")
            name = f"{folder}data/{key}"
            content = archive.read_member(name, most=size * element.itemsize)
            found = np.frombuffer(content, element, size)
            return found.astype(dtype, copy=False)

        pickle = archive.read_member(main, most=_MAX_PICKLE_BYTES)
        return _Interpreter(load).run(io.BytesIO(pickle))


def _read_legacy(file: IO[bytes]) -> Any:
    """Reads pickles of magic, protocol, system, object and keys, and then storages."""
    data = _Interpreter(_refuse_tensor)
    if data.run(file) != _LEGACY_MAGIC:
        raise DataError("it does not begin as one.")
    protocol, system = data.run(file), data.run(file)
    if protocol != _LEGACY_PROTOCOL or not system["little_endian"]:
        raise DataError(
            f"it has protocol {short_repr(protocol)}, of system {short_repr(system)}."
        )
    begin = file.tell()
    elements: dict[str, tuple[npt.DTypeLike, int]] = {}

    def note(key: str, dtype: npt.DTypeLike, size: int) -> None:
        elements[key] = dtype, size

    # First without tensors: the storages follow the object that refers to them.
    _Interpreter(note).run(file)
    keys = [_as(str, key) for key in _as(list, data.run(file))]
    storages = {key: _read_storage(file, *elements[key]) for key in keys}
    file.seek(begin)
    return _Interpreter(lambda key, dtype, size: storages[key]).run(file)


def _refuse_tensor(key: str, dtype: npt.DTypeLike, size: int) -> Array:
    raise DataError("it has a tensor where none is expected.")


def _read_storage(file: IO[bytes], dtype: npt.DTypeLike, size: int) -> Array:
    """Reads the number of elements as int64, and the elements."""
    element = np.dtype(dtype).newbyteorder("<")
    (number,) = struct.unpack("<q", file.read(8))
    position = file.tell()
    left = file.seek(0, io.SEEK_END) - position
    file.seek(position)
    if not 0 <= size == number <= left // element.itemsize:
        raise DataError(
            f"a storage has {number:,} elements instead of {size:,}, or is truncated."
        )
    found = np.frombuffer(file.read(size * element.itemsize), element, size)
    return found.astype(dtype, copy=False)


class _Limited:
    """A file of which a pickle may take `_MAX_PICKLE_BYTES` from its position."""

    def __init__(self, file: IO[bytes]):
        self._file, self._left = file, _MAX_PICKLE_BYTES

    def read(self, size: int) -> bytes:
        """Reads so many bytes, or those that are left of the file."""
        self._take(size)
        return self._file.read(size)

    def readline(self) -> bytes:
        """Reads up to the end of a line."""
        line = self._file.readline(self._left + 1)
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise DataError(
                f"a pickle of it has more than {_MAX_PICKLE_BYTES:,} bytes."
            )


class _Interpreter:
    """Runs the opcodes of data, one pickle at a time."""

    def __init__(self, load: _LoadStorage):
        self._load = load
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._storages: dict[str, tuple[npt.DTypeLike, int, Array | None]] = {}
        self._copied = 0

    def run(self, file: IO[bytes]) -> Any:
        """Runs the pickle at the position of the file, and returns its object."""
        self._stack, self._memo = [], {}
        opcodes = pickletools.genops(_Limited(file))  # type: ignore[arg-type]
        for number, (opcode, argument, _) in enumerate(opcodes):
            if number == _MAX_OPCODES:
                raise DataError(f"it has more than {_MAX_OPCODES:,} pickle opcodes.")
            if opcode.name == "STOP":
                break
            if opcode.name in _CONSTANTS:
                self._stack.append(_CONSTANTS[opcode.name])
            elif opcode.name in _LITERALS:
                self._stack.append(argument)
            elif opcode.name not in _IGNORED:
                act = getattr(self, f"_{opcode.name.lower()}", None)
                if act is None:
                    raise DataError(f"it uses the pickle opcode {opcode.name}.")
                act(argument)
        (result,) = self._stack
        return result

    def _mark(self, _: None) -> None:
        self._stack.append(_Mark)

    def _pop(self, _: None) -> None:
        self._stack.pop()

    def _items_after_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self._stack.pop()) is not _Mark:
            items.append(item)
        return items[::-1]

    def _memoize(self, _: None) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _binput(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    _long_binput = _binput

    def _binget(self, index: int) -> None:
        self._stack.append(self._memo[index])

    _long_binget = _binget

    def _empty_dict(self, _: None) -> None:
        self._stack.append({})

    def _empty_list(self, _: None) -> None:
        self._stack.append([])

    def _tuple(self, _: None) -> None:
        self._stack.append(tuple(self._items_after_mark()))

    def _tuple1(self, _: None) -> None:
        self._stack[-1:] = [(self._stack[-1],)]

    def _tuple2(self, _: None) -> None:
        first, second = self._stack[-2:]
        self._stack[-2:] = [(first, second)]

    def _tuple3(self, _: None) -> None:
        first, second, third = self._stack[-3:]
        self._stack[-3:] = [(first, second, third)]

    def _append(self, _: None) -> None:
        item = self._stack.pop()
        _as(list, self._stack[-1]).append(item)

    def _appends(self, _: None) -> None:
        items = self._items_after_mark()
        _as(list, self._stack[-1]).extend(items)

    def _setitem(self, _: None) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        _as(dict, self._stack[-1])[_key(key)] = value

    def _setitems(self, _: None) -> None:
        items = self._items_after_mark()
        keys = map(_key, items[::2])
        _as(dict, self._stack[-1]).update(zip(keys, items[1::2], strict=True))

    def _global(self, name: str) -> None:
        self._stack.append(_allowed(name.replace(" ", ".", 1)))

    def _stack_global(self, _: None) -> None:
        name, module = _as(str, self._stack.pop()), _as(str, self._stack.pop())
        self._stack.append(_allowed(f"{module}.{name}"))

    def _binpersid(self, _: None) -> None:
        kind, name, key, _device, size, *view = _as(tuple, self._stack.pop())
        # A tuple of tuples may take forever to hash.
        is_type = isinstance(name, str) and name in _DTYPES
        if kind != "storage" or not is_type or view not in ([], [None]):
            raise DataError(f"it refers to {short_repr((kind, name, *view))}.")
        dtype, size = _DTYPES[name], _as(int, size)
        if _as(str, key) not in self._storages:
            self._storages[key] = dtype, size, self._load(key, dtype, size)
        *known, storage = self._storages[key]
        if known != [dtype, size]:
            raise DataError(f"its storage {key} has two types or sizes.")
        self._stack.append(storage)

    def _newobj(self, _: None) -> None:
        arguments, name = self._stack.pop(), self._stack.pop()
        if (name, arguments) != (_NAMESPACE, ()):
            raise DataError(f"it makes an object of {short_repr(name)}.")
        self._stack.append(_Namespace())

    def _build(self, _: None) -> None:
        state = self._stack.pop()
        # An OrderedDict has state, too: the versions of modules, which are not needed.
        if isinstance(self._stack[-1], _Namespace):
            self._count(_as(dict, state))
            self._stack[-1].update(state)

    def _reduce(self, _: None) -> None:
        arguments, name = _as(tuple, self._stack.pop()), self._stack.pop()
        call = _CALLS.get(name) if isinstance(name, _Name) else None
        if call is None:
            raise DataError(f"it calls {short_repr(name)}.")
        for argument in arguments:
            self._count(argument)
        self._stack.append(call(*arguments))

    def _count(self, argument: Any) -> None:
        """Counts what a call copies: few opcodes can copy the same many times."""
        if isinstance(argument, str):
            self._copied += len(argument)
        elif isinstance(argument, list | dict):
            self._copied += _BYTES_PER_ITEM * len(argument)
        if self._copied > _MAX_PICKLE_BYTES:
            raise DataError("its calls copy more than a state of a model has.")


_IGNORED = frozenset({"PROTO", "FRAME"})

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}

_LITERALS = frozenset(
    {
        *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES"),
    }
)
"""Opcodes that push their argument."""


def _allowed(name: str) -> _Name:
    if name not in _ALLOWED:
        raise DataError(
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
    if not is_plain and not (
        type(value) is int and value.bit_length() <= _MAX_KEY_BITS
    ):
        raise DataError(f"a dict has the key {short_repr(value)}.")
    return value


def _ordered_dict(pairs: Iterable[Any] = ()) -> dict[Any, Any]:
    """Returns a dict; Python 2 passed its items, as lists of two, to the call."""
    if pairs != () and not isinstance(pairs, list):
        raise DataError(f"it makes a dict of {short_repr(pairs)}.")
    return {_key(key): value for key, value in pairs}


def _encode(text: Any, encoding: Any) -> bytes:
    if encoding != "latin1":
        raise DataError(f"it encodes text as {short_repr(encoding)}.")
    return _as(str, text).encode("latin-1")  # type: ignore[no-any-return]


def _view(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Array | None:
    """Returns a tensor of a storage, which it must not exceed."""
    if storage is None:
        return None
    size = len(_as(np.ndarray, storage))
    numbers = (offset, *_as(tuple, shape), *_as(tuple, strides))
    if (
        len(shape) != len(strides)
        or len(shape) > _MAX_DIMENSIONS
        or any(type(n) is not int or not 0 <= n <= _MAX_ELEMENTS for n in numbers)
    ):
        raise DataError(f"a tensor is described as {short_repr(numbers)}.")
    steps = zip(shape, strides, strict=True)
    last = offset + sum((length - 1) * stride for length, stride in steps)
    # With strides of 0 a tensor could have more elements than its storage.
    if math.prod(shape) > size or (0 not in shape and last >= size):
        raise DataError(
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
    _ORDERED_DICT: _ordered_dict,
    _TENSOR: _view,
    _PARAMETER: lambda tensor, *_: tensor,
    _ENCODE: _encode,
}
