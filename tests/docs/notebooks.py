"""Executes the notebooks of docs/notebooks, and writes them with small outputs.

    python -m tests.docs.notebooks docs/notebooks/annotated_transformer.ipynb

executes a notebook as it is, and writes it back; the test executes it with smaller
numbers. Needs the extra `docs`.
"""

import base64
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

COLORS = 64  # of a picture, which makes it a third as large


def execute(
    path: Path,
    *,
    changes: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> nbformat.NotebookNode:
    """Executes a notebook in an empty directory.

    Args:
      changes: replacements in its source.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    for old, new in (changes or {}).items():
        assert any(old in cell.source for cell in notebook.cells), old
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)
    with tempfile.TemporaryDirectory() as directory:
        resources = {"metadata": {"path": directory}}
        client = NotebookClient(
            notebook, timeout=1_200, kernel_name="python3", resources=resources
        )
        client.execute(env=dict(environ))
    return notebook


def compact(notebook: nbformat.NotebookNode) -> None:
    """Removes what differs from one execution to the next, and shrinks pictures."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                output.data = {"image/png": _smaller(picture)}
                output.metadata = {}


def _smaller(picture: str) -> str:
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    content = io.BytesIO()
    image.quantize(COLORS, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        executed = execute(Path(name))
        compact(executed)
        nbformat.write(executed, name)
