"""Models on disk: what a file holds, and what happens to files that are not what they should be."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import leadline
from leadline import METHODS, Estimator, InputError, load, make
from leadline.data.outputs import FloatArray, IntArray, Outputs
from leadline.estimators.base import Reduced, State
from leadline.estimators.persistence import FORMAT_VERSION, _checksum

FAST: dict[str, dict[str, Any]] = {name: {"n_anchors": 20, "max_epochs": 2} for name in ("alsa-g", "alsa-e")}


@pytest.fixture
def source(make_outputs: Callable[..., Outputs]) -> Outputs:
    return make_outputs(n=80, c=3)


@pytest.fixture
def saved(source: Outputs, tmp_path: Path) -> Path:
    """Return a small model of ALSA, which has arrays, numbers, text and a list of dicts."""
    path = tmp_path / "model.leadline"
    make("alsa-g", **FAST["alsa-g"]).fit(source.logits, source.labels).save(path)
    return path


def contents(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    with safe_open(path, framework="numpy") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def rewrite(path: Path, *, drop: str = "", tensors: Any = None, **changes: str) -> None:
    """Change a model's metadata or tensors, and make its checksum fit again."""
    metadata, arrays = contents(path)
    metadata |= changes
    metadata.pop(drop, None)
    arrays |= tensors or {}
    del metadata["checksum"]
    save_file(arrays, path, metadata | {"checksum": _checksum(metadata, arrays)})


# -------------------------------------------------------------------------------------------------------- what is kept
@pytest.mark.parametrize("method", METHODS)
def test_loaded_models_are_the_saved_ones(method: str, source: Outputs, tmp_path: Path) -> None:
    model = make(method, **FAST.get(method, {})).fit(source.logits, source.labels)
    path = tmp_path / "model.leadline"
    model.save(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    assert loaded.method == method
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    pairs = {name: (vars(loaded)[name], value) for name, value in vars(model).items() if name != "source_"}
    pairs |= {name: (vars(loaded.source_)[name], value) for name, value in vars(model.source_).items()}
    for name, (found, value) in pairs.items():
        np.testing.assert_array_equal(found, value, err_msg=name)
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype, name
    assert loaded.estimate(source.logits).to_dict() == model.estimate(source.logits).to_dict()


def test_options_that_json_does_not_have_come_back(source: Outputs, tmp_path: Path) -> None:
    model = make("alsa-e", learn={"widths", "peaks"}, n_anchors=np.int64(20), max_epochs=2, alpha=np.float64(0.95))
    model.fit(source.logits, source.labels).save(tmp_path / "model.leadline")
    params = load(tmp_path / "model.leadline").get_params()
    assert (params["learn"], params["n_anchors"], params["alpha"]) == (("peaks", "widths"), 20, 0.95)


def test_a_file_is_safetensors_with_readable_metadata(saved: Path) -> None:
    metadata, tensors = contents(saved)
    assert metadata["format"] == "leadline-model"
    assert metadata["format_version"] == str(FORMAT_VERSION)
    assert metadata["method"] == "alsa-g"
    assert metadata["n_classes"] == "3"
    assert metadata["leadline_version"] == leadline.__version__
    assert metadata["numpy_version"] == np.__version__
    assert json.loads(metadata["params"])["n_anchors"] == 20
    assert json.loads(metadata["source"])["n_rows"] == 80
    shapes = {name: array.shape for name, array in tensors.items()}
    assert shapes | {"anchors_": (20, 3), "peaks_": (20,), "widths_": (20,)} == shapes


def test_nothing_is_pickled(source: Outputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(sys.modules.get("pickle") or __import__("pickle"), name, refuse)
    model = make("cott").fit(source.logits, source.labels)
    model.save(tmp_path / "model.leadline")
    load(tmp_path / "model.leadline")


@pytest.mark.parametrize("method", ["alsa-g", "cott", "im"])
def test_equal_models_make_equal_files(method: str, source: Outputs, tmp_path: Path) -> None:
    files = []
    for i in range(4):  # the order of a hash map of ten entries would agree by chance once in millions
        make(method, **FAST.get(method, {})).fit(source.logits, source.labels).save(tmp_path / str(i))
        files.append((tmp_path / str(i)).read_bytes())
    load(tmp_path / "0").save(tmp_path / "again")
    assert len({*files, (tmp_path / "again").read_bytes()}) == 1


# ----------------------------------------------------------------------------------------------------------- overwrite
def test_a_file_is_overwritten_by_force_only(saved: Path, source: Outputs) -> None:
    before = saved.read_bytes()
    model = make("ac").fit(source.logits, source.labels)
    with pytest.raises(InputError, match=r"exists; use force=True to overwrite it"):
        model.save(saved)
    assert saved.read_bytes() == before
    model.save(saved, force=True)
    assert load(saved).method == "ac"


def test_only_fitted_models_are_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not fitted yet"):
        make("ac").save(tmp_path / "model.leadline")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- unwanted files
def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model file .*no\.leadline does not exist"):
        load(tmp_path / "no.leadline")
    with pytest.raises(InputError, match="is not a regular file"):
        load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\x80\x04K\x01.", b"PK\x03\x04" + bytes(50), bytes(8), b"\xff" * 64, b"x" * 9])
def test_foreign_bytes(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.leadline"
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged or not a Leadline model") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_every_truncation_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    for size in {0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1}:
        saved.write_bytes(data[:size])
        with pytest.raises(InputError, match="model file"):
            load(saved)


def test_every_changed_byte_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(0, len(data), 23):
        changed = bytearray(data)
        changed[place] ^= 0x04
        saved.write_bytes(bytes(changed))
        with pytest.raises(InputError, match="model file"):
            load(saved)


def test_safetensors_of_others(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"weight": np.eye(3)}, path)
    with pytest.raises(InputError, match="was not written by Leadline; use a file made by `leadline fit`"):
        load(path)


def test_a_type_that_numpy_does_not_have(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_torch

    save_torch({"x": torch.ones(3, dtype=torch.float8_e4m3fn)}, tmp_path / "model")
    with pytest.raises(InputError, match=r"damaged or not a Leadline model|was not written by Leadline"):
        load(tmp_path / "model")


def test_newer_formats_say_who_wrote_them(saved: Path) -> None:
    rewrite(saved, format_version="7", leadline_version="9.9")
    with pytest.raises(InputError, match=r"has format 7, newer than 2, .* Leadline 9\.9\. Upgrade Leadline\."):
        load(saved)


@pytest.mark.parametrize("version", ["", "one", "-1", "1.5", "0", "9" * 5000, "²"])
def test_versions_that_are_none(version: str, saved: Path) -> None:
    rewrite(saved, format_version=version)
    with pytest.raises(InputError, match="is damaged"):
        load(saved)


def test_unknown_methods_and_options(saved: Path) -> None:
    metadata, _ = contents(saved)
    rewrite(saved, method="oracle")
    with pytest.raises(InputError, match=r"model file .*: method must be one of .*alsa-g, .*; got 'oracle'"):
        load(saved)
    rewrite(saved, method=metadata["method"], params='{"depth": 3}')
    with pytest.raises(InputError, match=r"model file .*: ALSA has no option 'depth'"):
        load(saved)


@pytest.mark.parametrize("drop", ["method", "params", "state", "source"])
def test_missing_metadata(drop: str, saved: Path) -> None:
    rewrite(saved, drop=drop)
    with pytest.raises(InputError, match=f"metadata do not say what it holds .*{drop}"):
        load(saved)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "null", '"x"'])
@pytest.mark.parametrize("key", ["params", "state", "source"])
def test_metadata_of_another_kind(key: str, text: str, saved: Path) -> None:
    rewrite(saved, **{key: text})
    with pytest.raises(InputError, match="is damaged"):
        load(saved)


def test_missing_learned_state_is_noticed(saved: Path) -> None:
    state = json.loads(contents(saved)[0]["state"])
    del state["threshold_"], state["alpha_"]
    rewrite(saved, state=json.dumps(state))
    with pytest.raises(InputError, match=r"lacks alpha_, threshold_, which ALSA .* needs; .*Fit and save again"):
        load(saved)


def make_first_format(saved: Path, **changed: np.ndarray) -> None:
    """Write a model as the first format had it, some of its rows of the source changed."""
    metadata, tensors = contents(saved)
    state = json.loads(metadata["state"])
    profile = json.loads(metadata.pop("source"))
    state |= {"source_accuracy_": profile["accuracy"], "n_source_": profile["n_rows"]}
    del state["classes_"], metadata["checksum"]
    renamed = {f"source.{name}": f"source_{name}_" for name in ("logits", "labels", "marginal")}
    kept = [name for name in tensors if name in renamed or not name.startswith("source.")]
    tensors = {renamed.get(name, name): tensors[name] for name in kept}
    tensors |= {f"source_{name}_": values for name, values in changed.items()}
    metadata |= {"format_version": "1", "state": json.dumps(state)}
    save_file(tensors, saved, metadata | {"checksum": _checksum(metadata, tensors)})


def test_files_of_the_first_format_are_read(saved: Path) -> None:
    """They hold rows of the source, and what is learned from these is learned when they are loaded."""
    expected = load(saved)
    make_first_format(saved)
    rows = np.asarray(expected.source_.logits)
    assert load(saved).estimate(rows).to_dict() == expected.estimate(rows).to_dict()


@pytest.mark.parametrize("wrong", ["label", "nan", "shape", "marginal"])
def test_rows_that_nothing_can_be_learned_from_are_refused(wrong: str, saved: Path) -> None:
    profile = load(saved).source_
    logits, labels, marginal = (np.array(each) for each in (profile.logits, profile.labels, profile.marginal))
    changed = {
        "label": {"labels": np.where(np.arange(len(labels)) == 3, 256, labels)},
        "nan": {"logits": np.where(np.arange(len(labels))[:, None] == 3, np.nan, logits)},
        "shape": {"labels": labels[:-1]},
        "marginal": {"marginal": 2 * marginal},
    }[wrong]
    make_first_format(saved, **changed)
    with pytest.raises(InputError, match="is damaged"):
        load(saved)


def test_missing_tensors_are_noticed(saved: Path) -> None:
    metadata, tensors = contents(saved)
    del tensors["peaks_"], metadata["checksum"]
    save_file(tensors, saved, metadata | {"checksum": _checksum(metadata, tensors)})
    with pytest.raises(InputError, match="lacks peaks_"):
        load(saved)


@pytest.mark.parametrize("name", ["estimate", "__class__", "_private_", "seed"])
def test_a_file_sets_learned_state_only(name: str, saved: Path) -> None:
    rewrite(saved, tensors={name: np.ones(2)})
    with pytest.raises(InputError, match="no consistent state of ALSA"):
        load(saved)


def test_contradicting_class_counts(saved: Path) -> None:
    rewrite(saved, n_classes="4")
    with pytest.raises(InputError, match="no consistent state"):
        load(saved)


# ------------------------------------------------------------------------------------------------ estimators of others
class Constant(Estimator):
    """The source accuracy, whatever the target; keeps an object where it is told to."""

    method = "constant"
    mean_: float

    def __init__(self, *, unsavable: bool = False) -> None:
        self.unsavable = unsavable

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        self.mean_ = self.source_accuracy_
        if self.unsavable:
            self.model_ = object()

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        return Reduced.from_values(logits, np.full(len(logits), self.mean_))


def test_estimators_of_others_load_from_a_table_of_their_own(source: Outputs, tmp_path: Path) -> None:
    path = tmp_path / "model.leadline"
    model = Constant().fit(source.logits, source.labels)
    model.save(path)
    with pytest.raises(InputError, match=r"method must be one of .*alsa-g, .*; got 'constant'"):
        load(path)
    with pytest.raises(InputError, match=r"method must be one of other; got 'constant'"):
        load(path, methods={"other": Constant})
    loaded = load(path, methods={"constant": Constant})
    assert loaded.estimate(source.logits).accuracy == pytest.approx(source.accuracy)


def test_what_cannot_be_saved_is_named(source: Outputs, tmp_path: Path) -> None:
    model = Constant(unsavable=True).fit(source.logits, source.labels)
    with pytest.raises(InputError, match="learned model_ must be an array or a plain value to be saved; got object"):
        model.save(tmp_path / "model.leadline")
    assert list(tmp_path.iterdir()) == []


FORGERIES: dict[str, dict[str, Any]] = {
    "NaN in an array": {"anchors_": lambda a: a * np.nan},
    "infinity in the source": {"source.logits": lambda a: a * np.float32(np.inf)},
    "another shape": {"peaks_": lambda a: a[:-1]},
    "another number of classes": {"source.logits": lambda a: a[:, :2]},
    "one dimension": {"anchors_": lambda a: a[:, 0]},
    "no rows": {"source.logits": lambda a: a[:0], "source.labels": lambda a: a[:0]},
    "labels out of range": {"source.labels": lambda a: a + 7},
    "labels of another type": {"source.labels": lambda a: a.astype(np.float32)},
    "no distribution": {"source.marginal": lambda a: -a},
    "bins that do not fit": {"source.gaps": lambda a: a[:-2]},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_arrays_are_refused(forgery: str, saved: Path) -> None:
    arrays = contents(saved)[1]
    rewrite(
        saved, tensors={name: np.ascontiguousarray(change(arrays[name])) for name, change in FORGERIES[forgery].items()}
    )
    with pytest.raises(InputError, match="is damaged"):
        load(saved)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("source", "accuracy", 7.0), ("source", "temperature", float("nan")), ("source", "temperature", -1.0),
     ("source", "n_rows", "many"), ("state", "correction_", None), ("state", "folds_", 0), ("state", "lift_", "high"),
     ("state", "classes_", [0, 0, 1]), ("state", "classes_", 5)],
)  # fmt: skip
def test_forged_numbers_are_refused(part: str, name: str, value: Any, saved: Path) -> None:
    values = json.loads(contents(saved)[0][part])
    assert name in values
    rewrite(saved, **{part: json.dumps(values | {name: value})})
    with pytest.raises(InputError, match="is damaged"):
        load(saved)


def test_options_that_cannot_work_are_refused(source: Outputs) -> None:
    for options, message in (
        ({"learning_rate": 1e300}, "learning_rate must be at most 1e\\+06"),
        ({"peak": 1e30}, "peak must be at most 1e\\+06 in size; got 1e\\+30"),
        ({"width": (1e300, 1.0)}, "width must be at most 1e\\+06 in size"),
        ({"n_anchors": 10**9}, "n_anchors must be at most 1,000,000; got 1,000,000,000"),
        ({"epsilon": float("inf")}, "epsilon must be positive and finite"),
    ):
        with pytest.raises(InputError, match=message):
            make("alsa-g", **FAST["alsa-g"] | options).fit(source)


def test_a_fit_that_diverged_leaves_no_model(source: Outputs) -> None:
    class Diverging(type(make("ac"))):  # type: ignore[misc]
        def _fit(self, logits: FloatArray, labels: IntArray) -> None:
            super()._fit(logits, labels)
            self.temperature_ = float("nan")

    model = Diverging()
    with pytest.raises(InputError, match="fit of ac diverged: temperature_ is no number"):
        model.fit(source)
    assert not model.is_fitted


@pytest.mark.parametrize("n", [8, 30, 200])
def test_models_of_small_sources_come_back(n: int, tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    """What is learned of few rows is short, and no damage."""
    model = make("ac").fit(make_outputs(n, 3, seed=1))
    model.save(tmp_path / "m.leadline")
    target = make_outputs(50, 3, seed=2).logits
    assert load(tmp_path / "m.leadline").estimate(target).accuracy == model.estimate(target).accuracy
