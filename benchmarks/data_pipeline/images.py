"""Photos as JPEG files and as decoded arrays, and the batches of loader processes."""

import io

STORED = (500, 375)  # size of the files, about that of ImageNet
EPOCH = 64  # batches of each loader process


def photos(count, seed=0):
    """Return where photos come from, and ``count`` of them as JPEG files in bytes."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(seed)
    try:
        from sklearn.datasets import load_sample_images

        sources = [Image.fromarray(array) for array in load_sample_images().images]
        origin = "crops of two photos of scikit-learn"
    except ImportError:
        noise = rng.integers(0, 256, (2, 60, 80, 3), dtype=np.uint8)
        sources = [Image.fromarray(each).resize((640, 427), Image.BICUBIC) for each in noise]
        origin = "smoothed noise (scikit-learn is not installed)"
    files = []
    for i in range(count):
        source = sources[i % len(sources)]
        share = rng.uniform(0.5, 1.0)
        width, height = int(share * source.width), int(share * source.height)
        left = int(rng.integers(0, source.width - width + 1))
        top = int(rng.integers(0, source.height - height + 1))
        image = source.resize(STORED, Image.BICUBIC, (left, top, left + width, top + height))
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return origin, files


class Jpegs:
    """A folder of JPEG files: decoded, randomly cropped and resized, and flipped."""

    def __init__(self, folder, size):
        self.files, self.size = sorted(folder.glob("*.jpg")), size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        """Return an image (3, H, W) in uint8, and its class."""
        import numpy as np
        import torch
        from PIL import Image

        image = Image.open(self.files[i]).convert("RGB")
        side = int(min(image.size) * (0.5 + 0.5 * torch.rand(1).item()))
        left = int(torch.randint(image.width - side + 1, (1,)))
        top = int(torch.randint(image.height - side + 1, (1,)))
        box = (left, top, left + side, top + side)
        image = image.resize((self.size, self.size), Image.BILINEAR, box)
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)
        return (pixels.flip(2) if torch.rand(1) < 0.5 else pixels), i % 10


class Decoded:
    """The same images, decoded once and stored in one array, which each loader process maps."""

    def __init__(self, file, size):
        self.file, self.size, self.array = file, size, None

    @staticmethod
    def store(jpegs, size):
        """Write the decoded images (N, S, S, 3) next to the files; return the path."""
        import numpy as np
        from PIL import Image

        file, side = jpegs.files[0].with_name("images.npy"), size * 8 // 7
        images = [
            np.asarray(Image.open(path).resize((side, side), Image.BILINEAR))
            for path in jpegs.files
        ]
        np.save(file, np.stack(images))
        return file

    def __len__(self):
        import numpy as np

        return len(np.load(self.file, mmap_mode="r"))

    def __getitem__(self, i):
        """Return an image (3, H, W) in uint8, cropped and flipped at random, and its class."""
        import numpy as np
        import torch

        if self.array is None:
            self.array = np.load(self.file, mmap_mode="r")
        top, left = torch.randint(self.array.shape[1] - self.size + 1, (2,)).tolist()
        part = self.array[i, top : top + self.size, left : left + self.size]
        pixels = torch.from_numpy(np.array(part)).permute(2, 0, 1)
        return (pixels.flip(2) if torch.rand(1) < 0.5 else pixels), i % 10


def endless(dataset, batch, workers, device):
    """Yield random batches for ever, from ``workers`` loader processes; 0 for this process.

    Each process decodes whole batches, so an epoch has many: with four of them, only four
    processes would work.
    """
    import torch

    count = batch * EPOCH * max(1, workers)
    loader = torch.utils.data.DataLoader(
        dataset,
        batch,
        sampler=torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=count),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        persistent_workers=workers > 0,
        worker_init_fn=lambda number: torch.set_num_threads(1),
    )
    while True:
        yield from loader
