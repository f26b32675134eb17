"""The figure and the table of ``growth.py`` for ``docs/speed.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speed import PAGE, ROOT, write_between

FIGURE = ROOT / "docs" / "images" / "growth.png"
MARKS = ("<!-- growth: begin -->\n", "<!-- growth: end -->\n")
_MEANING = {"n": "rows n", "c": "classes c", "groups": "groups"}
_TITLES = {"pot": "POT, transport alone", "nannyml": "NannyML, CBPE", "quapy": "QuaPy, EM of class shares"}


def limit_lines(result: dict[str, Any], by: str, sizes: list[int]) -> dict[str, list[float]]:
    """Return the least seconds that the machine allows at each size, by what limits them."""
    bounds, fixed = result["limits"], result["sweeps"][by]
    anchors = {fit["c"]: fit["fit"]["anchors"] for fit in result["fits"] if _has_anchors(fit)}
    lines: dict[str, list[float]] = {"memory": [], "product": [], "reading": []}
    for size in sizes:
        n, c = (size if by == name else fixed[name] for name in ("n", "c"))
        lines["memory"].append(4.0 * n * c / bounds["bytes_a_second"])
        lines["product"].append(2.0 * n * c * anchors.get(c, float("nan")) / bounds["flops_a_second"])
        lines["reading"].append(n * c / 10 / bounds["rows_read_a_second"])
    return lines


def _has_anchors(fit: dict[str, Any]) -> bool:
    return fit["method"] == "alsa-g" and isinstance(fit["fit"], dict)


_STYLES = {"memory": ("0.2", ":", "memory, one pass"), "product": ("0.5", "--", "product with ALSA's anchors"),
           "reading": ("0.7", "-.", "reading Parquet")}  # fmt: skip


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw seconds above, memory below, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(point["what"] for point in result["points"]))
    colours = dict(zip(names, mpl.colormaps["tab20"].colors, strict=False))  # type: ignore[attr-defined]
    figure, axes = plt.subplots(2, 3, figsize=(13.0, 8.2), sharex="col", sharey="row", layout="constrained")
    for column, (by, meaning) in enumerate(_MEANING.items()):
        here = [point for point in result["points"] if point["by"] == by and "missing" not in point]
        for row, key in enumerate(("seconds", "megabytes")):
            axis = axes[row, column]
            for name in names:
                drawn = [point for point in here if point["what"] == name and key in point]
                marker = "s--" if name in _TITLES else "o-"
                axis.loglog(
                    [p["size"] for p in drawn], [p[key] for p in drawn], marker, color=colours[name], markersize=4,
                    label=_TITLES.get(name, name),
                )  # fmt: skip
            axis.grid(visible=True, which="major", color="0.92")
            axis.spines[["top", "right"]].set_visible(False)
        sizes = sorted({point["size"] for point in here})
        for name, values in limit_lines(result, by, sizes).items():
            colour, dashes, title = _STYLES[name]
            axes[0, column].loglog(sizes, values, dashes, color=colour, label=f"limit: {title}")
        fixed = ", ".join(f"{name} = {value:,}" for name, value in result["sweeps"][by].items())
        axes[0, column].set_title(fixed, size="medium")
        axes[1, column].set_xlabel(meaning)
    axes[0, 0].set_ylabel("seconds for the estimate")
    axes[1, 0].set_ylabel("most memory of the process, MB")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize="small")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def table(result: dict[str, Any], by: str) -> list[str]:
    """Return the lines of one table: seconds and megabytes of everything at each size."""
    here = [point for point in result["points"] if point["by"] == by]
    sizes = sorted({point["size"] for point in here})
    cells = {(point["what"], point["size"]): _cell(point) for point in here}
    fixed = ", ".join(f"{name} = {value:,}" for name, value in result["sweeps"][by].items())
    lines = [
        f"| {_MEANING[by]}, {fixed} | " + " | ".join(f"{size:,}" for size in sizes) + " |",
        "|---" + "|--:" * len(sizes) + "|",
    ]
    for name in dict.fromkeys(point["what"] for point in here):
        lines.append(
            f"| {_TITLES.get(name, name)} | " + " | ".join(cells.get((name, size), "") for size in sizes) + " |"
        )
    for name, values in limit_lines(result, by, sizes).items():
        shown = ("" if value != value else _seconds(value) for value in values)  # noqa: PLR0124 - not a number
        lines.append(f"| *limit: {_STYLES[name][2]}* | " + " | ".join(shown) + " |")
    return lines


def _cell(point: dict[str, Any]) -> str:
    if "missing" in point:
        return str(point["missing"])
    return f"{_seconds(point['seconds'])}, {point['megabytes']:,.0f} MB"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 100 else f"{value:,.0f} s"


def write_page(result: dict[str, Any]) -> None:
    """Draw the figure, and put the tables into the page of the docs."""
    draw(result, FIGURE)
    about = result["machine"]
    lines = [
        f"Measured on {about['date']}: {about['processor']}, {about['cores']} cores; load of the machine before the "
        f"run {about['load_average']:.1f}. Points beyond {result['limit']:g} s are left out.",
    ]
    if result["absent"]:
        lines.append(f"Not measured, for want of an environment that has them: {', '.join(result['absent'])}.")
    lines += ["", f"![Seconds and memory of every method against rows, classes and groups](images/{FIGURE.name})"]
    for by in _MEANING:
        lines += ["", *table(result, by)]
    write_between(PAGE, *MARKS, lines)
