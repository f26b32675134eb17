"""What an installation costs: size on disk, packages, and processor time of an import, beside NannyML and Evidently.

    python benchmarks/footprint.py            measure, and write results/footprint.json and docs/footprint.md
    python benchmarks/footprint.py --page     write the page again from results/footprint.json

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
from datetime import date
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from environments import ROOT, Environment, build
from leadline.version import __version__

RESULT = ROOT / "benchmarks" / "results" / "footprint.json"
PAGE = ROOT / "docs" / "footprint.md"
CALLS = 5
NOTHING = "pass"
#: By package: how it is imported, and the variables that stop it from telling its makers.
PACKAGES = {
    "leadline": {},
    "nannyml": {"NML_DISABLE_USAGE_LOGGING": "1"},
    "evidently": {"DO_NOT_TRACK": "1"},
}
TITLES = {"leadline": "Leadline", "nannyml": "NannyML", "evidently": "Evidently"}

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
FIRST_ESTIMATES = {"leadline": FIRST_ESTIMATE, "nannyml": FIRST_ESTIMATE_NANNYML}


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


def measure_package(name: str, what: object, work: Path) -> dict[str, Any]:
    """Install a package into an empty environment and measure it there."""
    environment = Environment(work / name)
    environment.install(what)
    found = {one.metadata["Name"].lower(): one.version for one in distributions(path=[str(environment.packages)])}
    size, variables = installed_bytes(environment.packages), PACKAGES[name]
    seconds = {"import": cpu_seconds(environment, f"import {name}", work, **variables)}
    if name in FIRST_ESTIMATES:
        seconds["first estimate"] = cpu_seconds(environment, FIRST_ESTIMATES[name], work, **variables)
    return {"version": found[name], "packages": len(found), "bytes": size, "cpu_seconds": seconds}


def measure() -> dict[str, Any]:
    """Measure all packages, and Python alone."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "build").mkdir()
        _, wheel = build(work / "build")
        measured = {name: measure_package(name, wheel if name == "leadline" else name, work) for name in PACKAGES}
        alone = cpu_seconds(Environment(work / "nothing"), NOTHING, work)
    return {
        "version": __version__,
        "date": date.today().isoformat(),
        "machine": {
            "python": platform.python_version(), "system": platform.system(), "processor": platform.machine(),
            "cores": os.cpu_count(), "load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1),
        },
        "calls": CALLS,
        "python_alone_cpu_seconds": alone,
        "packages": measured,
    }  # fmt: skip


def load() -> dict[str, Any]:
    """Return what was measured last."""
    result: dict[str, Any] = json.loads(RESULT.read_text())
    return result


def page(result: dict[str, Any]) -> str:
    """Return the page that shows a result."""
    machine, packages, alone = result["machine"], result["packages"], result["python_alone_cpu_seconds"]
    lines = [
        "| | version | packages | size on disk | import | import, fit and first estimate |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, found in packages.items():
        seconds = found["cpu_seconds"]
        first = f"{seconds['first estimate']:.2f} s" if "first estimate" in seconds else ""
        lines.append(
            f"| {TITLES[name]} | {found['version']} | {found['packages']} | {found['bytes'] / 1e6:,.0f} MB "
            f"| {seconds['import']:.2f} s | {first} |"
        )
    busy = " The machine was busy with other work." if machine["load_before"] > 0.5 else ""
    return f"""# What an installation costs

<!-- Written by benchmarks/footprint.py from benchmarks/results/footprint.json; edit those. -->

`pip install` of each package into an empty environment, with the newest versions of what it needs:

{chr(10).join(lines)}

- *packages* counts the package itself and all that it brings; *size on disk* is that of their files, without compiled
  Python files.
- Times are processor seconds (user and system) of a new process, which waiting does not lengthen; the least of
  {result["calls"]} calls after one that compiles. Python alone takes {alone:.2f} s of each.
- `import leadline` loads the rest when it is used. The last column therefore goes on to a first estimate, from 500
  labelled rows of two classes to 500 others: `auto` in Leadline, CBPE in NannyML. Evidently does not estimate accuracy
  without labels.
- The three do different things: NannyML and Evidently bring drift tests, plots and reports with their installation, and
  Leadline draws figures with the extra `report` only.
- Usage logging of NannyML and Evidently was off. Measured on {result["date"]} with Python {machine["python"]} on
  {machine["system"]}, {machine["processor"]}, {machine["cores"]} cores.{busy} `make bench-footprint` measures again.
"""


def main() -> None:
    """Measure, unless only the page is wanted, and write both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page from the stored result")
    if not parser.parse_args().page:
        RESULT.write_text(json.dumps(measure(), indent=2) + "\n")
    PAGE.write_text(page(load()))


if __name__ == "__main__":
    main()
