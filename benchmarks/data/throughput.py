"""Captions and images per second of Python's usual tools on one thread.

    python throughput.py prepare DATASET OUT   captions.txt and images/ in OUT, from a synthetic data set
    python throughput.py OUT                   Hugging Face's CLIP tokenizer; PIL and torchvision

`crates/data/examples/throughput.rs` measures the same work on the same files. Each figure is the best
of five rounds. Needs open_clip_torch (for CLIP's merge table), transformers, pillow and torchvision.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import open_clip.tokenizer
import PIL
import torch
import torchvision
import transformers
from PIL import Image
from torchvision import transforms as T

SEED = 5
CAPTIONS, IMAGES, ROUNDS = 10_000, 500, 5
SIZE = (384, 128)
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def prepare(dataset, out):
    """Captions from sentences of two, and JPEG files in sizes as CUHK-PEDES has them."""
    rng = random.Random(SEED)
    records = json.loads((dataset / "reid_raw.json").read_text())
    texts = [caption for record in records for caption in record["captions"]]
    lines = []
    for _ in range(CAPTIONS):
        first, second = rng.choice(texts).strip(), rng.choice(texts).strip()
        lines.append(first + rng.choice(["", " " + second.split(". ")[0]]))
    (out / "images").mkdir(parents=True)
    (out / "captions.txt").write_text("\n".join(lines) + "\n")
    for index in range(IMAGES):
        image = Image.open(dataset / "imgs" / rng.choice(records)["file_path"]).convert("RGB")
        width = rng.randint(60, 250)
        height = min(600, max(150, round(width * rng.uniform(2.2, 3.0))))
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        noise = Image.effect_noise(image.size, 16).convert("RGB")
        image = Image.blend(image, noise, 0.06)
        image.save(out / "images" / f"{index:03}.jpg", quality=rng.choice([75, 85, 90, 95]))


def clip_tokenizer():
    reference = open_clip.tokenizer.SimpleTokenizer()
    merges = sorted(reference.bpe_ranks, key=reference.bpe_ranks.get)
    vocab = {token.replace("start_of_text", "|startoftext|").replace("end_of_text", "|endoftext|"): index
             for token, index in reference.encoder.items()}
    return transformers.CLIPTokenizerFast(vocab=vocab, merges=merges)


def best_rate(count, round):
    best = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        round()
        best = max(best, count / (time.perf_counter() - began))
    return best


def measure(folder):
    torch.set_num_threads(1)
    captions = (folder / "captions.txt").read_text().splitlines()
    tokenizer = clip_tokenizer()
    encode = lambda: tokenizer(captions, padding="max_length", truncation=True, max_length=77)
    for ids, reference in zip(encode()["input_ids"], open_clip.tokenizer.SimpleTokenizer()(captions[:50]).tolist()):
        end = reference.index(max(reference)) + 1
        assert ids[:end] == reference[:end], "the tokenizer is not CLIP's"
    captions_per_s = best_rate(len(captions), encode)

    train = T.Compose([
        T.Resize(SIZE), T.RandomHorizontalFlip(0.5), T.Pad(10), T.RandomCrop(SIZE),
        T.ToTensor(), T.Normalize(MEAN, STD), T.RandomErasing(p=0.5, scale=(0.02, 0.4), value=MEAN),
    ])
    files = sorted((folder / "images").glob("*.jpg"))

    def load():
        for file in files:
            train(Image.open(file).convert("RGB"))

    images_per_s = best_rate(len(files), load)
    print(f"python {sys.version.split()[0]}, transformers {transformers.__version__}, pillow {PIL.__version__}, "
          f"torchvision {torchvision.__version__}, torch {torch.__version__}")
    print(f"captions/s {captions_per_s:.0f}\nimages/s   {images_per_s:.1f}")


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        measure(Path(sys.argv[1]))
