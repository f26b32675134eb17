"""NannyML's own example data: `auto` and single methods beside NannyML's CBPE.

The examples come with NannyML's package; it needs an environment of its own, in which the first step is taken:

    python -m venv /tmp/nannyml && /tmp/nannyml/bin/pip install nannyml statsmodels
    NML_DISABLE_USAGE_LOGGING=1 /tmp/nannyml/bin/python docs/studies/nannyml_examples.py dump /tmp/examples.npz
    python docs/studies/nannyml_examples.py measure /tmp/examples.npz

"dump" writes probabilities, labels and decision thresholds of reference and analysis rows, and what NannyML's CBPE says
of the accuracy of each chunk of 5,000 analysis rows, with its band of three standard errors. "measure" fits on the
reference rows, estimates the same chunks, prints a table and writes nannyml_examples.json beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 5_000
METHODS = ("auto", "cbpe", "ac", "doc", "im", "alsa-g", "atc-mc", "cot")


def dump(out: Path) -> None:
    """Write the examples and NannyML's estimates of them; needs NannyML."""
    import nannyml

    examples = {
        "work from home": ("synthetic_binary_classification_dataset", "y_pred_proba", "y_pred", "work_home_actual"),
        "car loans": ("synthetic_car_loan_dataset", "y_pred_proba", "y_pred", "repaid"),
        "credit cards": ("synthetic_multiclass_classification_dataset", "y_pred_proba_", "y_pred", "y_true"),
        "employment": ("us_census_ma_employment_data", "predicted_probability", "prediction", "employed"),
    }
    arrays: dict[str, Any] = {}
    for name, (load, score, prediction, label) in examples.items():
        reference, analysis, labels = getattr(nannyml, f"load_{load}")()
        probabilities = score
        if score.endswith("_"):
            probabilities = {column.removeprefix(score): column for column in reference if column.startswith(score)}
        estimator = nannyml.CBPE(
            problem_type="classification_multiclass" if score.endswith("_") else "classification_binary",
            y_pred_proba=probabilities, y_pred=prediction, y_true=label, metrics=["accuracy"], chunk_size=CHUNK,
        )  # fmt: skip
        found = estimator.fit(reference).estimate(analysis).filter(period="analysis").to_df()
        labelled = analysis.merge(labels, on="id", validate="one_to_one")
        for part, rows in {"reference": reference, "analysis": labelled}.items():
            if score.endswith("_"):
                values = rows[list(probabilities.values())].to_numpy()
                classes = list(probabilities)
                arrays[f"{name}/{part}/labels"] = np.array([classes.index(each) for each in rows[label]])
            else:
                values = rows[score].to_numpy()
                arrays[f"{name}/{part}/labels"] = rows[label].to_numpy().astype(int)
                # Between the highest score of one predicted class and the lowest of the other.
                chosen = rows[prediction].to_numpy() == 1
                arrays[f"{name}/threshold"] = (values[chosen].min() + values[~chosen].max()) / 2
            arrays[f"{name}/{part}/probabilities"] = values
        arrays[f"{name}/starts"] = found["chunk", "start_index"].to_numpy()
        arrays[f"{name}/ends"] = found["chunk", "end_index"].to_numpy() + 1
        for key in ("value", "lower_confidence_boundary", "upper_confidence_boundary"):
            arrays[f"{name}/{key}"] = found["accuracy", key].to_numpy()
    np.savez_compressed(out, **arrays)


def measure(path: Path) -> list[dict[str, Any]]:
    """Return one row per example, method and chunk."""
    import leadline as ll

    rows = []
    with np.load(path) as stored:
        arrays = dict(stored)
    for name in dict.fromkeys(key.split("/")[0] for key in arrays):

        def outputs(part: str, chosen: slice, name: str = name) -> ll.Outputs:
            values, labels = (arrays[f"{name}/{part}/{kind}"][chosen] for kind in ("probabilities", "labels"))
            if values.ndim == 2:
                return ll.Outputs.from_probabilities(values / values.sum(axis=1, keepdims=True), labels)
            threshold = float(arrays[f"{name}/threshold"])
            return ll.Outputs.from_scores(values, labels, threshold=None if abs(threshold - 0.5) < 1e-3 else threshold)

        source = outputs("reference", slice(None))
        fitted = {method: ll.make(method).fit(source) for method in METHODS}
        for number, (start, end) in enumerate(zip(arrays[f"{name}/starts"], arrays[f"{name}/ends"], strict=True)):
            target = outputs("analysis", slice(start, end))
            common = {"example": name, "source_rows": len(source), "chunk": number, "truth": target.accuracy}
            value, low, high = (
                float(arrays[f"{name}/{key}"][number])
                for key in ("value", "lower_confidence_boundary", "upper_confidence_boundary")
            )
            rows.append({**common, "method": "nannyml", "estimate": value, "low": low, "high": high})
            for method, model in fitted.items():
                found = model.estimate(target)
                low, high = found.interval
                rows.append(
                    {
                        **common, "method": method, "estimate": found.accuracy, "low": low, "high": high,
                        "distance": found.shift.distance,
                    }
                )  # fmt: skip
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return error, interval width and coverage per example and method."""
    summary = []
    for example in dict.fromkeys(row["example"] for row in rows):
        for method in ("nannyml", *METHODS):
            mine = [row for row in rows if row["example"] == example and row["method"] == method]
            summary.append(
                {
                    "example": example, "method": method, "chunks": len(mine), "source_rows": mine[0]["source_rows"],
                    "least_truth": min(row["truth"] for row in mine), "most_truth": max(row["truth"] for row in mine),
                    "mae": float(np.mean([abs(row["estimate"] - row["truth"]) for row in mine])),
                    "width": float(np.mean([row["high"] - row["low"] for row in mine])),
                    "coverage": float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in mine])),
                }
            )  # fmt: skip
    return summary


def main(step: str, path: Path) -> None:
    """Take one of the two steps."""
    if step == "dump":
        dump(path)
        return
    from leadline.version import __version__

    rows = measure(path)
    summary = summarise(rows)
    text = json.dumps({"version": __version__, "rows": summary, "chunks": rows}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    for row in summary:
        print(
            f"{row['example']:15s} {row['method']:8s} error {100 * row['mae']:5.2f}  width {row['width']:.3f}  "
            f"coverage {row['coverage']:.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
