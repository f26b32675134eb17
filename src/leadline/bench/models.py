"""The classifiers of the paper that are small enough to state: CIFAR ResNets, ResNet18 and the MNIST network.

The ImageNet models (AlexNet, MobileNetV2, EfficientNet-B0) come from torchvision, DistilBERT from
transformers; both are asked for only when such a suite runs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline.bench.optional import need


class _Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, projection: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self._stride, self._padding = stride, (outputs - inputs) // 2
        self.downsample: nn.Module | None = None
        if projection and (stride != 1 or inputs != outputs):
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def _shortcut(self, x: Tensor) -> Tensor:
        if self.downsample is not None:
            projected: Tensor = self.downsample(x)
            return projected
        if self._stride == 1 and not self._padding:
            return x
        # Option A of He et al.: every other pixel, and zeros for the new channels, without parameters.
        return functional.pad(x[:, :, :: self._stride, :: self._stride], (0, 0, 0, 0, self._padding, self._padding))

    def forward(self, x: Tensor) -> Tensor:
        """Add the shortcut to the convolutions."""
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self._shortcut(x))


def _stage(inputs: int, outputs: int, blocks: int, stride: int, *, projection: bool) -> nn.Sequential:
    """Put blocks in a row; the first may change size and width."""
    layers = [_Block(inputs, outputs, stride, projection=projection)]
    layers += [_Block(outputs, outputs, 1, projection=projection) for _ in range(blocks - 1)]
    return nn.Sequential(*layers)


class CifarResNet(nn.Module):
    """The three-stage ResNet of He et al. for 32 x 32 images: 16, 32 and 64 channels, shortcuts of option A.

    Parameters
    ----------
    depth
        6 b + 2 layers for b blocks per stage: 20, 32, 44, 56, 110.
    n_classes
        Number of logits.
    """

    def __init__(self, depth: int, n_classes: int = 10) -> None:
        """Make the layers."""
        super().__init__()
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks, 1, projection=False)
        self.layer2 = _stage(16, 32, blocks, 2, projection=False)
        self.layer3 = _stage(32, 64, blocks, 2, projection=False)
        self.linear = nn.Linear(64, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, 3, 32, 32) to logits (n, n_classes)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x))).mean(dim=(2, 3))
        logits: Tensor = self.linear(x)
        return logits


class ResNet18(nn.Module):
    """ResNet18, with the names of torchvision's parameters so that its weights load.

    Parameters
    ----------
    n_classes
        Number of logits.
    small_images
        A 3 x 3 first convolution without pooling, as is usual for 32 x 32 images, instead of 7 x 7 and
        pooling.
    """

    def __init__(self, n_classes: int, *, small_images: bool) -> None:
        """Make the layers."""
        super().__init__()
        self._pool = not small_images
        self.conv1 = nn.Conv2d(3, 64, *((3, 1, 1) if small_images else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = _stage(64, 64, 2, 1, projection=True)
        self.layer2 = _stage(64, 128, 2, 2, projection=True)
        self.layer3 = _stage(128, 256, 2, 2, projection=True)
        self.layer4 = _stage(256, 512, 2, 2, projection=True)
        self.fc = nn.Linear(512, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, 3, h, w) to logits (n, n_classes)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        if self._pool:
            x = functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean(dim=(2, 3))
        logits: Tensor = self.fc(x)
        return logits


class MnistNet(nn.Module):
    """Three convolutions and a linear layer, for (n, 3, 28, 28) images."""

    def __init__(self, n_classes: int = 10) -> None:
        """Make the layers."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        )  # fmt: skip
        self.linear = nn.Linear(128 * 9, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images to logits (n, n_classes)."""
        logits: Tensor = self.linear(self.features(x).flatten(1))
        return logits


def _pretrained(name: str) -> nn.Module:
    """Return a torchvision model with its ImageNet weights (version 1, those of the paper's time)."""
    torchvision = need("torchvision", "the pretrained ImageNet models")
    model: nn.Module = torchvision.models.get_model(name, weights="IMAGENET1K_V1")
    return model


def _resnet18_imagenet_start(n_classes: int) -> nn.Module:
    """Return a ResNet18 for large images that starts from torchvision's ImageNet weights."""
    torchvision = need("torchvision", "the ImageNet weights a ResNet18 starts from")
    model = ResNet18(n_classes, small_images=False)
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.get_state_dict(progress=False)
    kept = {name: value for name, value in weights.items() if not name.startswith("fc.")}
    model.load_state_dict(kept, strict=False)
    return model


def _distilbert(n_classes: int) -> nn.Module:
    """Return DistilBERT with a fresh head."""
    from leadline.bench.text import DistilBert

    return DistilBert(n_classes)


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "resnet20": lambda n_classes: CifarResNet(20, n_classes),
    "resnet32": lambda n_classes: CifarResNet(32, n_classes),
    "resnet56": lambda n_classes: CifarResNet(56, n_classes),
    "resnet18": lambda n_classes: ResNet18(n_classes, small_images=True),
    "resnet18-large": lambda n_classes: ResNet18(n_classes, small_images=False),
    "resnet18-pretrained": _resnet18_imagenet_start,
    "mnist-cnn": MnistNet,
    "distilbert": _distilbert,
    "alexnet": lambda n_classes: _pretrained("alexnet"),
    "mobilenet_v2": lambda n_classes: _pretrained("mobilenet_v2"),
    "efficientnet_b0": lambda n_classes: _pretrained("efficientnet_b0"),
}


def build(name: str, n_classes: int, *, seed: int = 0, n_features: int | None = None) -> nn.Module:
    """Make a model with weights drawn from ``seed``, leaving the global random state as it was.

    ``n_features``, the size of a node's features, asks for a node classifier; the last part of ``name`` is its kind.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if n_features is None:
            return MODELS[name](n_classes)
        from leadline.bench.graphs.gnns import NodeClassifier

        return NodeClassifier(name.rsplit("-", maxsplit=1)[-1], n_features, n_classes)
