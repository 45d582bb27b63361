"""Writes files as `torch.save` does, without torch."""

import io
import pickle
import struct
import sys
import types
import zipfile

import numpy as np

TYPES = {
    np.dtype(np.float32): "FloatStorage",
    np.dtype(np.float16): "HalfStorage",
    np.dtype(np.float64): "DoubleStorage",
    np.dtype(np.int64): "LongStorage",
}


def _fake_torch():
    """Returns modules whose names are written into the pickles."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*arguments):
        raise AssertionError("only its name is used")

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    for name in TYPES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    return {"torch": torch, "torch._utils": utils}


class Storage:
    """The elements of one or more tensors."""

    def __init__(self, elements):
        self.elements = np.ascontiguousarray(elements).ravel()


class Tensor:
    """Elements of a storage; by default all of them, in their order."""

    def __init__(self, array, *, storage=None, offset=0, strides=None):
        self.array = np.asarray(array)
        self.storage = storage or Storage(self.array)
        self.offset = offset
        self.strides = strides
        if strides is None:
            steps = np.empty(self.array.shape, self.array.dtype).strides
            self.strides = tuple(step // self.array.itemsize for step in steps)


class _Pickler(pickle.Pickler):
    def __init__(self, file, modules, keys, view):
        super().__init__(file, protocol=2)
        self._modules, self._keys, self._view = modules, keys, view

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        key = self._keys.setdefault(id(obj), (str(len(self._keys)), obj))[0]
        kind = getattr(self._modules["torch"], TYPES[obj.elements.dtype])
        return ("storage", kind, key, "cpu", len(obj.elements), *self._view)

    def reducer_override(self, obj):
        if not isinstance(obj, Tensor):
            return NotImplemented
        shape = obj.array.shape
        arguments = (obj.storage, obj.offset, shape, obj.strides, False, {})
        return self._modules["torch._utils"]._rebuild_tensor_v2, arguments


def _pickled(obj, *, view=()):
    """Returns the pickle of an object, and the storages by their keys."""
    modules, keys, file = _fake_torch(), {}, io.BytesIO()
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        _Pickler(file, modules, keys, view).dump(obj)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return file.getvalue(), dict(keys.values())


def save_zip(path, obj, *, order="little", compression=zipfile.ZIP_STORED):
    main, storages = _pickled(obj)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", main)
        archive.writestr("archive/byteorder", order)
        for key, storage in storages.items():
            end = "<" if order == "little" else ">"
            elements = storage.elements.astype(storage.elements.dtype.newbyteorder(end))
            archive.writestr(f"archive/data/{key}", elements.tobytes())
        archive.writestr("archive/version", "3\n")


def save_legacy(path, obj):
    main, storages = _pickled(obj, view=(None,))
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    parts = [0x1950A86A20F9469CFC6C, 1001, system]
    content = [pickle.dumps(part, protocol=2) for part in parts]
    content += [main, pickle.dumps(list(storages), protocol=2)]
    for storage in storages.values():
        content.append(struct.pack("<q", len(storage.elements)))
        content.append(storage.elements.tobytes())
    path.write_bytes(b"".join(content))
