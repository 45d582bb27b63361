"""Packs an exported model for download: one archive, of the same bytes each time.

    t2t-jax export --workdir=runs/mine --format=safetensors --languages=en,de --to=mine
    python tools/pack_model.py mine   # writes mine.tar.gz beside it

Prints the size of each file, size and SHA-256 of the archive, and what a stranger runs.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from shlex import quote


def main(directory: str) -> str | None:
    """Writes DIRECTORY.tar.gz; returns what is wrong with it, if anything is."""
    folder = Path(directory).resolve()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    listed = files.get("SHA256SUMS", b"").decode().splitlines()
    others = {f"{sums[name]}  {name}" for name in files if name != "SHA256SUMS"}
    if "README.md" not in files or {*listed} != others:
        return f"{directory} must be as `t2t-jax export` wrote it. Export it again."
    archive = folder.with_name(f"{folder.name}.tar.gz")
    if archive.exists():
        return f"{archive} exists. Move it away to pack again."
    with (
        archive.open("xb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder.name}/{name}")  # no owner and no time
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
            print(f"{len(data):>12,} bytes  {name}")
    content = archive.read_bytes()
    print(f"{len(content):>12,} bytes  {archive}\n\nWhat a stranger runs:")
    digest = hashlib.sha256(content).hexdigest()
    print(f"echo {quote(f'{digest}  {archive.name}')} | sha256sum --check")
    print(f"tar -xzf {quote(archive.name)}\ncat {quote(f'{folder.name}/README.md')}")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
