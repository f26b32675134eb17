"""What an installation costs: size on disk, packages, and processor time of an import, beside NannyML and Evidently.

    python benchmarks/footprint.py                measure all; write results/footprint.json and docs/footprint.md
    python benchmarks/footprint.py evidently      measure one again, and keep what is stored of the others
    python benchmarks/footprint.py --page         write the page again from results/footprint.json

Each package is installed with the newest versions of what it needs into an environment of its own. Sizes count the
files of the environment's packages, without compiled Python files. Times are user and system seconds of a process,
the least of some calls after one that is not counted, which compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from environments import ROOT, Environment, build

RESULT = ROOT / "benchmarks" / "results" / "footprint.json"
PAGE = ROOT / "docs" / "footprint.md"
CALLS = 5
#: The import of Leadline loads a part when it is used; this uses it.
FIRST_ESTIMATE = """
import numpy as np
import leadline as ll
rng = np.random.default_rng(0)
labels = rng.integers(2, size=1000)
logits = rng.normal(size=(1000, 2)) + 2 * np.eye(2)[labels]
ll.make("auto").fit(logits[:500], labels[:500]).estimate(logits[500:])
"""
#: The same in NannyML: its method of calibrated confidence, on the same rows. Evidently does not estimate accuracy.
FIRST_ESTIMATE_NANNYML = """
import numpy as np
import pandas as pd
import nannyml as nml
rng = np.random.default_rng(0)
labels = rng.integers(2, size=1000)
logits = rng.normal(size=(1000, 2)) + 2 * np.eye(2)[labels]
score = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
rows = pd.DataFrame({"score": score, "predicted": (score > 0.5).astype(int), "label": labels})
cbpe = nml.CBPE(
    problem_type="classification_binary", y_pred_proba="score", y_pred="predicted", y_true="label",
    metrics=["accuracy"], chunk_size=500,
)
cbpe.fit(rows[:500]).estimate(rows[500:])
"""


@dataclass(frozen=True)
class Package:
    """A package to measure: its title, what to install, variables that turn its usage logging off, a first estimate."""

    title: str
    installed: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    first_estimate: str | None = None


#: By the name that is imported. The wheel of this tree is what is installed of Leadline.
PACKAGES = {
    "leadline": Package("Leadline", first_estimate=FIRST_ESTIMATE),
    # NannyML 0.13.1 imports statsmodels and does not install it.
    "nannyml": Package(
        "NannyML", ("nannyml", "statsmodels"), {"NML_DISABLE_USAGE_LOGGING": "1"}, FIRST_ESTIMATE_NANNYML
    ),
    # Evidently does not import with pandas 3.1, which pip installs with it.
    "evidently": Package("Evidently", ("evidently", "pandas<3"), {"DO_NOT_TRACK": "1"}),
}


def cpu_seconds(environment: Environment, code: str, folder: Path, **variables: str) -> float:
    """Return the least processor time of a new process that runs code, start of Python included."""
    taken = []
    for _ in range(1 + CALLS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment.run("python", "-c", code, folder=folder, **variables)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return round(min(taken[1:]), 3)


def installed_bytes(folder: Path) -> int:
    """Return the size of all files below a folder, compiled Python files left out."""
    return sum(
        path.lstat().st_size for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
    )


def measure(name: str, work: Path) -> dict[str, Any]:
    """Install a package into an empty environment and measure it there."""
    package, environment, before = PACKAGES[name], Environment(work / name), os.getloadavg()[0]
    alone = cpu_seconds(environment, "pass", work)
    environment.install(*(package.installed or [build(work / "build")[1]]))
    found = {one.metadata["Name"].lower(): one.version for one in distributions(path=[str(environment.packages)])}
    size = installed_bytes(environment.packages)
    seconds = {"python": alone, "import": cpu_seconds(environment, f"import {name}", work, **package.variables)}
    if package.first_estimate:
        seconds["first estimate"] = cpu_seconds(environment, package.first_estimate, work, **package.variables)
    return {
        "version": found[name], "packages": len(found), "bytes": size, "cpu_seconds": seconds, "calls": CALLS,
        "date": date.today().isoformat(),
        "machine": {
            "python": platform.python_version(), "system": platform.system(), "processor": platform.machine(),
            "cores": os.cpu_count(), "load_before": round(before, 1), "load_after": round(os.getloadavg()[0], 1),
        },
    }  # fmt: skip


def load() -> dict[str, Any]:
    """Return what was measured last, by package in the order of the table."""
    stored = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    return {name: stored[name] for name in PACKAGES if name in stored}


def page(result: dict[str, Any]) -> str:
    """Return the page that shows a result."""
    lines = [
        "| | version | packages | size on disk | import | import, fit and first estimate | Python alone | measured |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for name, found in result.items():
        seconds, machine = found["cpu_seconds"], found["machine"]
        where = f"Python {machine['python']}, load {machine['load_before']} on {machine['cores']} cores"
        first = f"{seconds['first estimate']:.2f} s" if "first estimate" in seconds else ""
        lines.append(
            f"| {PACKAGES[name].title} | {found['version']} | {found['packages']} | {found['bytes'] / 1e6:,.0f} MB "
            f"| {seconds['import']:.2f} s | {first} | {seconds['python']:.2f} s "
            f"| {found['date']}, {where} |"
        )
    missing = [package.title for name, package in PACKAGES.items() if name not in result]
    not_measured = f"\nNot measured yet: {', '.join(missing)}.\n" if missing else ""
    return f"""# What an installation costs

<!-- Written by benchmarks/footprint.py from benchmarks/results/footprint.json; edit those. -->

`pip install` of each package into an empty environment, with the newest versions of what it needs:

{chr(10).join(lines)}
{not_measured}
- *packages* counts the package itself and all that it brings; *size on disk* is that of their files, without compiled
  Python files.
- Times are processor seconds (user and system) of a new process, start of Python included; the least of {CALLS} calls
  after one that compiles. Where the load is above the number of cores, the machine was busy with other work: waiting
  does not count in these times, but shared caches may lengthen them.
- `import leadline` loads the rest when it is used. The column after it therefore goes on to a first estimate, from 500
  labelled rows of two classes to 500 others: `auto` in Leadline, CBPE in NannyML. Evidently does not estimate accuracy
  without labels.
- NannyML is installed together with statsmodels, which it imports and does not bring itself, and Evidently with
  a pandas before 3, as it does not import with the newest.
- The three do different things: NannyML and Evidently bring drift tests, plots and reports with their installation, and
  Leadline draws figures with the extra `report` only. Usage logging of both is off while they are measured.
- `make bench-footprint` measures again.
"""


def main() -> None:
    """Measure what is wanted, keeping each result as it comes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PACKAGE", help=f"some of {', '.join(PACKAGES)}; all by default")
    parser.add_argument("--page", action="store_true", help="write the page from the stored results")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(PACKAGES):
        parser.error(f"PACKAGE must be one of {', '.join(PACKAGES)}; got {', '.join(sorted(unknown))}")
    for name in [] if arguments.page else arguments.names or PACKAGES:
        with tempfile.TemporaryDirectory() as temporary:
            measured = measure(name, Path(temporary))
        RESULT.write_text(json.dumps(load() | {name: measured}, indent=2) + "\n")
    PAGE.write_text(page(load()))


if __name__ == "__main__":
    main()
