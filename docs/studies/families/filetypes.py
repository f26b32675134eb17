"""Family `filetypes`: what kind of file some bytes are, as magika sees it.

    python docs/studies/families/filetypes.py --out LOGITS [--cache FOLDER]

Needs magika 1.0.3, onnx, onnxruntime, scikit-learn and pip. Fetches some 145 MB from a Debian mirror, 75 MB from PyPI
and 35 MB from npm.

Data: text files of free software, each under the licence of its project. Training and source ("home"): upstream
archives of the Debian 12 source packages in HOME_SOURCES and the packages in HOME_PACKAGES; other projects: the source
packages in ELSEWHERE, wheels from PyPI and packages from npm. The label is magika's type for the ending of the file's
name (TYPES); a .h file counts as C++ where the project has C++ files.

Classes are the types with at least 60 distinct files at home; no more than 300 of a type are taken from any origin.
Files fall to training, source and targets at random.

Models: magika's network (Apache-2.0, in the package), with the logits under its softmax restricted to the classes;
logistic regression and a small network on byte n-grams of the same 2,048 bytes, trained at home.

Shifts: the first 200 bytes, a middle part, the last 300 bytes; comments stripped, one line, upper case, quoted as in
mail; bytes overwritten, UTF-16; class frequencies drawn anew, a third of the classes; other projects of Debian, PyPI,
npm.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from common import arguments, write
from downloads import debian_packages, debian_sources, files_in, from_npm, from_pypi
from scipy.sparse import csr_matrix
from shifts import label_shift, some_rows, third_of_classes
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TRAIN, SOURCE, TARGET = 4_000, 2_500, 1_500
SMALLEST_CLASS, LARGEST_CLASS = 60, 300
SMALLEST_FILE, LARGEST_FILE = 32, 200_000
HOME_SOURCES = (
    "dokuwiki", "elixir-lang", "fish", "fmtlib", "ghdl", "gnome-calculator", "gnome-shell",
    "golang-github-gin-gonic-gin", "golang-github-spf13-cobra", "groovy", "haskell-aeson", "haskell-lens", "htop",
    "iverilog", "leveldb", "libcommons-lang3-java", "libmojolicious-perl", "libuv1", "libwww-perl",
    "lua5.4", "lwt", "lxml", "meson", "mosquitto", "nasm", "nunit", "ocaml-dune", "php-twig", "protobuf", "puma",
    "r-cran-dplyr", "r-cran-ggplot2", "redmine", "rust-clap", "rust-ripgrep", "scala", "tmux", "tracker", "zlib",
)  # fmt: skip
HOME_PACKAGES = (
    "docutils-doc", "elpa-magit", "erlang-src", "icingaweb2-module-director", "jekyll", "libjs-bootstrap4",
    "librust-regex-dev", "librust-tokio-dev", "node-bootstrap-sass", "octave-image", "octave-signal",
    "octave-statistics", "postgresql-15-postgis-3-scripts", "prosody", "python3-flask", "ruby-rack", "slime",
    "tcllib",
)  # fmt: skip
ELSEWHERE = (
    "bison", "catch2", "cppcheck", "curl", "guava-libraries", "lapack", "menhir", "nautilus", "nginx", "phpunit",
    "rabbitmq-server", "rails", "re2", "xmonad", "yosys", "zsh",
)  # fmt: skip
PYPI = {
    "Django": "5.2.19", "Sphinx": "9.0.4", "ansible-core": "2.19.14", "bokeh": "3.9.2", "jupyterlab": "4.6.6",
    "mkdocs-material": "9.8.1", "numpy": "2.4.6", "scikit-learn": "1.9.1", "wagtail": "8.0.1",
}  # fmt: skip
NPM = {
    "better-sqlite3": "9.4.3", "bootstrap": "5.3.3", "bootstrap-icons": "1.11.3", "bulma": "0.9.4",
    "cordova-android": "12.0.1", "cordova-ios": "7.0.1", "date-fns": "3.6.0", "google-proto-files": "4.2.0",
    "highlight.js": "11.9.0", "jquery-ui": "1.13.2", "less": "4.2.0", "mathjs": "12.4.1", "node-gyp": "10.0.1",
    "npm": "10.5.0", "protobufjs": "7.2.6", "rxjs": "7.8.1", "svelte": "4.2.12", "uswds": "2.14.0", "vue": "3.4.21",
}  # fmt: skip
TYPES = {
    ".asm": "asm", ".bat": "batch", ".c": "c", ".cc": "cpp", ".clj": "clojure", ".cmake": "cmake", ".cpp": "cpp",
    ".cs": "cs", ".css": "css", ".csv": "csv", ".el": "lisp", ".erb": "erb", ".erl": "erlang", ".ex": "elixir",
    ".exs": "elixir", ".f": "fortran", ".f90": "fortran", ".go": "go", ".groovy": "groovy", ".h": "c", ".hpp":
    "cpp", ".hrl": "erlang", ".hs": "haskell", ".htm": "html", ".html": "html", ".ini": "ini", ".java": "java",
    ".js": "javascript", ".json": "json", ".lisp": "lisp", ".lua": "lua", ".m4": "m4", ".md": "markdown", ".mk":
    "makefile", ".ml": "ocaml", ".mli": "ocaml", ".php": "php", ".pl": "perl", ".pm": "perl", ".po": "po", ".proto":
    "proto", ".ps1": "powershell", ".py": "python", ".r": "r", ".rb": "ruby", ".rs": "rust", ".rst": "rst",
    ".scala": "scala", ".scss": "scss", ".sh": "shell", ".sql": "sql", ".svg": "svg", ".tcl": "tcl", ".toml":
    "toml", ".ts": "typescript", ".twig": "twig", ".txt": "txt", ".v": "verilog", ".vhd": "vhdl", ".vhdl": "vhdl",
    ".xml": "xml", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
NAMES = {"CMakeLists.txt": "cmake", "Makefile": "makefile", "Rakefile": "ruby", "configure.ac": "m4"}
MATLAB = "octave-"  # the only projects here whose .m files are not Objective-C

_SLASHES = rb"/\*.*?\*/|(?<![:\w\"'])//[^\n]*"
_COMMENTS = {
    _SLASHES: (
        "c", "cpp", "cs", "css", "go", "groovy", "java", "javascript", "php", "proto", "rust", "scala", "scss",
        "typescript", "verilog",
    ),
    rb"(?m)^\s*#[^\n]*": (
        "cmake", "elixir", "makefile", "perl", "po", "powershell", "python", "r", "ruby", "shell", "tcl", "toml",
        "yaml",
    ),
    rb"<!--.*?-->": ("html", "markdown", "svg", "xml"),
    rb"\{-.*?-\}|--[^\n]*": ("haskell", "lua", "sql", "vhdl"),
    rb"\(\*.*?\*\)": ("ocaml",),
    rb"(?m);[^\n]*": ("asm", "clojure", "ini", "lisp"),
    rb"(?m)^\s*%[^\n]*": ("erlang", "matlab"),
    rb"(?m)^[c*!][^\n]*|![^\n]*": ("fortran",),
    rb"(?m)^\s*dnl[^\n]*": ("m4",),
}  # fmt: skip
COMMENTS = {kind: re.compile(pattern, re.DOTALL) for pattern, kinds in _COMMENTS.items() for kind in kinds}


class File(NamedTuple):
    kind: str
    content: bytes


def kind_of(path: str, project: str, has_cpp: bool) -> str | None:
    """Return magika's type for a file of this name in this project, or None."""
    place = PurePosixPath(path)
    ending = place.suffix.lower()
    if ending == ".m" and project.startswith(MATLAB):
        return "matlab"
    if ending == ".h" and has_cpp:
        return "cpp"
    return NAMES.get(place.name, TYPES.get(ending))


def gather(projects: Iterable[tuple[str, Path]], rng: np.random.Generator) -> list[File]:
    """Return the distinct files of known types in the packages in random order, no more than 300 of a type."""
    found: dict[bytes, str] = {}
    for name, package in projects:
        files = [
            (path, content) for path, content in files_in(package) if SMALLEST_FILE <= len(content) <= LARGEST_FILE
        ]
        has_cpp = any(PurePosixPath(path).suffix in {".cc", ".cpp", ".hpp"} for path, _ in files)
        for path, content in files:
            kind = kind_of(path, name, has_cpp)
            if kind and len(content.strip()) >= SMALLEST_FILE and b"\0" not in content:
                found.setdefault(content, kind)
    by_kind: dict[str, list[File]] = {}
    for content, kind in found.items():
        by_kind.setdefault(kind, []).append(File(kind, content))
    kept = [files[i] for files in by_kind.values() for i in some_rows(len(files), LARGEST_CLASS, rng)]
    return [kept[i] for i in rng.permutation(len(kept))]


def middle(content: bytes) -> bytes:
    """Keep the third in the middle."""
    return content[len(content) // 3 : 2 * len(content) // 3]


def overwritten(content: bytes, rate: float, rng: np.random.Generator) -> bytes:
    """Put random bytes in the place of a share of the bytes."""
    signs = np.frombuffer(content, dtype=np.uint8).copy()
    hit = rng.random(len(signs)) < rate
    signs[hit] = rng.integers(256, size=hit.sum(), dtype=np.uint8)
    return signs.tobytes()


def utf16(content: bytes) -> bytes:
    """Return the same text as some programs of Windows store it."""
    return content.decode("utf-8", errors="replace").encode("utf-16")


def quoted(content: bytes) -> bytes:
    """Begin every line with the mark of a quotation in a mail."""
    return b"\n".join(b"> " + line for line in content.split(b"\n"))


def without_comments(file: File) -> bytes:
    """Leave out the comments."""
    return COMMENTS[file.kind].sub(b"", file.content)


def make_targets(pool: list[File], others: dict[str, list[File]]) -> dict[str, list[File]]:
    """Return the files of each target."""
    rng = np.random.default_rng(1)
    labels = np.array([file.kind for file in pool])
    targets = {}

    def add(name: str, files: list[File], change: Callable[[bytes], bytes] = bytes) -> None:
        chosen = [files[i] for i in some_rows(len(files), TARGET, rng)]
        targets[name] = [File(file.kind, change(file.content)) for file in chosen]

    add("clean", pool)
    add("first_200", pool, lambda content: content[:200])
    add("middle", [file for file in pool if len(file.content) >= 600], middle)
    add("last_300", pool, lambda content: content[-300:])
    add("one_line", pool, lambda content: b" ".join(content.split()))
    add("upper", pool, bytes.upper)
    add("quoted", pool, quoted)
    add("overwritten_02", pool, lambda content: overwritten(content, 0.02, rng))
    add("overwritten_15", pool, lambda content: overwritten(content, 0.15, rng))
    add("utf16", pool, utf16)
    stripped = [File(file.kind, without_comments(file)) for file in pool if file.kind in COMMENTS]
    add("no_comments", [file for file in stripped if len(file.content.strip()) >= SMALLEST_FILE])
    for name in ("labelshift_a", "labelshift_b"):
        add(name, [pool[i] for i in label_shift(labels, TARGET, rng)])
    add("labelshift_first_200", [pool[i] for i in label_shift(labels, TARGET, rng)], lambda content: content[:200])
    add("third", [pool[i] for i in third_of_classes(labels, TARGET, rng)])
    for name, files in others.items():
        add(name, files)
    return targets


def windows(content: bytes) -> tuple[bytes, bytes]:
    """Return what magika looks at: 1,024 bytes from the first and the last that are not blank."""
    return content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]


class Magika:
    """The network in the package magika, with its logits in place of its probabilities."""

    def __init__(self, kinds: list[str]) -> None:
        import magika

        folder = next((Path(magika.__file__).parent / "models").glob("standard_*"))
        network = onnx.load(folder / "model.onnx")
        producer = {name: node for node in network.graph.node for name in node.output}
        softmax = producer[network.graph.output[0].name]  # exp(x - max) / sum: the logits are what is under exp
        exponential = producer[softmax.input[0]]
        self._logits = exponential.input[0]
        network.graph.output.append(onnx.ValueInfoProto(name=self._logits))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(network.SerializeToString(), options)
        settings = json.loads((folder / "config.min.json").read_text())
        self._padding = settings["padding_token"]
        self._columns = [settings["target_labels_space"].index(kind) for kind in kinds]

    def __call__(self, contents: list[bytes]) -> np.ndarray:
        """Return the logits of the classes."""
        rows = np.full((len(contents), 2048), self._padding, dtype=np.int32)
        for row, content in zip(rows, contents, strict=True):
            first, last = windows(content)
            row[: len(first)] = list(first)
            row[len(row) - len(last) :] = list(last)
        name = self._session.get_inputs()[0].name
        batches = np.array_split(rows, len(rows) // 4 + 1)  # few rows stay in the processor's cache
        return np.concatenate([self._session.run([self._logits], {name: b})[0] for b in batches])[:, self._columns]


def seen(content: bytes) -> str:
    """Return the windows of a file with one sign for each byte."""
    return "\n".join(part.decode("latin-1") for part in windows(content))


def trained_models(features: csr_matrix, labels: np.ndarray) -> dict[str, Callable[[csr_matrix], np.ndarray]]:
    """Return models on byte n-grams, each a function from features to logits."""
    reduced = make_pipeline(TruncatedSVD(120, random_state=0), StandardScaler())
    network = MLPClassifier((128,), alpha=1e-2, early_stopping=True, max_iter=80, random_state=0)
    network.fit(reduced.fit_transform(features), labels)
    regression = LogisticRegression(C=10, max_iter=60).fit(features, labels)
    return {
        "bytes_mlp": lambda features: network.predict_log_proba(reduced.transform(features)),
        "bytes_lr": regression.decision_function,
    }


def split(cache: Path) -> tuple[list[str], list[File], dict[str, list[File]]]:
    """Return the types, the files of training, and those of source and targets by name."""
    rng = np.random.default_rng(0)
    home = gather((debian_sources(HOME_SOURCES, cache) | debian_packages(HOME_PACKAGES, cache)).items(), rng)
    others = {
        "projects": debian_sources(ELSEWHERE, cache).items(),
        "pypi": [(name, from_pypi(name, version, cache)) for name, version in PYPI.items()],
        "npm": [(name, from_npm(name, version, cache)) for name, version in NPM.items()],
    }
    counts = Counter(file.kind for file in home)
    kinds = sorted(kind for kind, count in counts.items() if count >= SMALLEST_CLASS)
    home = [file for file in home if file.kind in kinds]
    train, source, pool = home[:TRAIN], home[TRAIN : TRAIN + SOURCE], home[TRAIN + SOURCE :]
    elsewhere = {name: [f for f in gather(packages, rng) if f.kind in kinds] for name, packages in others.items()}
    targets = make_targets(pool, elsewhere)
    return kinds, train, {"source": source, **{f"target_{name}": files for name, files in targets.items()}}


def main() -> None:
    options = arguments(__doc__)
    kinds, train, parts = split(options.cache)
    network = Magika(kinds)
    pieces = TfidfVectorizer(
        analyzer="char", lowercase=False, ngram_range=(1, 3), min_df=3, sublinear_tf=True, max_features=15_000
    )
    features = pieces.fit_transform(seen(file.content) for file in train)
    trained = trained_models(features, np.array([kinds.index(file.kind) for file in train]))
    for name, files in parts.items():
        contents, labels = [file.content for file in files], [kinds.index(file.kind) for file in files]
        write(options.out, "filetypes", "magika", name, network(contents), labels)
        features = pieces.transform(map(seen, contents))
        for model, logits_of in trained.items():
            write(options.out, "filetypes", model, name, logits_of(features), labels)


if __name__ == "__main__":
    main()
