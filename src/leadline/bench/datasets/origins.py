"""Where the datasets come from: addresses, published checksums, and what must be done by hand."""

from __future__ import annotations

from leadline.bench.datasets.mnist import TRAIN_IMAGES, TRAIN_LABELS
from leadline.bench.download import Download

TORONTO = "https://www.cs.toronto.edu/~kriz/"
GITHUB = "https://github.com/modestyachts/"
ZENODO = "https://zenodo.org/records/"
CODALAB = "https://worksheets.codalab.org/rest/bundles/"
HUGGING_FACE = "https://huggingface.co/datasets/"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
CIFAR_101 = tuple(
    Download(
        url=f"{GITHUB}CIFAR-10.1/raw/master/datasets/{name}",
        path=f"cifar-10.1/{name}",
        makes=f"cifar-10.1/{name}|CIFAR-10.1/datasets/{name}",
        checksum=sha256,
    )
    for name, sha256 in (
        ("cifar10.1_v4_data.npy", "5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75"),
        ("cifar10.1_v4_labels.npy", "1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18"),
        ("cifar10.1_v6_data.npy", "2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6"),
        ("cifar10.1_v6_labels.npy", "ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448"),
    )
)
MNIST_FILES = tuple(
    Download(url=MNIST + name, path=f"mnist/{name}", makes=makes, checksum=md5)
    for name, makes, md5 in (
        ("train-images-idx3-ubyte.gz", TRAIN_IMAGES, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", TRAIN_LABELS, "d53e105ee54ea40749a09fcbcd1e9432"),
    )
)
OFFICE = """Office-31 is given out by its authors for research, through a Google Drive link that asks for a click.
1. Open https://drive.google.com/open?id=0B4IapRTv9pJ1WGZVd1VDMmhwdlE and save domain_adaptation_images.tar.gz
   (SHA-1 7aa25a86f3880b6e79283227816f9d4d8506d636).
2. mkdir -p DATA/office31 && tar -xzf domain_adaptation_images.tar.gz -C DATA/office31
   so that DATA/office31/amazon/images/back_pack/ exists."""
IMAGENET = """ImageNet is given out to registered researchers only.
1. Register at https://image-net.org and download ILSVRC2012_img_val.tar (6.3 GB,
   MD5 29b22e2961454d5413ddabcf34fc5622).
2. Sort the 50,000 images into one folder per WordNet id, DATA/imagenet/val/n01440764/ILSVRC2012_val_00000293.JPEG
   and so on; the ids stand in ILSVRC2012_devkit_t12.tar.gz, and
   torchvision.datasets.ImageNet(root, split="val") sorts them for you."""
LOGITS = "Put logits into DATA/logits/{}/<model>/source.npz and target_<name>.npz (arrays logits and labels)."
