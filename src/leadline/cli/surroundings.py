"""What Leadline runs on, for reports of defects: versions, extras, cores; no path, and no name of user or machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

# The parts of a requirement such as psycopg[binary]>=3.1; extra == "postgres".
_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[([\w,.-]+)\])?(?:.*\bextra == ["']([\w-]+)["'])?""")
_OWN = "leadline"


@dataclass(frozen=True)
class Requirement:
    """A package that Leadline needs; ``leadline`` itself where an extra includes others.

    Attributes
    ----------
    package
        Its name.
    wanted
        The extras of the package that are needed.
    extra
        The extra of Leadline that needs it; empty where it is needed always.
    """

    package: str
    wanted: tuple[str, ...]
    extra: str

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a requirement as the metadata of a package has it.

        Examples
        --------
        >>> Requirement.parse('psycopg[binary]>=3.1; extra == "postgres"')
        Requirement(package='psycopg', wanted=('binary',), extra='postgres')
        >>> Requirement.parse("numpy>=1.26").extra
        ''
        """
        package, wanted, extra = _REQUIREMENT.findall(text)[0]
        return cls(package, tuple(filter(None, wanted.split(","))), extra)


def describe() -> str:
    """Return what Leadline runs on, a line for each thing."""
    from leadline.threads import core_count

    required = _requirements()
    names = dict.fromkeys(requirement.package for requirement in required if requirement.package != _OWN)
    installed = {name: version for name in names if (version := _version(name))}
    lines = {
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "cores": core_count(),
        "BLAS": ", ".join(_blas()),
        "kernels": ", ".join(_kernels()),
        "extras": ", ".join(_extras(required, installed)) or "none",
        **installed,
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def _requirements() -> list[Requirement]:
    """Return what Leadline needs, by its metadata; nothing where it runs without having been installed."""
    try:
        return [Requirement.parse(text) for text in metadata.requires(_OWN) or ()]
    except metadata.PackageNotFoundError:
        return []


def _version(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _extras(required: Sequence[Requirement], installed: Mapping[str, str]) -> list[str]:
    """Return the extras of which every package is installed."""

    def complete(extra: str) -> bool:
        return all(
            all(map(complete, requirement.wanted)) if requirement.package == _OWN else requirement.package in installed
            for requirement in required
            if requirement.extra == extra
        )

    return [extra for extra in dict.fromkeys(item.extra for item in required) if extra and complete(extra)]


def _blas() -> Iterator[str]:
    """Go through the libraries of linear algebra that NumPy and SciPy bring."""
    import scipy.linalg  # noqa: F401 - NumPy's is loaded with it
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["user_api"] == "blas":
            yield f"{library['internal_api']} {library['version']} with {library['num_threads']} threads"


def _kernels() -> Iterator[str]:
    """Go through the backends of ALSA's kernels whose package is installed, the default first."""
    from leadline.estimators.alsa.kernels import BACKENDS

    for backend in BACKENDS:
        if _version(backend):
            yield backend
