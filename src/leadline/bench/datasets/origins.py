"""Where the datasets come from: addresses, published checksums, and what must be done by hand."""

from __future__ import annotations

from leadline.bench.download import Download

TORONTO = "https://www.cs.toronto.edu/~kriz/"
GITHUB = "https://github.com/modestyachts/"
ZENODO = "https://zenodo.org/records/"
CODALAB = "https://worksheets.codalab.org/rest/bundles/"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
CIFAR_101 = tuple(
    Download(f"{GITHUB}CIFAR-10.1/raw/master/datasets/{name}", f"cifar-10.1/{name}", f"cifar-10.1/{name}")
    for version in ("v4", "v6")
    for name in (f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy")
)
MNIST_FILES = tuple(
    Download(MNIST + name, f"mnist/{name}", f"mnist/{name}", md5)
    for name, md5 in (
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
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
