"""The image's file agrees with the package: files, extras, Python, entry point.

Seen to fail: a folder that .dockerignore leaves out, an extra of another name, a Python
that was not run, and another program as entry point.
"""

import configparser
import json
import re

import pytest

from tests.integration.tiny import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
COPIED = [
    name
    for line in re.findall(r"^COPY (.*)$", TEXT, re.MULTILINE)
    for name in line.split()[:-1]
]


@pytest.mark.parametrize("name", COPIED)
def test_what_is_copied_exists_and_is_in_the_context(name):
    context = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert context[0] == "*"
    assert (ROOT / name).exists()
    assert f"!{name}" in context


def test_the_extras_are_those_of_the_package():
    listed = re.findall(r"--build-arg EXTRAS=([\w,-]+)", TEXT)
    listed += re.findall(r"^# Of setup\.cfg, with commas between: (.*), …$", TEXT, re.M)
    named = {name.strip() for some in listed for name in some.split(",")}
    assert {"cuda", "serve"} <= named <= set(SETUP["options.extras_require"])


def test_the_entry_point_is_the_installed_program():
    (command,) = re.findall(r"^ENTRYPOINT (.*)$", TEXT, re.MULTILINE)
    (program,) = json.loads(command)
    scripts = SETUP["options.entry_points"]["console_scripts"].split("\n")
    assert program in {line.partition("=")[0].strip() for line in scripts if line}
