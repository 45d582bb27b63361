"""Corrupt checkpoints are distinguished from system errors.

Seen to fail: without the walk over causes, and without the numbers in TensorStore's
texts.
"""

import errno
import os
from pathlib import Path

import pytest

from t2t_jax.checkpointing.diagnosis import as_io_error
from t2t_jax.errors import InputMissingError, StorageError, UnavailableError

PATH = Path("run/checkpoints/7")


def system(number):
    return OSError(number, os.strerror(number), "manifest.ocdbt")


def caused(inner):
    outer = ValueError("Could not restore.")
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (system(errno.EACCES), InputMissingError),
        (system(errno.EIO), StorageError),
        (MemoryError(), UnavailableError),
        (ValueError("RESOURCE_EXHAUSTED: Out of memory allocating"), UnavailableError),
        (ValueError("DATA_LOSS: Failed to read [OS error 5: EIO]"), StorageError),
        (ValueError("Failed to read [os_error_code='13']"), InputMissingError),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, caused])
def test_where_the_machine_is_at_fault_reading_ends_with_its_code(error, kind, wrap):
    found = as_io_error(wrap(error), PATH)
    assert type(found) is kind
    assert str(PATH) in str(found)


@pytest.mark.parametrize(
    "error",
    [
        system(errno.ENOENT),
        ValueError("DATA_LOSS: CRC-32C checksum verification failed"),
        ValueError("NOT_FOUND: [OS error 2: ENOENT No such file or directory]"),
    ],
)
def test_anything_else_is_the_checkpoints_own_fault(error):
    assert as_io_error(error, PATH) is None
    assert as_io_error(caused(error), PATH) is None
