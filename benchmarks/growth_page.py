"""The figure and the table of ``growth.py`` for ``docs/speed.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline.report.style import COLOURS, MARKERS, QUIET, new_figure, save, styled, tidy
from speed import PAGE, ROOT, write_between

Point = dict[str, Any]

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


#: Lines of the figure: methods of one kind cost alike, and are one band between the cheapest and the dearest.
_BANDS = {
    "auto": ("auto",),
    "ALSA": ("alsa-g", "alsa-e"),
    "confidence: AC, CBPE, DoC, IM, ATC": ("ac", "cbpe", "doc", "im", "atc-mc", "atc-ne"),
    "transport: COT, COTT": ("cot", "cott"),
}
_STYLES = {"memory": (":", "memory, one pass"), "product": ("--", "product with ALSA's anchors"),
           "reading": ("-.", "reading Parquet")}  # fmt: skip


@styled
def draw(result: dict[str, Any], path: Path) -> None:
    """Draw seconds above, memory below, on logarithmic axes."""
    figure, axes = new_figure(3, 2, size=(3.6, 3.0))
    for column, (by, meaning) in enumerate(_MEANING.items()):
        here = [point for point in result["points"] if point["by"] == by and "missing" not in point]
        for key, axis in (("seconds", axes[column]), ("megabytes", axes[3 + column])):
            for place, (title, methods) in enumerate(_BANDS.items()):
                _band(axis, [point for point in here if point["what"] in methods], key, title, COLOURS[place])
            for place, (name, title) in enumerate(_TITLES.items()):
                peer = [point for point in here if point["what"] == name]
                _band(axis, peer, key, title, "0.35", marker=MARKERS[place + 1], linestyle=(0, (4, 2)), linewidth=1.0)
            axis.set(xscale="log", yscale="log")
            axis.grid(visible=True, which="major", color="0.92")
            tidy(axis)
        sizes = sorted({point["size"] for point in here})
        for name, values in limit_lines(result, by, sizes).items():
            dashes, title = _STYLES[name]
            axes[column].plot(sizes, values, dashes, color=QUIET, linewidth=1.2, label=f"limit: {title}")
        fixed = ", ".join(f"{name} = {value:,}" for name, value in result["sweeps"][by].items())
        axes[column].set_title(fixed)
        axes[3 + column].set_xlabel(meaning)
    for first in (0, 3):
        for axis in axes[first + 1 : first + 3]:
            axis.sharey(axes[first])
    axes[0].set_ylabel("seconds for the estimate")
    axes[3].set_ylabel("most memory of the process, MB")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    save(figure, path)


def _band(axis: Any, points: list[Point], key: str, title: str, colour: str, **line: Any) -> None:
    """Draw the dearest of some points at each size as a line, and a band from it down to the cheapest."""
    by_size: dict[int, list[float]] = {}
    for point in points:
        if key in point:
            by_size.setdefault(point["size"], []).append(point[key])
    sizes = sorted(by_size)
    least, most = ([pick(by_size[size]) for size in sizes] for pick in (min, max))
    axis.fill_between(sizes, least, most, color=colour, alpha=0.25, linewidth=0)
    axis.plot(sizes, most, **({"color": colour, "marker": "o", "markersize": 4, "label": title} | line))


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
        lines.append(f"| *limit: {_STYLES[name][1]}* | " + " | ".join(shown) + " |")
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
