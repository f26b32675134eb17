"""The picture of the first page: what confidence says, what Leadline says, and what is true.

    python docs/studies/trust_figure.py docs/images/estimates.png

Draws every pair of the files that trust.py writes: of the suites that `auto` was designed with, and of the
families that anyone can build.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from leadline.report.style import COLOURS, QUIET, new_figure, save, styled, tidy

KINDS = {
    "images": ("cifar10c", "mnist", "digits", "glyphs", "images"),
    "text and files": (
        "amazon_blitzer", "banking77", "filetypes", "glosses", "languages", "sections", "snippets", "spam",
    ),
    "graphs": ("citation_domains", "dependencies"),
    "sound": ("speech",),
    "tables": (
        "activities", "birdstrikes", "census", "covertype", "diamonds", "elec", "flights_carrier", "flights_delay",
        "gas", "guests", "households", "landsat", "letters", "records", "splice", "weather",
    ),
}  # fmt: skip
PANELS = {"ac": "what the model's confidence says", "auto": "what Leadline says"}


@styled
def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw estimated against true accuracy, and write the picture."""
    unknown = {row["family"] for row in rows}.difference(*KINDS.values())
    assert not unknown, f"of no kind: {unknown}"
    figure, axes = new_figure(len(PANELS), size=(4.0, 4.0))
    truth = 100 * np.array([float(row["truth"]) for row in rows])
    for axis, (method, title) in zip(axes, PANELS.items(), strict=True):
        estimate = 100 * np.array([float(row[method]) for row in rows])
        axis.plot((0, 100), (0, 100), color=QUIET, linewidth=1.0, zorder=1)
        for place, (kind, families) in enumerate(KINDS.items()):
            mine = np.array([row["family"] in families for row in rows])
            axis.scatter(
                truth[mine], estimate[mine], s=11, color=COLOURS[place], alpha=0.5, linewidths=0, label=kind,
                zorder=3 - place / len(KINDS),  # the many tables below all else
            )  # fmt: skip
        _frame(axis, title, f"{np.abs(estimate - truth).mean():.1f} points off on average")
    axes[0].set_ylabel("estimated accuracy, %")
    handles, labels = axes[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
        handle.set_sizes([36])
    save(figure, path)


def _frame(axis: Any, title: str, below: str) -> None:
    """Put what an axis needs around its points."""
    axis.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", xlabel="true accuracy, %")
    axis.set_title(title, loc="left", weight="bold")
    axis.text(3, 95, below, color=QUIET, va="top")
    tidy(axis)


def main() -> None:
    """Read the pairs and draw them."""
    rows = []
    for name in ("trust_pairs.csv", "new_families_pairs.csv", "records_pairs.csv"):
        with Path(__file__).with_name(name).open(newline="") as file:
            found = list(csv.DictReader(file))
        rows += [{**row, "family": "records"} for row in found] if name == "records_pairs.csv" else found
    draw(rows, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
