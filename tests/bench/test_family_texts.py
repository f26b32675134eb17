"""The scripts that build families of logits from texts and files: layout, archives, and what each shift does."""

from __future__ import annotations

import importlib
import io
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import leadline as ll

pytest.importorskip("sklearn")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
mofile = pytest.importorskip("babel.messages.mofile")
catalogs = pytest.importorskip("babel.messages.catalog")

FAMILIES = Path(__file__).parents[2] / "docs/studies/families"
TEXT = "A small library, written in C, that reads and writes 16 kinds of pictures. " * 40


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FAMILIES))


def script(name: str) -> ModuleType:
    return importlib.import_module(name)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_what_is_written_is_what_leadline_reads(tmp_path: Path) -> None:
    logits = rng().normal(size=(6, 3))
    script("common").write(tmp_path, "family", "model", "target_x", logits, [0, 1, 2, 0, 1, 2])
    outputs = ll.read_outputs(tmp_path / "family/model/target_x.npz")
    assert outputs.logits.dtype == np.float32
    np.testing.assert_allclose(outputs.logits, logits, rtol=1e-6)
    np.testing.assert_array_equal(outputs.labels, [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("value", "labels"), [(np.nan, [0, 1]), (-np.inf, [0, 1]), (0.0, [0, 1, 1])])
def test_logits_that_are_not_finite_or_not_one_for_each_label_are_refused(
    tmp_path: Path, value: float, labels: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"family/model/source needs finite logits, a row for each of the \d labels"):
        script("common").write(tmp_path, "family", "model", "source", [[0.0, 1.0], [value, 0.0]], labels)


def test_typos_hit_the_share_of_letters_that_was_asked_for_and_nothing_else() -> None:
    typos = script("shifts").typos
    assert typos(TEXT, 0.0, rng()) == TEXT
    assert typos("16 + 25 = 41!", 1.0, rng()) == "16 + 25 = 41!"
    draws, letters = rng(), "abcdefghij" * 500
    hit = np.mean([typos(letter, 0.1, draws) != letter for letter in letters])
    assert 0.06 < hit < 0.09  # a letter alone cannot be swapped: three quarters of 0.1


def test_words_are_dropped_in_the_share_that_was_asked_for_and_never_all() -> None:
    drop_words = script("shifts").drop_words
    kept = drop_words(TEXT, 0.7, rng()).split()
    assert 0.25 < len(kept) / len(TEXT.split()) < 0.35
    words = iter(TEXT.split())
    assert all(word in words for word in kept)  # in the order of the text
    assert drop_words("word", 1.0, rng()) == "word"


def test_joined_words_lose_spaces_only() -> None:
    joined = script("shifts").join_words(TEXT, 0.3, rng())
    assert joined.replace(" ", "") == TEXT.replace(" ", "")
    assert 0.65 < joined.count(" ") / (len(TEXT.split()) - 1) < 0.75


def test_label_shift_draws_each_row_once_and_other_frequencies() -> None:
    labels = rng().integers(8, size=4000)
    rows = script("shifts").label_shift(labels, 1000, rng())
    assert len(np.unique(rows)) == len(rows) <= 1000
    before, after = (np.bincount(part, minlength=8) / len(part) for part in (labels, labels[rows]))
    assert np.abs(before - after).sum() > 0.3
    third = script("shifts").third_of_classes(labels, 500, rng())
    assert len(np.unique(labels[third])) == 2
    assert len(np.unique(third)) == 500


def test_stanzas_and_descriptions_of_the_archive() -> None:
    lists = script("debian_lists")
    text = "Package: zlib\nSection: libs\nTag: a,\n b\n\nPackage: tmux\nDescription-en: many\n terminals\n .\n in one\n"
    first, second = lists.stanzas(text)
    assert first == {"Package": "zlib", "Section": "libs", "Tag": "a,\n b"}
    assert lists.plain(second["Description-en"]) == "many. terminals in one"


def test_a_source_package_falls_on_one_side_and_counts_eight_times_at_most() -> None:
    sections = script("sections")
    rows = [
        sections.Package(f"p{i}", f"origin{i % 50 if i % 2 else 0}", "Somebody", "libs", f"text {i}", str(i))
        for i in range(1000)
    ]
    parts = sections.split_by_origin(rows, (60, 60, 1000), rng())
    sides = [{row.origin for row in part} for part in parts]
    assert all(sides)
    assert sum(map(len, sides)) == len(set().union(*sides))
    counts = [sum(row.origin == origin for part in parts for row in part) for origin in set().union(*sides)]
    assert max(counts) == sections.LARGEST_SOURCE_PACKAGE


@pytest.mark.parametrize(
    ("name", "maintainer", "domain"),
    [
        ("python3-yaml", "Somebody <a@b>", "names_python3"),
        ("python3-biopython", "Debian Med Packaging Team <a@b>", "team_med"),
        ("python-doc", "Somebody <a@b>", None),
    ],
)
def test_domains_are_teams_first_and_then_beginnings_of_names(name: str, maintainer: str, domain: str | None) -> None:
    assert script("sections").Package(name, name, maintainer, "python", "", "").domain == domain


def test_messages_of_a_compiled_catalog() -> None:
    catalog = catalogs.Catalog(locale="de")
    catalog.add("_Open", "Ö_ffnen", context="menu")
    catalog.add(("%d file", "%d files"), ("%d Datei", "%d Dateien"))
    compiled = io.BytesIO()
    mofile.write_mo(compiled, catalog)
    languages = script("languages")
    assert dict(languages.entries(compiled.getvalue())) == {"_Open": "Ö_ffnen", "%d file": "%d Datei"}
    assert languages.readable("Ö_ffnen &als\n…") == "Öffnen als …"
    assert [languages.language_of(name) for name in ("pt_BR", "ca@valencia", "nb", "kab")] == ["pt", "ca", "no", "kab"]


def test_shifts_of_messages() -> None:
    languages = script("languages")
    assert languages.without_accents("Größe, český") == "Große, cesky"
    assert languages.half_english(languages.Message("Open file", "de", "Datei öffnen")) == "Datei   file"
    marked = languages.with_markup("Datei öffnen jetzt", 1.0, rng()).split()
    assert marked[1::2] == ["Datei", "öffnen", "jetzt"]
    assert set(marked[::2]) <= set(languages.MARKUP)


def test_all_translations_of_a_message_fall_on_one_side() -> None:
    languages = script("languages")
    rows = [languages.Message(f"m{i}", code, f"{code} {i}") for i in range(500) for code in ("de", "fr")]
    sides = [{row.english for row in part} for part in languages.split(rows, rng())]
    assert [len(side) for side in sides] == [200, 100, 200]
    assert len(set().union(*sides)) == 500


def test_scores_without_any_known_n_gram_become_equal_logits() -> None:
    table = np.array([[-3.4e38, -3.4e38], [-20.0, -15.0]])
    np.testing.assert_array_equal(script("languages").less_largest(table), [[0, 0], [-5, 0]])


def test_types_of_files() -> None:
    kind_of = script("filetypes").kind_of
    assert kind_of("a/CMakeLists.txt", "zlib", False) == "cmake"
    assert kind_of("a/notes.TXT", "zlib", False) == "txt"
    assert (kind_of("a/b.h", "zlib", False), kind_of("a/b.h", "re2", True)) == ("c", "cpp")
    assert (kind_of("a/b.m", "octave-signal", False), kind_of("a/b.m", "gnustep", False)) == ("matlab", None)


@pytest.mark.parametrize(
    ("kind", "content", "left"),
    [
        ("c", b"int a; /* one\ntwo */ int b; // three\nchar *u;", b"int a;  int b; \nchar *u;"),
        ("javascript", b"u = 'http://x.org' // where\n", b"u = 'http://x.org' \n"),
        ("python", b"#!/bin/x\na = '#1'\n    # why\nb\n", b"\na = '#1'\n\nb\n"),
        ("html", b"<p>a<!-- b\nc --></p>", b"<p>a</p>"),
        ("haskell", b"a {- b\nc -} = 1 -- d\n", b"a  = 1 \n"),
        ("lisp", b"(a) ; b\n(c)", b"(a) \n(c)"),
    ],
)
def test_comments_are_stripped(kind: str, content: bytes, left: bytes) -> None:
    filetypes = script("filetypes")
    assert filetypes.without_comments(filetypes.File(kind, content)) == left


def test_shifts_of_files() -> None:
    filetypes = script("filetypes")
    content = bytes(range(33, 123)) * 100
    assert filetypes.middle(content) == content[3000:6000]
    assert filetypes.quoted(b"a\nb") == b"> a\n> b"
    assert filetypes.utf16("größer".encode()).decode("utf-16") == "größer"
    changed = np.frombuffer(filetypes.overwritten(content, 0.15, rng()), dtype=np.uint8)
    assert 0.13 < np.mean(changed != np.frombuffer(content, dtype=np.uint8)) < 0.17
    assert filetypes.windows(b"\n  " + content + b" \n") == (content[:1024], content[-1024:])
    assert filetypes.windows(b" ab ") == (b"ab ", b" ab")


def tar_of(files: dict[str, bytes], compression: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_files_come_out_of_every_kind_of_package(tmp_path: Path) -> None:
    files = {"a/b.py": b"print()", "c.txt": b"odd"}
    wheel, node, debian = (tmp_path / f"x.{ending}" for ending in ("whl", "tgz", "deb"))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.mkdir("a")
        for name, content in files.items():
            archive.writestr(name, content)
    node.write_bytes(tar_of(files, "gz"))
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": tar_of(files, "xz")}
    packed = b"!<arch>\n"
    for name, content in members.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        packed += content + b"\n" * (len(content) % 2)
    debian.write_bytes(packed)
    for package in (wheel, node, debian):
        assert dict(script("downloads").files_in(package)) == files


def test_files_are_gathered_once_each_and_by_type(tmp_path: Path) -> None:
    filetypes = script("filetypes")
    long = b"x = 1  # a line that is long enough to count\n"
    files = {"a.py": long, "b.py": long, "c.h": long + b"c", "d.cc": long + b"d", "e.bin": long + b"e", "f.py": b"x"}
    package = tmp_path / "x.tgz"
    package.write_bytes(tar_of({**files, "g.py": long + b"\0"}, "gz"))
    found = filetypes.gather([("x", package)], rng())
    assert sorted(found) == [("cpp", long + b"c"), ("cpp", long + b"d"), ("python", long)]
