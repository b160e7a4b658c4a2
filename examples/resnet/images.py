"""Images of several formats, for loader processes."""

import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image
from torchvision.transforms import Compose, PILToTensor, RandomResizedCrop, Resize


def load(place):
    """Return (image, offset, size, class) of each image, in a random order that is always the same.

    ``image`` is an array (H, W, 3) in uint8, or a file with a JPEG image at ``offset``.

    Args:
        place: A folder with a folder of JPEG files for each class; a WebDataset (.tar with NAME.jpg
            and NAME.cls); a .npz with ``images`` (N, H, W, 3) and ``classes``; None for the digits
            of scikit-learn.
    """
    path = Path(place or "digits")
    if path.suffix == ".tar":
        rows = _webdataset(path)
    elif path.suffix == ".npz":
        with np.load(path) as file:
            rows = _arrays(file["images"], file["classes"])
    elif place:
        files = sorted(path.glob("*/*.jp*g"))
        names = sorted({file.parent.name for file in files})
        rows = [(file, 0, -1, names.index(file.parent.name)) for file in files]
    else:
        from sklearn.datasets import load_digits

        digits = load_digits()
        images = (digits.images * 15).astype(np.uint8)
        rows = _arrays(images[..., None].repeat(3, axis=3), digits.target)
    if not rows:
        raise FileNotFoundError(f"{place} has no folder with JPEG files")
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]


def _webdataset(path):
    with tarfile.open(path) as tar:
        images = [part for part in tar if part.name.endswith(".jpg")]
        texts = [tar.extractfile(part.name[:-3] + "cls").read() for part in images]
    pairs = zip(images, texts, strict=True)
    return [(path, part.offset_data, part.size, int(text)) for part, text in pairs]


def _arrays(images, classes):
    return [(image, 0, 0, int(number)) for image, number in zip(images, classes, strict=True)]


class Images:
    """Images as uint8 (3, size, size) and their classes; ``augmented`` by a random crop."""

    def __init__(self, rows, size, augmented=False):
        first = RandomResizedCrop(size, (0.5, 1.0)) if augmented else Resize((size, size))
        self.rows, self.change = rows, Compose([first, PILToTensor()])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        """Return image ``i`` and its class."""
        source, offset, size, number = self.rows[i]
        if not isinstance(source, Path):
            return self.change(Image.fromarray(source)), number
        with source.open("rb") as file:
            file.seek(offset)
            image = Image.open(io.BytesIO(file.read(size))).convert("RGB")
        return self.change(image), number
