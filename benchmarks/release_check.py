"""Check what would be released: build it, read it as the registry does, install it where nothing else is, and use it.

    python benchmarks/release_check.py

The wheel is installed with the newest packages on every Python of the classifiers that is found, and with the lowest
that pyproject.toml allows (constraints/lowest.txt) on the lowest Python, where a part of the tests runs too. Packages
come from the registry that pip is configured for; nothing is uploaded and nothing outside a temporary folder changes.
"""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from pathlib import Path

from environments import ROOT, Environment, build, copy_tree, interpreters
from leadline.version import __version__

#: Installed with the lowest versions, where a part of the tests needs them.
LOWEST_EXTRAS = "[demo,report,postgres]"
#: Tests that need no package beyond those and pytest, and together touch every package that Leadline needs.
QUICK_TESTS = (
    "tests/cli/test_cli.py",
    "tests/data/test_columns.py",
    "tests/estimators/test_persistence.py",
    "tests/report/test_figures.py",
    "tests/results",
)
#: What a source distribution holds beside the package.
IN_SDIST = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "THIRD_PARTY.md", "pyproject.toml")

MAKE_OUTPUTS = """
import numpy as np

rng = np.random.default_rng(0)
for name, signal in (("source", 2.5), ("target", 1.5)):
    labels = rng.integers(4, size=500)
    np.savez(name, logits=rng.normal(size=(500, 4)) + signal * np.eye(4)[labels], labels=labels)
"""


def classified() -> tuple[str, ...]:
    """Return the versions of Python that the classifiers name."""
    return tuple(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()))


def check_files(work: Path, sdist: Path, wheel: Path) -> None:
    """Read both files as the registry does, and look for what must be in the source distribution."""
    checker = Environment(work / "checker")
    checker.install("twine")
    checker.run("twine", "check", "--strict", sdist, wheel, folder=work)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    if absent := [name for name in IN_SDIST if name not in inside]:
        raise SystemExit(f"{sdist.name} lacks {', '.join(absent)}")
    print(f"twine accepts {sdist.name} ({sdist.stat().st_size:,} bytes) and {wheel.name} ({wheel.stat().st_size:,})")


def check_use(environment: Environment, folder: Path) -> str:
    """Fit on a small source, estimate a target, and return what a report of a defect would say."""
    folder.mkdir()
    said = environment.run("leadline", "--version", folder=folder)
    if said != f"leadline {__version__}\n":
        raise SystemExit(f"leadline --version says {said!r}, and leadline/version.py {__version__!r}")
    environment.run("python", "-c", MAKE_OUTPUTS, folder=folder)
    environment.run("leadline", "fit", "source.npz", "-o", "model.leadline", folder=folder)
    words = ("estimate", "model.leadline", "target.npz", "--format", "json")
    (row,) = json.loads(environment.run("leadline", *words, folder=folder))
    low, high = row["interval"]
    if not 0 < low <= row["accuracy"] <= high < 1:
        raise SystemExit(f"the estimate {row['accuracy']} is not in its interval, {low} to {high}")
    return environment.run("leadline", "--version", "--verbose", folder=folder)


def main() -> None:
    """Check everything, with a line for each thing that holds, and end with an error at the first that does not."""
    wanted = classified()
    found = interpreters(wanted)
    if wanted[0] not in found:
        raise SystemExit(f"Python {wanted[0]} is needed, and not on the path or among pyenv's")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        sdist, wheel = build(work)
        check_files(work, sdist, wheel)
        for version in wanted:
            if version not in found:
                print(f"Python {version}: not found, not checked")
                continue
            newest = Environment(work / f"newest-{version}", found[version])
            newest.install(wheel)
            surroundings = check_use(newest, work / f"use-{version}")
            print(f"Python {version}, newest packages: installed, fitted and estimated on\n{surroundings}")
        lowest = Environment(work / "lowest", found[wanted[0]])
        tree = copy_tree(work / "tested")
        lowest.install("--constraint", tree / "constraints" / "lowest.txt", f"{wheel}{LOWEST_EXTRAS}")
        surroundings = check_use(lowest, work / "use-lowest")
        print(f"Python {wanted[0]}, lowest packages: installed, fitted and estimated on\n{surroundings}")
        lowest.install("pytest", "hypothesis")
        (tree / "src").rename(work / "unused")  # the wheel is tested
        # Old packages warn of what newer ones that they need give up: warnings are no errors here.
        said = lowest.run("python", "-m", "pytest", "-o", "filterwarnings=", *QUICK_TESTS, folder=tree)
        print(said.splitlines()[-1])


if __name__ == "__main__":
    main()
