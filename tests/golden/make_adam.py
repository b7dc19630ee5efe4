#!/usr/bin/env python3
"""Writes tests/golden/adam.txt: weights after steps of torch.optim.AdamW on given gradients.

usage: make_adam.py >adam.txt        (needs the Python package `torch`)

Lines, numbers as hexadecimal floats:
  case LR BETA1 BETA2 EPS DECAY CLIP N STEPS   LR of step k is LR / (1 + k); CLIP 0: none
  p N numbers                                  at the beginning
  g N numbers, p N numbers                     gradient of a step before clipping, weights after it; STEPS times
  norm NUMBER                                  of that gradient, in double
"""
import torch

torch.manual_seed(1)
CASES = [  # lr, betas, eps, decay, clip
    (1e-3, (0.9, 0.999), 1e-8, 0.01, 0),
    (2e-4, (0.9, 0.95), 1e-6, 0.1, 0.5),
    (1e-1, (0.0, 0.5), 1e-3, 0.0, 3.0),
]


def row(name, t):
    print(name, *(float(x).hex() for x in t))


for lr, betas, eps, decay, clip in CASES:
    n, steps = 9, 12
    p = torch.nn.Parameter(torch.randn(n) * 0.3)
    opt = torch.optim.AdamW([p], lr=lr, betas=betas, eps=eps, weight_decay=decay, foreach=False, fused=False)
    print("case", lr.hex(), betas[0].hex(), betas[1].hex(), eps.hex(), decay.hex(), float(clip).hex(), n, steps)
    row("p", p.detach())
    for k in range(steps):
        g = torch.randn(n) * 10.0 ** (k % 4 - 2)
        g[k % n] = 0
        row("g", g)
        print("norm", g.double().norm().item().hex())
        p.grad = g.clone()
        if clip:
            torch.nn.utils.clip_grad_norm_([p], clip)
        for group in opt.param_groups:
            group["lr"] = lr / (1 + k)
        opt.step()
        row("p", p.detach())
