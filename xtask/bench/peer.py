"""PyTorch's side of `cargo xtask bench`: one case in a process of its own.

Speaks as `tbps bench` does: a JSON line when it is ready, one measured piece of work for each line of
standard input, answered with the seconds, and what it held at the end of the input.

The work is that of the other side, by open_clip at its best: the same model, batch and caption length
(the text tower is built for it), its own contrastive loss, scaled-dot-product attention,
`torch.autocast` and `GradScaler` for AMP, `set_grad_checkpointing` for GC, AdamW in its fused form, a
clipped gradient norm, and timm's EMA with foreach operations.
"""

import argparse
import importlib.metadata
import json
import platform
import resource
import sys
import time

import open_clip
import torch
from timm.utils import ModelEmaV3

MODEL = "ViT-B-16-quickgelu"
IMAGE_SIZE = (384, 128)
LOGIT_SCALE = 50.0
LR, WEIGHT_DECAY, CLIP_NORM, EMA_DECAY = 1e-5, 0.01, 1.0, 0.9999
PACKAGES = ["torch", "open_clip_torch", "timm"]


def main():
    args = parse()
    torch.manual_seed(0)
    if args.threads:
        torch.set_num_threads(args.threads)
    device = torch.device(args.device.replace("flex", "cpu"))
    if args.tf32:
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
    case = Train(args, device) if args.work == "train" else Encode(args, device)
    started = time.perf_counter()
    saved_bytes = case.warm_up()
    answer(
        versions=versions(),
        device_name=torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        threads=torch.get_num_threads(),
        num_parameters=sum(p.numel() for p in case.model.parameters()),
        warm_up_s=time.perf_counter() - started,
    )
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    for _ in sys.stdin:
        begin = time.perf_counter()
        case.work()
        answer(seconds=time.perf_counter() - begin)
    answer(
        peak_host_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        saved_bytes=saved_bytes,
        loss=case.loss,
        **device_memory(device),
    )


class Train:
    """A training step, from a batch in host memory to updated weights."""

    def __init__(self, args, device):
        self.args, self.device, self.loss = args, device, None
        self.dtype = {"fp32": None, "amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}[args.precision]
        self.model = build(args.caption_length).to(device).train()
        self.model.logit_scale.requires_grad_(False)
        self.model.set_grad_checkpointing(args.recompute)
        decayed = [p for p in self.model.parameters() if p.ndim >= 2]
        others = [p for p in self.model.parameters() if p.ndim < 2 and p.requires_grad]
        groups = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=LR, weight_decay=WEIGHT_DECAY, fused=True)
        scaled = self.dtype == torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self.ema = ModelEmaV3(self.model, decay=EMA_DECAY, foreach=True) if args.ema else None
        self.criterion = open_clip.ClipLoss()
        self.pixels, self.token_ids = batch(args.batch, args.caption_length)

    def warm_up(self):
        self.work()
        with torch.autograd.graph.saved_tensors_hooks(*self.counting()):
            self.work()
        return sum(self.saved.values())

    def counting(self):
        """Hooks that note every storage that is saved for the backward and is no parameter."""
        parameters = {p.untyped_storage().data_ptr() for p in self.model.parameters()}
        self.saved = {}

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in parameters:
                # By address: two that live one after another at one place count once.
                self.saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        return pack, lambda tensor: tensor

    def work(self):
        pixels = self.pixels.to(self.device, non_blocking=True)
        token_ids = self.token_ids.to(self.device, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None):
            image = self.model.encode_image(pixels, normalize=True)
            text = self.model.encode_text(token_ids, normalize=True)
        # In f32, as the other side's.
        loss = self.criterion(image.float(), text.float(), self.model.logit_scale.exp())
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM, foreach=True)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.ema is not None:
            self.ema.update(self.model)
        self.loss = loss.item()
        synchronise(self.device)


class Encode:
    """A batch of images to features in host memory."""

    def __init__(self, args, device):
        self.device, self.loss = device, None
        self.dtype = {"fp32": None, "amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}[args.precision]
        self.model = build(77).to(device).eval()
        self.pixels, _ = batch(args.batch, 77)

    def warm_up(self):
        self.work()
        self.work()

    def work(self):
        pixels = self.pixels.to(self.device)
        with torch.inference_mode():
            with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None):
                self.model.encode_image(pixels, normalize=True).float().cpu()


def build(caption_length):
    return open_clip.create_model(
        MODEL,
        pretrained=None,
        force_image_size=IMAGE_SIZE,
        force_context_length=caption_length,
        init_logit_scale=torch.tensor(LOGIT_SCALE).log().item(),
        output_dict=False,
    )


def batch(size, caption_length):
    pixels = torch.rand(size, 3, *IMAGE_SIZE) * 4 - 2
    token_ids = torch.randint(1, 49406, (size, caption_length))
    token_ids[:, -1] = 49407
    return pixels, token_ids


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def versions():
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **packages}


def device_memory(device):
    if device.type != "cuda":
        return {}
    return {
        "peak_pool_in_use_gib": torch.cuda.max_memory_allocated(device) / 2**30,
        "peak_pool_reserved_gib": torch.cuda.max_memory_reserved(device) / 2**30,
        "tf32": torch.backends.cuda.matmul.allow_tf32,
    }


def answer(**fields):
    print(json.dumps(fields), flush=True)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", choices=["train", "encode"], required=True)
    parser.add_argument("--precision", choices=["fp32", "amp-fp16", "amp-bf16"], required=True)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--ema", action="store_true")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--caption-length", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    parser.add_argument("--tf32", action="store_true", help="f32 matrix products in TF32, on CUDA")
    return parser.parse_args()


if __name__ == "__main__":
    main()
