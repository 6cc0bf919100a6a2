"""Measures our CLIP against three PyTorch implementations, at the size of ViT-B/16.

python parity.py --example BINARY --fixtures crates/model/tests/fixtures/clip_sources --work DIR

For each implementation and image size: random parameters in a file as that implementation writes
them, and inputs; features, loss and gradients by
PyTorch in f64 (the truth) and in f32 (the yardstick), and by BINARY, our side, in f32. Writes
DIR/measured.json; `cargo xtask parity` judges it.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import open_clip
import torch
from safetensors.torch import load_file, save_file

SEED = 20261130
MODEL, PATCH, SQUARE = "ViT-B-16-quickgelu", 16, (14, 14)
SIZES = [(224, 224), (384, 128)]
SOURCES = ["open_clip", "transformers", "openai"]
LENGTHS = [77, 30, 12]  # tokens of the captions; one image each
FILES = ["weights", "inputs.safetensors", "ours.safetensors", "gradients.safetensors"]


def parameters():
    """open_clip's random ones, with norms and biases moved off ones and zeros."""
    torch.manual_seed(SEED)
    model = open_clip.create_model(MODEL)
    state = {name: p.detach().clone() for name, p in model.named_parameters()}
    for name, p in state.items():
        if p.ndim == 1:
            p += 0.05 * torch.randn_like(p)
    return state


def weights_file(clips, source, params, path):
    """Writes them as that source does, and returns what its file holds: OpenAI's maps are f16."""
    if source == "open_clip":
        save_file(params, path)
    elif source == "transformers":
        save_file(clips.to_hugging_face(params), path, {"format": "pt"})
    else:
        pixels, ids = inputs(224, 224)
        archive = clips.openai_archive(params, PATCH, pixels[:1], ids[:1])
        torch.jit.save(archive, path)
        params = {name: p.detach().float() for name, p in archive.named_parameters()}
    return params


def inputs(height, width):
    generator = torch.Generator().manual_seed(SEED + height)
    pixels = torch.randn(len(LENGTHS), 3, height, width, generator=generator)
    ids = torch.zeros(len(LENGTHS), 77, dtype=torch.long)
    for row, length in zip(ids, LENGTHS):
        row[0], row[length - 1] = 49406, 49407
        row[1 : length - 1] = torch.randint(1, 49406, (length - 2,), generator=generator)
    return pixels, ids


def measure(clips, args, source, params, size):
    began = time.monotonic()
    grid = (size[0] // PATCH, size[1] // PATCH)
    pixels, ids = inputs(*size)
    weights, given, out, grads = (args.work / name for name in FILES)
    # With the positions of a square: our side resizes them itself.
    params = weights_file(clips, source, params, weights)
    save_file({"pixels": pixels, "token_ids": ids.int()}, given)

    positions = params["visual.positional_embedding"]
    if grid != SQUARE:
        positions = clips.resize_positions(positions, SQUARE, grid)
    params = params | {"visual.positional_embedding": positions}
    exact = clips.run(source, params, PATCH, pixels, ids, torch.float64)
    rounded = clips.run(source, params, PATCH, pixels, ids, torch.float32)
    subprocess.run([args.example, weights, given, out, grads], check=True)
    ours, our_grads = load_file(out), load_file(grads)

    features = ["image_features", "text_features"]
    off = lambda found: max((found[key] - exact[key]).abs().max().item() for key in features)
    loss = exact["loss"].item()
    gradients = []
    for name, grad in exact["grads"].items():
        error = (our_grads[name] - grad).norm().item()
        yardstick = (rounded["grads"][name] - grad).norm().item()
        gradients.append(dict(name=name, error=error, pytorch_error=yardstick))
    norm = torch.stack([grad.norm() for grad in exact["grads"].values()]).norm().item()
    return dict(
        source=source,
        image_size=list(size),
        parameters=int(ours["num_params"]),
        pytorch_parameters=exact["num_params"],
        features_error=off(ours),
        pytorch_features_error=off(rounded),
        loss=loss,
        loss_error=abs(ours["loss"].item() - loss) / loss,
        pytorch_loss_error=abs(rounded["loss"].item() - loss) / loss,
        grad_norm=norm,
        gradients=gradients,
        seconds=time.monotonic() - began,
    )


def cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--example", "--fixtures", "--work"):
        parser.add_argument(name, type=Path, required=True)
    args = parser.parse_args()
    sys.path.insert(0, str(args.fixtures))
    import three_clips as clips

    packages = ["torch", "open_clip_torch", "transformers", "clip-anytorch"]
    measured = dict(
        model=MODEL,
        seed=SEED,
        batch=len(LENGTHS),
        cpu=cpu(),
        versions={name: version(name) for name in packages},
        cases=[],
    )
    params = parameters()
    for source in SOURCES:
        for size in SIZES:
            case = measure(clips, args, source, params, size)
            measured["cases"].append(case)
            print(f"{source} {size[0]}x{size[1]}: {case['seconds']:.0f} s", file=sys.stderr)
    for name in FILES:
        (args.work / name).unlink()
    (args.work / "measured.json").write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
