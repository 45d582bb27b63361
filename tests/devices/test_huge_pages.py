"""Large pages are asked for where that helps, and the program begins anew for it once.

Seen to fail: without each condition of `request_huge_pages`, and without the exec.
"""

import json
import os
import subprocess
import sys

import pytest

from t2t_jax.devices import huge_pages
from t2t_jax.devices.huge_pages import request_huge_pages

WISH = "glibc.malloc.hugetlb=1"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Lets a test say which C library there is, and when it gives large pages."""

    def install(modes, library="glibc", version="2.36"):
        file = tmp_path / "enabled"
        file.write_text(modes)
        monkeypatch.setattr(huge_pages, "_MODES", file)
        monkeypatch.setattr(huge_pages.platform, "libc_ver", lambda: (library, version))

    install("always [madvise] never\n")
    return install


def test_what_was_told_before_stays(system):
    environ = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=3", "HOME": "/"}
    assert request_huge_pages(environ)
    assert environ["GLIBC_TUNABLES"] == f"glibc.malloc.arena_max=3:{WISH}"
    assert environ["HOME"] == "/"
    assert not request_huge_pages(environ)


@pytest.mark.parametrize(
    ("modes", "library", "version"),
    [
        ("[always] madvise never", "glibc", "2.36"),
        ("always madvise [never]", "glibc", "2.36"),
        ("[madvise]", "", "2.36"),
        ("[madvise]", "glibc", "2.9"),
        ("[madvise]", "glibc", ""),
    ],
)
def test_nothing_is_asked_of_a_system_that_cannot(system, modes, library, version):
    system(modes, library=library, version=version)
    assert not request_huge_pages({})


def test_the_program_begins_anew_with_its_arguments(tmp_path):
    (tmp_path / "enabled").write_text("[madvise]")
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os, pathlib, sys\n"
        "from t2t_jax.devices import huge_pages as large_pages\n"
        "large_pages._MODES = pathlib.Path(sys.argv[1])\n"
        "large_pages.platform.libc_ver = lambda: ('glibc', '2.36')\n"
        "print('begun', flush=True)\n"
        "large_pages.reexec_with_huge_pages()\n"
        "print(json.dumps([os.getpid(), sys.argv, os.environ['GLIBC_TUNABLES']]))\n"
        "sys.exit(7)\n"
    )
    argv = [str(tmp_path / "enabled"), "--a=b c", ""]
    environ = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES"}
    command = [sys.executable, "-W", "error", str(program), *argv]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ)
    said, _ = process.communicate(timeout=240)
    first, second, last = said.decode().splitlines()
    assert first == second == "begun"
    assert json.loads(last) == [process.pid, [str(program), *argv], WISH]
    assert process.returncode == 7
