"""``leadline bench``: every option of every command reaches the library; the tests of the bench do the work itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from command_line import Run
from leadline.bench.datasets import get_suite
from leadline.bench.inputs import Options
from leadline.cli.bench import app

#: Each command with all of its options, none of them as by default.
WORDS = {
    "list": "--data D",
    "prepare": "mnist --data D",
    "train": "mnist --data D --out O --seeds 3,4 --models lenet,mlp --max-epochs 7 --device cuda --imbalance first-ten "
    "--limit 9",
    "logits": "mnist --data D --out O --seeds 3,4 --models lenet,mlp --device cuda --cifar-10.1 v4 "
    "--imagenet-source half --imbalance first-ten --corruptions official --frost F --limit 9",
    "run": "mnist --experiment alpha --data D --out O --methods ac,doc --models lenet,mlp --targets usps --seeds 3,4",
    "reproduce": "mnist --data D --out O --seeds 3,4 --max-epochs 7 --device cuda --limit 9",
    "times": "--out O --datasets MNIST,Office-31 --max-epochs 7",
    "table": "mnist cifar10 --out O --results R",
    "figures": "--out O --folder P --kind png",
}
#: Options of every command, which :func:`bench` gives.
COMMON = ("--format", "--quiet")

TRAINED = {"seeds": [3, 4], "models": ["lenet", "mlp"], "device": "cuda"}
ALL_OPTIONS = Options(
    cifar101="v4", imagenet_source="half", imbalance="first-ten", corruptions="official", frost_folder=Path("F"),
    limit=9,
)  # fmt: skip


class Library:
    """Takes the place of the functions that do the work, and remembers what each was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def replace(self, place: str, result: Any) -> None:
        """Let a function of ``leadline.bench`` remember its arguments and return a result."""
        name = place.rsplit(".", maxsplit=1)[1]

        def remember(*args: Any, **keywords: Any) -> Any:
            keywords.pop("progress", None)
            self.calls[name] = args, keywords
            return result

        self.monkeypatch.setattr(f"leadline.bench.{place}", remember)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(monkeypatch)


def bench(run: Run, name: str) -> Any:
    """Call a command with all of its options, and return its result."""
    return run("bench", name, *WORDS[name].split(), "--format", "json", "--quiet")


def test_every_command_is_called_with_every_option() -> None:
    group: Any = get_command(app)
    assert set(WORDS) == set(group.commands)
    for name, command in group.commands.items():
        options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        assert {word for word in WORDS[name].split() if word.startswith("--")} == options - {*COMMON}, name
        assert {*COMMON} <= options, name


def test_list(run: Run, library: Library) -> None:
    from leadline.bench.result_tables import list_document

    library.replace("result_tables.list_document", list_document(Path("elsewhere")))
    assert "mnist" in [row["name"] for row in bench(run, "list").data]
    assert library.calls["list_document"] == ((Path("D"),), {})


def test_prepare(run: Run, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library.replace("pipeline.fetch_data", [(Path("D/file"), "no network")])
    result = bench(run, "prepare")
    assert library.calls["fetch_data"][0][:2] == (get_suite("mnist"), Path("D"))
    assert result.data["files"] == [{"file": "D/file", "state": "not fetched"}]
    assert (result.data["ready"], result.code) == (False, 2)
    assert result.err.startswith("leadline: error: mnist is not complete; ")
    assert result.err.endswith(" must be in D.\n")


def test_train(run: Run, library: Library) -> None:
    library.replace("pipeline.train_suite", [{"model": "lenet", "accuracy": 0.5}])
    assert bench(run, "train").data == [{"model": "lenet", "accuracy": 0.5}]
    args, keywords = library.calls["train_suite"]
    assert args == (get_suite("mnist"), Path("D"), Path("O"))
    assert keywords == {**TRAINED, "max_epochs": 7, "options": Options(imbalance="first-ten", limit=9)}


def test_logits(run: Run, library: Library, tmp_path: Path) -> None:
    (tmp_path / "source.npz").touch()
    library.replace("pipeline.extract_logits", [tmp_path])
    assert bench(run, "logits").data == [{"folder": str(tmp_path), "files": 1}]
    args, keywords = library.calls["extract_logits"]
    assert args == (get_suite("mnist"), Path("D"), Path("O"))
    assert keywords == {**TRAINED, "options": ALL_OPTIONS}


def test_run(run: Run, library: Library) -> None:
    library.replace("experiments.run_experiment", ["a row"])
    library.replace("records.band_widths", {"mnist": "bands"})
    library.replace("records.record", Path("O/measured.json"))
    library.replace("records.summarise", {"mnist": {"all": {"ac": {"error": 0.25}}}})
    assert bench(run, "run").data == [{"variant": "ac", "error": 0.25}]
    args, keywords = library.calls["run_experiment"]
    assert args == (get_suite("mnist"), "alpha", Path("D"), Path("O"))
    assert keywords == {"methods": ["ac", "doc"], "models": ["lenet", "mlp"], "targets": ["usps"], "seeds": [3, 4]}
    assert library.calls["band_widths"] == ((get_suite("mnist"), Path("D"), Path("O")), {})
    assert library.calls["record"] == ((Path("O"), "alpha", ["a row"]), {"bands": {"mnist": "bands"}})


def put_table(library: Library) -> None:
    """Let the table of results be an empty one."""
    from leadline.results.render import Document

    library.replace("records.load_measured", "measured")
    library.replace("records.load_reported", "reported")
    library.replace("result_tables.result_document", Document({"a": 1}, [], []))


def test_reproduce(run: Run, library: Library) -> None:
    for place in ("pipeline.fetch_data", "pipeline.require_data", "pipeline.train_suite", "pipeline.extract_logits"):
        library.replace(place, None)
    library.replace("experiments.run_experiment", ["a row"])
    library.replace("records.band_widths", {"mnist": "bands"})
    library.replace("records.record", None)
    put_table(library)
    assert bench(run, "reproduce").data == {"a": 1}
    suite, shared = get_suite("mnist"), {"options": Options(limit=9), "seeds": [3, 4], "device": "cuda"}
    assert library.calls["require_data"] == ((suite, Path("D")), {})
    assert library.calls["train_suite"] == ((suite, Path("D"), Path("O")), {**shared, "max_epochs": 7})
    assert library.calls["extract_logits"] == ((suite, Path("D"), Path("O")), shared)
    assert library.calls["run_experiment"] == ((suite, "main", Path("D"), Path("O")), {"seeds": [3, 4]})
    assert library.calls["record"] == ((Path("O"), "main", ["a row"]), {"bands": {"mnist": "bands"}})
    assert library.calls["result_document"][0][2] == ["mnist"]


def test_times(run: Run, library: Library) -> None:
    from leadline.bench.experiments import TRAINING_SIZES, TrainingTime

    sizes = {size.dataset: size for size in TRAINING_SIZES}
    library.replace("experiments.time_training", TrainingTime(**vars(sizes["MNIST"]), epochs=7, seconds=1.0,
                                                             seconds_per_epoch=1 / 7))  # fmt: skip
    library.replace("records.record", None)
    assert [row["epochs"] for row in bench(run, "times").data] == [7, 7]
    assert library.calls["time_training"] == ((sizes["Office-31"],), {"max_epochs": 7})
    assert library.calls["record"][0] == (Path("O"),)
    assert run("bench", "times", "--datasets", "MNIST,x").error.startswith("--datasets must be among CIFAR10, ")


def test_table(run: Run, library: Library) -> None:
    put_table(library)
    assert bench(run, "table").data == {"a": 1}
    assert library.calls["load_measured"] == ((Path("O"),), {})
    assert library.calls["load_reported"] == ((Path("R"),), {})
    assert library.calls["result_document"] == (("measured", "reported", ["mnist", "cifar10"]), {})


def test_figures(run: Run, library: Library) -> None:
    library.replace("figures.draw_figures", [Path("P/a.png")])
    assert bench(run, "figures").data == [{"figure": "P/a.png"}]
    assert library.calls["draw_figures"] == ((Path("O"), Path("P")), {"kind": "png"})
