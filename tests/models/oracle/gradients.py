# SPDX-License-Identifier: Apache-2.0
"""Gradients of the sum of the squares of whole models' outputs, by PyTorch's autograd in f64."""
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

import counter
import images
import sequences
from examples import trained
from golden import Golden, generated

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../benchmarks/peers/pytorch"))
import models  # noqa: E402
from operators import Plain  # noqa: E402

SAMPLES = 8  # of each parameter, at positions from the counter


def uniform(name, *shape):
    return torch.from_numpy(counter.uniform(name, shape)).double()


def tokens(name, count, vocabulary):
    return torch.from_numpy(counter.tokens(name, (1, count), vocabulary)).long()


class Named(nn.Module):
    """A module with a name."""

    def __init__(self, name, module):
        super().__init__()
        self.add_module(name, module)


def recurrent(kind, name):
    """The layers of recurrent.py, from zero states."""
    model = Named(name, kind)

    def run():
        y, last = model.get_submodule(name)(uniform("x", 7, 3, 5))
        return (y, *last) if isinstance(last, tuple) else (y, last)

    return model, run


def cnn():
    model = images.SmallCnn()

    def run():
        features, logits = model(uniform("image", 1, 3, 90, 74))
        return features, logits, F.interpolate(features, (13, 4), mode="bilinear", align_corners=False)

    return model, run


def of(model, *inputs):
    def run():
        outputs = model(*inputs)
        return list(outputs.values()) if isinstance(outputs, dict) else outputs if isinstance(outputs, tuple) else (outputs,)

    return model, run


def gpt2():
    model = models.Gpt2(Plain, layers=3, width=48, heads=4, vocabulary=97, context=40)
    return model, lambda: (model.rows(tokens("tokens", 11, 97))[0] @ model.wte.weight.t(),)


def captions():
    """Gradients of the logits only: the attention weights on the image serve only for pictures."""
    model = trained("captions").Recurrent()
    return model, lambda: (model(uniform("image", 1, 56, 56), tokens("sentence", 7, 26))[0],)


def detr():
    """Without the attention weights, which serve only for pictures."""
    model = images.Detr()

    def run():
        outputs = model(uniform("images", 1, 64, 96, 3))
        return outputs["logits"], outputs["boxes"]

    return model, run


CASES = {
    "gpt2": gpt2,
    "bert": lambda: of(models.Bert(Plain, layers=2, width=48, heads=4), tokens("tokens", 9, 30522), tokens("segments", 9, 2)),
    "vit": lambda: of(models.Vit(Plain, layers=2, width=48, heads=4, image=32, patch=8, classes=10), uniform("image", 3, 32, 32)),
    "transformer": lambda: of(models.Transformer(Plain, layers=2, width=48, heads=4, hidden=96, vocabulary=97), tokens("source", 7, 97), tokens("target", 5, 97)),
    "swin": lambda: of(images.Swin(), uniform("images", 1, 3, 56, 56)),
    "small_cnn": cnn,
    "captions": captions,
    "detr": detr,
    "mvit": lambda: of(images.Mvit(), uniform("images", 1, 56, 56, 3)),
    "lstm": lambda: recurrent(nn.LSTM(5, 7, num_layers=2, bidirectional=True), "lstm"),
    "gru": lambda: recurrent(nn.GRU(5, 7, bidirectional=True), "gru"),
    "names_fixed": lambda: of(sequences.Fixed(383 + 1), 1 + tokens("source", 7, 383).t(), 1 + tokens("target", 5, 383)[0]),
}  # fmt: skip


OPTIMIZERS = {
    "sgd": lambda w: torch.optim.SGD(w, lr=1, momentum=0.9, weight_decay=0.05),
    "adam": lambda w: torch.optim.Adam(w, lr=1, betas=(0.9, 0.99), weight_decay=0.02),
    "adamw": lambda w: torch.optim.AdamW(w, lr=1, betas=(0.8, 0.999), weight_decay=0.1),
}


def optimizers(golden):
    """Runs ten steps of each optimiser on given gradients, also clipped to norm 1/2; the rate of step t is 0.03 / t."""
    for name, make in OPTIMIZERS.items():
        for clip in (None, 0.5):
            w = torch.nn.Parameter(uniform("w", 6))
            optimizer = make([w])
            for step in range(1, 11):
                w.grad = uniform(f"g{step}", 6)
                if clip:
                    torch.nn.utils.clip_grad_norm_([w], clip)
                optimizer.param_groups[0]["lr"] = 0.03 / step
                optimizer.step()
            golden.tensors[f"{name}{'_clipped' if clip else ''}|w"] = w.detach().float().numpy()


def gradients():
    """Samples the gradients of each parameter, and records the largest magnitude."""
    golden = Golden("gradients")
    torch.set_default_dtype(torch.float64)
    for case, make in CASES.items():
        torch.manual_seed(1)
        model, run = make()
        model = generated(model, golden).double()
        with torch.enable_grad():
            loss = sum(output.square().sum() for output in run())
            loss.backward()
        golden.tensors[f"{case}|loss"] = torch.tensor([loss.item()]).float().numpy()
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                continue
            gradient = parameter.grad.flatten()
            places = counter.tokens(f"gradient.{name}", (SAMPLES,), len(gradient))
            golden.tensors[f"{case}|{name}.value"] = gradient[torch.from_numpy(places).long()].float().numpy()
            golden.tensors[f"{case}|{name}.max"] = gradient.abs().max().reshape(1).float().numpy()
        print(f"{case:12} loss {loss.item():.6g}, {sum(1 for p in model.parameters() if p.grad is not None)} parameters", flush=True)
    with torch.enable_grad():
        optimizers(golden)
    torch.set_default_dtype(torch.float32)
    golden.metadata["parameters"] = "0"
    golden.write()
