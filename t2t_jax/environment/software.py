"""Checks the versions of Python and of packages, and which extras are installed."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import NamedTuple

from t2t_jax.environment.check import Check, Status

_GROUP = "versions"

TESTED = {
    "python": ("3.11", "3.13"),
    "jax": ("0.10.2", "0.12"),
    "flax": ("0.12.8",),
    "optax": ("0.2.8",),
    "orbax-checkpoint": ("0.12.8",),
    "numpy": ("2.4.6",),
    "sentencepiece": ("0.2.3",),
    "sacrebleu": ("2.6.0",),
    "tensorflow-datasets": ("4.9.10",),
    "tensorstore": ("0.1.86",),
}
"""Versions with which the tests were run; the first with all of them."""

PURPOSES = {
    "cuda": "JAX on NVIDIA GPUs",
    "tpu": "JAX on Cloud TPUs",
    "bench": "the peers of the benchmarks",
    "docs": "building the site: launch/docs.sh",
    "exchange": "importing models of other toolkits",
    "export": "exporting as safetensors, CTranslate2 or StableHLO",
    "paper": "the paper's BLEU: --mode=evaluate --protocol=vaswani2017",
    "parity": "tests beside Hugging Face Transformers",
    "plots": "--mode=attention and --mode=figures",
    "serve": "--mode=serve: an HTTP API and a page",
    "tensorboard": "looking at a run with TensorBoard",
    "test": "running the tests",
    "tokamax": "model.attention=tokamax, on NVIDIA GPUs from Hopper on",
    "tfds-prepare": "preparing TFDS sets: tfds build",
}
"""What each extra of setup.cfg is for."""

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]*)\])?\s*(?:>=\s*(?P<least>[\w.]+))?"
    r"[^;]*(?:;(?:.*python_version < ['\"](?P<python_below>[\d.]+)['\"])?"
    r"(?:.*extra == ['\"](?P<extra>[\w-]+)['\"])?)?"
)


class Requirement(NamedTuple):
    """A package that is required, by the program or by one of its extras.

    Attributes:
      extras: of that package, such as `jax[cuda12]`'s.
      least: lowest version; "" for any.
      extra: "" for the program itself.
      python_below: the first Python for which it is not required; "" if there is none.
    """

    name: str
    extras: str
    least: str
    extra: str
    python_below: str


def parse_requirements(lines: Iterable[str]) -> list[Requirement]:
    """Parses the requirements of a package's metadata.

    Example:
      >>> parse_requirements(['jax>=0.10', 'jax[tpu]; extra == "tpu"'])
      [Requirement(name='jax', extras='', least='0.10', extra='', python_below=''),
       Requirement(name='jax', extras='tpu', least='', extra='tpu', python_below='')]
    """
    found = (_REQUIREMENT.match(line) for line in lines)
    return [
        Requirement(*(match[name] or "" for name in Requirement._fields))
        for match in found
        if match
    ]


def version_numbers(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version, for comparison.

    Example:
      >>> version_numbers("0.10.2.dev3"), version_numbers("2.0rc1")
      ((0, 10, 2), (2, 0))
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def installed_version(name: str) -> str:
    """Returns the version of an installed package; "" if it is not installed."""
    try:
        return metadata.version(name) or ""
    except metadata.PackageNotFoundError:
        return ""


def check_software(
    *, installed: Callable[[str], str] = installed_version
) -> Iterator[Check]:
    """Checks Python, the required packages, and the extras."""
    yield _check_python()
    try:
        requirements = parse_requirements(metadata.requires("t2t-jax") or ())
    except metadata.PackageNotFoundError:
        requirements = []
        yield Check(
            _GROUP,
            "t2t-jax",
            "warning",
            "t2t-jax is not installed, so its requirements are not known",
            "Run pip install -e . in the clone.",
        )
    for requirement in requirements:
        if not requirement.extra:
            yield _check_package(requirement, installed(requirement.name))
    yield from _check_extras(requirements, installed)


def _check_python() -> Check:
    version = platform.python_version()
    minor = ".".join(version.split(".")[:2])
    status: Status = "ok" if minor in TESTED["python"] else "warning"
    advice = ""
    if status == "warning":
        advice = f"If something fails, try Python {TESTED['python'][0]}."
    return Check(
        _GROUP,
        "python",
        status,
        f"Python {version} ({_tested('python')})",
        advice,
        {"version": version, "tested": list(TESTED["python"])},
    )


def _check_package(requirement: Requirement, version: str) -> Check:
    name, least = requirement.name, requirement.least
    tested = TESTED.get(name.lower(), ())
    details = {"version": version or None, "least": least, "tested": list(tested)}
    about = f"{name} {version}" + (f" ({_tested(name)})" if tested else "")
    status: Status = "ok"
    advice = ""
    if not version:
        status, about = "error", f"{name} is not installed"
        advice = f"Run pip install '{name}>={least}'."
    elif version_numbers(version) < version_numbers(least):
        status, about = "error", f"{name} {version} must be at least {least}"
        advice = f"Run pip install --upgrade '{name}>={least}'."
    elif name == "jax" and not any(_is_release_of(version, one) for one in tested):
        status = "warning"
        advice = f"If something fails, run pip install 'jax=={tested[0]}'."
    return Check(_GROUP, name.lower(), status, about, advice, details)


def _is_release_of(version: str, tested: str) -> bool:
    """Returns whether two versions agree in their first two numbers."""
    return version_numbers(version)[:2] == version_numbers(tested)[:2]


def _tested(name: str) -> str:
    return f"tested with {' and in part with '.join(TESTED[name.lower()])}"


def _check_extras(
    requirements: Iterable[Requirement], installed: Callable[[str], str]
) -> Iterator[Check]:
    packages: dict[str, list[Requirement]] = {}
    python = version_numbers(platform.python_version())
    for requirement in requirements:
        below = version_numbers(requirement.python_below)
        if requirement.extra and not (below and python >= below):
            packages.setdefault(requirement.extra, []).append(requirement)
    for extra, required in packages.items():
        missing, old = [], []
        for one in required:
            version = _version_with_plugin(one, installed)
            if not version:
                missing.append(_named(one))
            elif version_numbers(version) < version_numbers(one.least):
                old.append(f"{one.name} {version} (at least {one.least})")
        purpose = PURPOSES.get(extra, "see setup.cfg")
        parts = []
        if missing:
            parts.append(f"not installed: {', '.join(missing)}")
        if old:
            parts.append(f"too old: {', '.join(old)}")
        # With a package missing the extra is not installed: what is old is another's.
        status: Status = "warning" if old and not missing else "ok"
        needs = f"If you need that, run pip install 't2t-jax[{extra}]'."
        yield Check(
            "extras",
            extra,
            status,
            f"{purpose}: {'; '.join(parts) or 'installed'}",
            needs if parts else "",
            {"purpose": purpose, "missing": missing, "too_old": old},
        )


def _named(requirement: Requirement) -> str:
    return requirement.name + f"[{requirement.extras}]" * bool(requirement.extras)


def _version_with_plugin(
    requirement: Requirement, installed: Callable[[str], str]
) -> str:
    """Returns the version of a package, or of the plugin that its extra installs."""
    plugins = {"cuda12": "jax-cuda12-plugin", "cuda13": "jax-cuda13-plugin"}
    plugins["tpu"] = "libtpu"
    return installed(plugins.get(requirement.extras, requirement.name))
