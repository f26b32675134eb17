"""Every loader on small files of exactly the official layout."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leadline.bench.corruptions import CORRUPTIONS, corrupt
from leadline.bench.datasets import SUITES, cifar, folders, get_suite, mnist, reviews
from leadline.bench.inputs import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    ImageArray,
    ImageFiles,
    Options,
    Split,
    Texts,
    holdout,
    imbalanced_rows,
)
from leadline.errors import InputError
from official_files import (
    write_amazon_wilds,
    write_cifar_binary,
    write_cifar_shifts,
    write_corruption,
    write_image,
    write_imagenet,
    write_mnist,
    write_office31,
    write_waterbirds,
)

ALL = Options()


def test_cifar10_binary_with_all_its_targets(tmp_path: Path, rng: np.random.Generator) -> None:
    write_cifar_binary(tmp_path, rng)
    write_cifar_shifts(tmp_path, rng)
    corrupted = write_corruption(tmp_path, rng, "fog")
    task = cifar.load_cifar10(tmp_path, ALL, "resnet18", 0)
    assert task.train is not None
    counts = np.bincount(np.concatenate([task.train.labels, task.source.labels]))
    np.testing.assert_array_equal(counts, np.round(30 * np.linspace(1 / 3, 1, 10)))
    assert sorted(task.targets) == ["cifar-10.1", "cifar-10.2", *(f"fog_{severity}" for severity in range(1, 6))]
    assert len(task.targets["cifar-10.1"]()) == 20
    assert len(cifar.load_cifar10(tmp_path, Options(cifar101="v4"), "", 0).targets["cifar-10.1"]()) == 30
    assert len(task.targets["cifar-10.2"]()) == 30
    third = task.targets["fog_3"]()
    assert isinstance(third.inputs, ImageArray)
    np.testing.assert_array_equal(third.inputs.pixels, corrupted[20:30])
    np.testing.assert_array_equal(third.labels, np.arange(10))


def test_cifar10_remapped_has_the_same_images_and_the_groups_of_their_classes(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write_cifar_binary(tmp_path, rng, n=40)
    write_cifar_shifts(tmp_path, rng)
    group_of = np.array([0, 0, 1, 2, 1, 2, 1, 1, 0, 0])  # vehicles, wild animals, pets
    load, load_three = SUITES["cifar10"].load, SUITES["cifar10-three"].load
    assert load is not None
    assert load_three is not None
    plain, three = (found(tmp_path, Options(), "resnet18", 0) for found in (load, load_three))
    pairs = {"train": (plain.training, three.training), "source": (plain.source, three.source)}
    pairs |= {name: (plain.targets[name](), three.targets[name]()) for name in ("cifar-10.1", "fog_3")}
    for before, after in pairs.values():
        np.testing.assert_array_equal(after.labels, group_of[before.labels])
        rows = np.arange(len(before))
        np.testing.assert_array_equal(after.inputs.batch(rows), before.inputs.batch(rows))
    assert set(three.targets) == set(plain.targets)


def test_cifar10_without_its_successors_and_with_other_places_of_them(tmp_path: Path, rng: np.random.Generator) -> None:
    write_cifar_binary(tmp_path, rng)
    write_corruption(tmp_path, rng, "snow")
    suite = SUITES["cifar10"]
    assert suite.missing(tmp_path) == []
    assert suite.left_out(tmp_path) == ["cifar-10.1 or CIFAR-10.1/datasets", "cifar-10.2 or CIFAR-10.2"]
    assert list(cifar.load_cifar10(tmp_path, ALL, "", 0).targets) == [f"snow_{severity}" for severity in range(1, 6)]
    write_cifar_shifts(tmp_path, rng)
    (tmp_path / "CIFAR-10.1").mkdir()
    (tmp_path / "cifar-10.1").rename(tmp_path / "CIFAR-10.1/datasets")
    assert suite.left_out(tmp_path) == []
    assert len(cifar.load_cifar10(tmp_path, ALL, "", 0).targets["cifar-10.1"]()) == 20
    (tmp_path / "CIFAR-10-C/snow.npy").unlink()
    with pytest.raises(InputError, match=r"must hold the official files, such as fog\.npy"):
        cifar.load_cifar10(tmp_path, ALL, "", 0)


def test_cifar10_planes_become_channels(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    row = np.concatenate([[7], np.full(1024, 10), np.full(1024, 20), np.full(1024, 30)]).astype(np.uint8)
    row[1 + 5] = 99  # red, row 0, column 5
    row.tofile(folder / "test_batch.bin")
    split = cifar.read_cifar(tmp_path, 10, "test")
    assert isinstance(split.inputs, ImageArray)
    assert split.labels.tolist() == [7]
    np.testing.assert_array_equal(split.inputs.pixels[0, 0, 5], [99, 20, 30])
    np.testing.assert_array_equal(split.inputs.pixels[0, 5, 0], [10, 20, 30])


def test_generated_corruptions_without_the_official_files(tmp_path: Path, rng: np.random.Generator) -> None:
    write_cifar_binary(tmp_path, rng)
    targets = cifar.corrupted(tmp_path, 10, Options(limit=7))
    assert list(targets)[::5] == [f"{name}_1" for name in CORRUPTIONS]
    clean, made = Options(limit=7).limited(cifar.read_cifar(tmp_path, 10, "test")), targets["contrast_2"]()
    assert isinstance(clean.inputs, ImageArray)
    assert isinstance(made.inputs, ImageArray)
    np.testing.assert_array_equal(made.labels, clean.labels)
    np.testing.assert_array_equal(made.inputs.pixels, corrupt(clean.inputs.pixels, "contrast", 2))


def python_batch(labels: bytes, n: int, protocol: int = 2) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (n, 3072), dtype=np.uint8)
    return pickle.dumps({b"data": pixels, labels: [i % 10 for i in range(n)], b"batch_label": b"x"}, protocol)


def test_python_layout_of_cifar100_and_the_numpy_1_name(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    batch = python_batch(b"fine_labels", 40)
    (folder / "train").write_bytes(batch)
    (folder / "test").write_bytes(batch.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    task = cifar.load_cifar100(tmp_path, ALL, "resnet18", 0)
    assert task.train is not None
    assert len(cifar.read_cifar(tmp_path, 100, "test")) == 40
    few = cifar.load_cifar100(tmp_path, Options(imbalance="first-ten"), "resnet18", 0)
    assert few.train is not None
    assert len(few.train) + len(few.source) != len(task.train) + len(task.source)


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (print, ("this must not run",))

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": Evil(), b"labels": []}))
    with pytest.raises(InputError, match=r"arrays only; got .*print"):
        cifar.read_cifar(tmp_path, 10, "test")


def test_a_damaged_pickle_gets_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    whole = python_batch(b"labels", 2)
    damaged = [whole[:length] for length in range(0, len(whole), 97)]
    damaged += [whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in range(1, 120)]
    damaged.append(pickle.dumps({b"data": np.zeros((2, 5), np.uint8), b"labels": [0, 1]}))
    damaged.append(pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]}))
    refused: list[str] = []
    for content in damaged:
        (folder / "test_batch").write_bytes(content)
        try:
            cifar.read_cifar(tmp_path, 10, "test")  # nothing but an InputError may come out, whatever is wrong
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 0.9 * len(damaged)  # a wrong byte in an unused key does no harm
    assert not any("\n" in message for message in refused)
    (folder / "test_batch").write_bytes(whole[:500])
    with pytest.raises(InputError, match=r"test_batch must be a CIFAR pickle; it is damaged .* Get it again"):
        cifar.read_cifar(tmp_path, 10, "test")


def test_missing_and_broken_cifar_files_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither exists"):
        cifar.read_cifar(tmp_path, 10, "test")
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin/test_batch.bin").write_bytes(b"12345")
    with pytest.raises(InputError, match="rows of 3073 bytes; got 5"):
        cifar.read_cifar(tmp_path, 10, "test")
    with pytest.raises(InputError, match="does not exist"):
        cifar.read_cifar101(tmp_path, "v6")


def test_mnist_and_mnist_m(tmp_path: Path, rng: np.random.Generator) -> None:
    write_mnist(tmp_path, rng)
    task = mnist.load_mnist(tmp_path, ALL, "mnist-cnn", 0)
    assert task.train is not None
    counts = np.bincount(task.train.labels) + np.bincount(task.source.labels)
    assert counts[0] == 2
    assert counts[9] == 200
    assert (np.diff(counts) > 0).all()
    target = task.targets["mnist-m"]()
    assert target.inputs.batch(np.arange(3)).shape == (3, 3, 28, 28)
    np.testing.assert_array_equal(target.labels, np.arange(60) % 10)
    (tmp_path / "MNIST/raw").mkdir(parents=True)  # unpacked, where torchvision puts it
    for path in sorted((tmp_path / "mnist").glob("train-*.gz")):
        (tmp_path / "MNIST/raw" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    again = mnist.load_mnist(tmp_path, ALL, "mnist-cnn", 0)
    np.testing.assert_array_equal(again.source.labels, task.source.labels)
    (tmp_path / "mnist/short.gz").write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 5) + b"abc"))
    with pytest.raises(InputError, match="got 3"):
        mnist.read_idx(tmp_path / "mnist/short.gz")


def test_imagenet_classes_follow_the_sorted_ids_and_version_2_its_numbers(tmp_path: Path) -> None:
    write_imagenet(tmp_path)
    task = folders.load_imagenet(tmp_path, ALL, "alexnet", 0)
    assert isinstance(task.source.inputs, ImageFiles)
    found = zip(task.source.inputs.paths, task.source.labels.tolist(), strict=True)
    assert {path.parent.name: label for path, label in found} == {f"n{i:08d}": i for i in range(3)}
    np.testing.assert_array_equal(task.targets["imagenetv2"]().labels, [0, 1, 2])
    assert task.source.inputs.batch(np.arange(2)).shape == (2, 3, 224, 224)
    half = folders.load_imagenet(tmp_path, Options(imagenet_source="half"), "alexnet", 0)
    assert (len(half.source), len(half.targets["clean"]())) == (6, 6)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("part", ["imagenet/val", "imagenetv2-matched-frequency-format-val"])
def test_imagenet_with_too_few_or_too_many_classes_is_refused(tmp_path: Path, part: str, extra: bool) -> None:
    write_imagenet(tmp_path)
    if extra:
        (tmp_path / part / "lost+found").mkdir()
    else:
        sorted((tmp_path / part).iterdir())[-1].rmdir()
    wanted = rf"{part} must have 1000 class folders; got {1001 if extra else 999}\. Unpack it again"
    with pytest.raises(InputError, match=wanted):
        folders.load_imagenet(tmp_path, ALL, "alexnet", 0).targets["imagenetv2"]()


def test_imagenetv2_has_the_numbers_of_the_classes(tmp_path: Path) -> None:
    write_imagenet(tmp_path)
    folder = tmp_path / "imagenetv2-matched-frequency-format-val"
    (folder / "999").rename(folder / "1000")
    with pytest.raises(InputError, match="must have class folders 0 to 999; got other names"):
        folders.load_imagenet(tmp_path, ALL, "alexnet", 0).targets["imagenetv2"]()


@pytest.mark.parametrize(("model", "wanted"), [("efficientnet_b0", "BICUBIC"), ("mobilenet_v2", "BILINEAR")])
def test_images_are_resized_as_the_weights_want_it(
    tmp_path: Path, rng: np.random.Generator, model: str, wanted: str
) -> None:
    write_imagenet(tmp_path)
    picture = Image.fromarray(rng.integers(0, 256, (103, 150, 3), dtype=np.uint8))
    path = tmp_path / "imagenet/val/n00000000/ILSVRC2012_val_00000000.JPEG"
    picture.save(path)
    inputs = folders.load_imagenet(tmp_path, ALL, model, 0).source.inputs
    with Image.open(path) as file:  # 150 * 256 / 103 is 372.8
        large = file.convert("RGB").resize((372, 256), Image.Resampling[wanted])
    expected = np.asarray(large.crop((74, 16, 298, 240)), dtype=np.float32) / 255.0
    expected = (expected - np.array(IMAGENET_MEAN)) / np.array(IMAGENET_STD)
    np.testing.assert_allclose(inputs.batch(np.array([0]))[0], expected.transpose(2, 0, 1), atol=1e-5)


def test_waterbirds_splits(tmp_path: Path) -> None:
    write_waterbirds(tmp_path)
    task = folders.load_waterbirds(tmp_path, ALL, "resnet18-large", 0)
    assert task.train is not None
    assert (len(task.train), len(task.source), len(task.targets["test"]())) == (3, 3, 3)
    assert task.source.inputs.batch(np.arange(1)).shape == (1, 3, 224, 224)


def test_office31_shares_classes_over_domains(tmp_path: Path) -> None:
    write_office31(tmp_path)
    task = folders.load_office31(tmp_path, ALL, "resnet18-large", 0)
    assert task.train is not None
    assert (len(task.train), len(task.source)) == (12, 3)
    assert sorted(task.targets) == ["dslr", "webcam"]
    np.testing.assert_array_equal(task.targets["dslr"]().labels, np.repeat([0, 1, 2], 5))
    write_image(tmp_path / "office31/dslr/images/zebra/a.jpg", 1)
    with pytest.raises(InputError, match="classes of the source; got 'zebra'"):
        task.targets["dslr"]()


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_amazon_wilds_splits_and_quoted_texts(tmp_path: Path, version: str) -> None:
    texts = ['two\nlines, "quoted"', "plain", "", "later", "other", "unused"]
    write_amazon_wilds(tmp_path, texts, [0, 2, 0, 1, 3, -1], version=version)
    task = reviews.load_amazon_wilds(tmp_path, ALL, "distilbert", 0)
    assert task.train is not None
    assert isinstance(task.train.inputs, Texts)
    assert task.train.inputs.texts == (texts[0], "")
    assert task.train.labels.tolist() == [0, 2]
    assert task.source.inputs.batch(np.array([0])) == ["plain"]
    assert task.targets["subpop1"]().labels.tolist() == [3]
    assert task.targets["subpop2"]().labels.tolist() == [4]


def test_damaged_amazon_wilds_gets_one_line(tmp_path: Path) -> None:
    write_amazon_wilds(tmp_path, ["good", "bad"], [0, 2])
    table = tmp_path / "amazon_v2.1/reviews.csv"
    damaged = {b"": "Empty CSV", b"reviewText,overall\na,5\nb\n": "Expected 2 columns", b"a,b\n1,2\n": "reviewText"}
    for content, wrong in damaged.items():
        table.write_bytes(content)
        with pytest.raises(
            InputError, match=rf"reviews.csv must be a table with reviewText, overall.*{wrong}"
        ) as raised:
            reviews.load_amazon_wilds(tmp_path, ALL, "distilbert", 0)
        assert "\n" not in str(raised.value)
    table.unlink()
    with pytest.raises(InputError, match=r"reviews.csv does not exist"):
        reviews.load_amazon_wilds(tmp_path, ALL, "distilbert", 0)


def test_reviews_at_hand_across_domains_and_time(data_root: Path) -> None:
    task = reviews.load_domains(data_root, Options(limit=50), "books-minilm-lr", 0)
    assert sorted(task.targets) == ["dvd", "electronics", "kitchen", "same"]
    assert len(task.targets["dvd"]()) == 50
    assert len(task.source) == 400
    later = reviews.load_time(data_root, ALL, "minilm-lr", 0)
    assert list(later.targets) == ["same", "2006-q1", "2006-q2", "2006-q3", "2006-q4"]
    assert sum(len(later.targets[name]()) for name in later.targets if name != "same") == 5365


def test_every_suite_says_how_to_get_it_and_how_it_is_trained(tmp_path: Path) -> None:
    for suite in SUITES.values():
        assert suite.downloads or suite.instructions or suite.size == "with the data"
        assert (suite.recipe is not None) == (suite.kind == "trained")
    (tmp_path / "logits/mnist/some_model").mkdir(parents=True)
    (tmp_path / "logits/mnist/some_model/source.npz").touch()
    assert SUITES["logits-mnist"].models_in(tmp_path) == ("some_model",)
    with pytest.raises(InputError, match=r"suite must be one of cifar10, .*got 'cifar'"):
        get_suite("cifar")


def test_options_refuse_what_does_not_exist() -> None:
    with pytest.raises(InputError, match="cifar101 must be one of v4, v6; got 'v5'"):
        Options(cifar101="v5")
    with pytest.raises(InputError, match="limit must be at least 1"):
        Options(limit=0)


def test_holdout_takes_a_share_of_every_class(rng: np.random.Generator) -> None:
    split = Split(ImageArray(np.zeros((100, 2, 2, 3), np.uint8)), np.repeat([0, 1], [80, 20]))
    rest, held = holdout(split, 0.2, 0)
    assert np.bincount(held.labels).tolist() == [16, 4]
    assert np.bincount(rest.labels).tolist() == [64, 16]
    rows = imbalanced_rows(np.repeat(np.arange(10), 100), 100.0, 10, rng)
    assert np.bincount(np.repeat(np.arange(10), 100)[rows]).tolist() == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    with pytest.raises(InputError, match="as many as inputs, 100; got 3"):
        Split(split.inputs, np.zeros(3, np.int64))
