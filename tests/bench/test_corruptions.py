"""The corruptions against their definitions: closed forms, SciPy and naive references."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leadline.bench.corruptions import CORRUPTIONS, SEVERITIES, blur, corrupt, digital, spatter, weather
from leadline.errors import InputError


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    rng = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(rng.normal(size=(24, 32, 32, 3)), (0, 3, 3, 0))
    scaled = (smooth - smooth.min()) / np.ptp(smooth)
    return np.asarray(255 * scaled).astype(np.uint8)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_same_seed_same_images_and_input_untouched(name: str, images: NDArray[np.uint8]) -> None:
    before = images.copy()
    first, again = corrupt(images, name, 3, seed=1), corrupt(images, name, 3, seed=1)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(images, before)
    assert first.dtype == np.uint8
    assert first.shape == images.shape
    assert (first != images).any()


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "fog", "snow"])
def test_severity_makes_the_change_larger(name: str, images: NDArray[np.uint8]) -> None:
    distance = [np.abs(corrupt(images, name, severity).astype(float) - images).mean() for severity in SEVERITIES]
    assert distance[0] < distance[-1]


def test_noise_has_the_published_scale() -> None:
    grey = np.full((40, 32, 32, 3), 128, dtype=np.uint8)
    for severity, scale in zip(SEVERITIES, (0.04, 0.06, 0.08, 0.09, 0.10), strict=True):
        spread = corrupt(grey, "gaussian_noise", severity).std() / 255
        np.testing.assert_allclose(spread, scale, rtol=0.02)
    for severity, scale in zip(SEVERITIES, (0.06, 0.1, 0.12, 0.16, 0.2), strict=True):
        spread = corrupt(grey, "speckle_noise", severity).std() / 128
        np.testing.assert_allclose(spread, scale, rtol=0.02)
    for severity, photons in zip(SEVERITIES, (500, 250, 100, 75, 50), strict=True):
        spread = corrupt(grey, "shot_noise", severity).std() / 255
        np.testing.assert_allclose(spread, np.sqrt(128 / 255 / photons), rtol=0.02)
    for severity, amount in zip(SEVERITIES, (0.01, 0.02, 0.03, 0.05, 0.07), strict=True):
        result = corrupt(grey, "impulse_noise", severity)
        np.testing.assert_allclose(np.isin(result, (0, 255)).mean(), amount, rtol=0.06)
        np.testing.assert_allclose((result == 255).sum() / (result == 0).sum(), 1.0, atol=0.15)


def test_contrast_and_brightness_follow_their_formulas(images: NDArray[np.uint8]) -> None:
    fractions = images / 255
    means = fractions.mean(axis=(1, 2), keepdims=True)
    expected = np.clip((fractions - means) * 0.4 + means, 0, 1) * 255
    np.testing.assert_array_equal(corrupt(images, "contrast", 3), expected.astype(np.uint8))
    import colorsys

    bright, garish = corrupt(images[:1], "brightness", 4), corrupt(images[:1], "saturate", 5)
    for row, column in ((0, 0), (5, 20), (31, 31)):
        h, s, v = colorsys.rgb_to_hsv(*(fractions[0, row, column]))
        wanted = np.array(colorsys.hsv_to_rgb(h, s, min(v + 0.2, 1.0))) * 255
        np.testing.assert_allclose(bright[0, row, column], wanted, atol=1.0)
        wanted = np.array(colorsys.hsv_to_rgb(h, min(2.5 * s + 0.2, 1.0), v)) * 255
        np.testing.assert_allclose(garish[0, row, column], wanted, atol=1.0)


def test_hsv_round_trip() -> None:
    rgb = np.random.default_rng(0).random((50, 4, 3))
    rgb[0, 0] = 0.5
    np.testing.assert_allclose(digital.to_rgb(digital.to_hsv(rgb)), rgb, atol=1e-12)


def test_defocus_is_the_plain_mean_over_a_disk(images: NDArray[np.uint8]) -> None:
    # At severity 5 the disk of radius 1.5 covers 3 x 3 pixels, and a Gaussian of 0.1 pixels changes nothing.
    expected = ndimage.uniform_filter(images / 255, (0, 3, 3, 0), mode="mirror") * 255
    got = corrupt(images, "defocus_blur", 5).astype(float)
    np.testing.assert_allclose(got, expected, atol=1.0)
    for radius, sigma in ((0.3, 0.4), (0.5, 0.6), (1.0, 0.2)):
        np.testing.assert_allclose(blur.disk_kernel(radius, sigma).sum(), 1.0, rtol=1e-6)


def test_zoom_matches_scipy_on_images(images: NDArray[np.uint8]) -> None:
    picture = images[0, :, :, 0] / 255
    for factor in (1.0, 1.05, 1.13, 1.25, 1.75, 2.25):
        crop = int(np.ceil(32 / factor))
        top = (32 - crop) // 2
        grown = ndimage.zoom(picture[top : top + crop, top : top + crop], factor, order=1)
        trim = (len(grown) - 32) // 2
        np.testing.assert_allclose(
            blur.clipped_zoom(picture[None], factor)[0], grown[trim : trim + 32, trim : trim + 32], atol=1e-12
        )


def test_motion_along_the_row_is_a_one_sided_filter(images: NDArray[np.uint8]) -> None:
    weights = np.exp(-np.square(np.arange(13)) / 2)
    weights /= weights.sum()
    padded = np.pad(images[:1].astype(float), ((0, 0), (0, 0), (0, 12), (0, 0)), mode="edge")
    expected = sum(weight * padded[:, :, step : step + 32] for step, weight in enumerate(weights))
    np.testing.assert_allclose(blur.motion(images[:1], 6, 1.0, np.zeros(1)), expected, atol=0.51)


def test_glass_takes_each_pixel_from_itself_or_a_neighbour() -> None:
    numbers = np.arange(1024, dtype=np.int64).reshape(32, 32)
    image = np.stack([numbers // 32 * 8, numbers % 32 * 8, numbers * 0], axis=-1).astype(np.uint8)[None]
    result = corrupt(image, "glass_blur", 1).astype(int)[0]  # the blur of 0.05 pixels is none
    step = image[0].astype(int) - result
    assert set(np.unique(np.ceil(step / 8))) <= {0.0, 1.0}
    moved = (step[2:, 2:, :2] > 1).mean()
    np.testing.assert_allclose(moved, 0.5, atol=0.06)


def test_pixelate_and_jpeg_are_pillow(images: NDArray[np.uint8]) -> None:
    picture = Image.fromarray(images[3])
    small = picture.resize((24, 24), Image.Resampling.BOX).resize((32, 32), Image.Resampling.BOX)
    np.testing.assert_array_equal(corrupt(images, "pixelate", 4)[3], np.asarray(small))
    file = BytesIO()
    picture.save(file, "JPEG", quality=58)
    np.testing.assert_array_equal(corrupt(images, "jpeg_compression", 3)[3], np.asarray(Image.open(file)))


@pytest.mark.parametrize("outside", ["mirror", "reflect"])
def test_sampling_matches_scipy(outside: str, images: NDArray[np.uint8]) -> None:
    rng = np.random.default_rng(1)
    rows, columns = rng.uniform(-10, 42, (2, 2, 32, 32))
    got = digital.sample(images[:2] / 255, rows, columns, outside)  # type: ignore[arg-type]
    for i in range(2):
        wanted = ndimage.map_coordinates(images[i, :, :, 1] / 255, [rows[i], columns[i]], order=1, mode=outside)
        np.testing.assert_allclose(got[i, :, :, 1], wanted, atol=1e-9)


def test_elastic_with_no_jitter_is_the_image() -> None:
    class Still(np.random.Generator):
        def uniform(self, low: float = 0.0, high: float = 1.0, size: object = None) -> NDArray[np.float64]:  # type: ignore[override]
            return np.zeros(size)  # type: ignore[call-overload, no-any-return]

    image = np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)
    got = digital.elastic_transform(image, 3, Still(np.random.PCG64()))
    np.testing.assert_allclose(got, image, atol=1e-6)


def test_plasma_spans_zero_to_one_and_fog_keeps_the_brightest_within_reach(images: NDArray[np.uint8]) -> None:
    maps = weather.plasma(5, 32, 2.0, np.random.default_rng(0))
    np.testing.assert_allclose(maps.min(axis=(1, 2)), 0.0)
    np.testing.assert_allclose(maps.max(axis=(1, 2)), 1.0)
    assert (corrupt(images, "fog", 5).max(axis=(1, 2, 3)) <= images.max(axis=(1, 2, 3))).all()


def test_frost_from_photographs(tmp_path: Path, images: NDArray[np.uint8]) -> None:
    photo = np.zeros((200, 200, 3), dtype=np.uint8)
    photo[2::5, 2::5] = 200  # only the middle of each 5 x 5 square is seen
    Image.fromarray(photo).save(tmp_path / "frost1.png")
    got = corrupt(images, "frost", 3, frost_folder=tmp_path)
    np.testing.assert_array_equal(got, np.clip(0.9 * images + 0.4 * 200, 0, 255).astype(np.uint8))
    with pytest.raises(InputError, match="found none"):
        corrupt(images, "frost", 1, frost_folder=tmp_path / "nothing")


def test_distance_and_edges_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    edges = rng.random((2, 32, 32)) < 0.02
    got = spatter.distance_to(edges)
    true = ndimage.distance_transform_edt(~edges[0])
    np.testing.assert_allclose(got[0], true, rtol=0.05, atol=1e-6)  # the chamfer is within 5 %
    step = np.zeros((1, 32, 32), dtype=np.uint8)
    step[:, :, 16:] = 200
    found = spatter.canny(step, 50, 150)[0]
    assert found[:, 15:17].any(axis=1).all()
    assert found.sum() == 32
    assert not spatter.canny(step // 10, 50, 150).any()


def test_equalised_levels_spread_over_the_range() -> None:
    picture = np.repeat(np.arange(10, 26, dtype=np.uint8), 64).reshape(1, 32, 32)
    got = spatter.equalise(picture)
    assert got.min() == 0
    assert got.max() == 255
    np.testing.assert_allclose(np.unique(got), np.linspace(0, 255, 16), atol=0.5)
    np.testing.assert_array_equal(spatter.equalise(np.full((1, 4, 4), 7, dtype=np.uint8)), 7)


def test_errors_say_rule_and_value(images: NDArray[np.uint8]) -> None:
    with pytest.raises(InputError, match=r"corruption must be one of gaussian_noise.*got 'rain'"):
        corrupt(images, "rain", 1)
    with pytest.raises(InputError, match="severity must be from 1 to 5; got 6"):
        corrupt(images, "fog", 6)
    with pytest.raises(InputError, match="uint8 of shape"):
        corrupt(images[:, :16], "fog", 1)


@pytest.mark.parametrize(
    ("name", "severity", "tolerance"),
    [("defocus_blur", 5, 0.0), ("contrast", 4, 0.0), ("zoom_blur", 3, 0.005), ("gaussian_noise", 2, 0.06),
     ("motion_blur", 3, 0.05), ("glass_blur", 2, 0.06), ("spatter", 2, 0.05), ("snow", 4, 0.06)],
)  # fmt: skip
def test_a_public_resnet_loses_as_much_as_under_another_implementation(
    name: str, severity: int, tolerance: float, data_root: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    from leadline.bench.models import build

    with np.load(data_root / "raw/cifar10/test.npz") as file:
        images, labels = file["x"][5000:5400], file["y"][5000:5400]
    with np.load(data_root / f"logits/cifar10c/resnet20/target_{name}_{severity}.npz") as file:
        expected = (file["logits"].argmax(axis=1) == file["labels"])[:400].mean()
    model = build("resnet20", 10)
    model.load_state_dict(load_file(data_root / "raw/cifar10/resnet20.safetensors"))
    model.eval()
    pixels = corrupt(images, name, severity).astype(np.float32) / 255
    normal = (pixels - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
    with torch.no_grad():
        predicted = model(torch.from_numpy(normal.transpose(0, 3, 1, 2).copy())).argmax(1).numpy()
    np.testing.assert_allclose((predicted == labels).mean(), expected, atol=tolerance + 1e-9)
