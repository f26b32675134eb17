"""The picture of docs/labels.md: what labels buy.

python docs/studies/labels_figure.py docs/studies/labels.json docs/images/labels.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

SIZES = (50, 100, 200, 500)
LINES = {"half-width of a simple sample": ("simple random sample", "#8a8f98"), "half-width": ("plan_labels", "#1f5fa8")}


def main() -> None:
    study = json.loads(Path(sys.argv[1]).read_text())["intervals"]
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for key, (name, colour) in LINES.items():
        by_size = [
            [
                100 * suite[key]
                for label, suite in study[f"shipped, n = {n}"]["suites"].items()
                if label != "constructed"
            ]
            for n in SIZES
        ]
        means = [sum(values) / len(values) for values in by_size]
        axes.fill_between(SIZES, [min(v) for v in by_size], [max(v) for v in by_size], color=colour, alpha=0.15, lw=0)
        axes.plot(SIZES, means, color=colour, marker="o", label=name)
        above = key != "half-width"
        for n, value in zip(SIZES, means, strict=True):
            place = (0, 8) if above else (0, -15)
            axes.annotate(f"{value:.1f}", (n, value), place, textcoords="offset points", ha="center", color=colour)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [str(n) for n in SIZES])
    axes.minorticks_off()
    axes.set_ylim(0, None)
    axes.set_xlabel("labels")
    axes.set_ylabel("90 % interval: points either way")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(sys.argv[2], dpi=150)


if __name__ == "__main__":
    main()
