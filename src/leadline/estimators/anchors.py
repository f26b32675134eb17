"""How ALSA's anchors are placed and trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.kernels import AnchorField, Gradients, Kernel
from leadline.kernels.base import unit_rows
from leadline.outputs import FloatArray

KNOBS = dict(reach=0.1, jitter=0.2, start=1.0, wd=0.0, k_per=1.0, scale_anchor=True)


def default_anchor_count(n_samples: int, n_classes: int) -> int:
    return min(n_samples, 300)


def initial_field(
    kernel: Kernel,
    logits: FloatArray,
    correct: NDArray[np.bool_],
    *,
    n_anchors: int,
    power: int,
    init: Literal["sample", "random"],
    rng: np.random.Generator,
) -> AnchorField[Any]:
    n = len(logits)
    chosen = rng.choice(n, n_anchors, replace=n_anchors > n)
    anchors = np.asarray(logits[chosen], dtype=np.float32)
    if KNOBS["scale_anchor"]:
        anchors = unit_rows(anchors)
    signs = np.where(correct[chosen], 1.0, -1.0)
    # widths
    sub = unit_rows(logits[rng.choice(n, min(n, 1000), replace=False)])
    d = np.maximum(1 - unit_rows(anchors) @ sub.T, 0)
    dq = np.quantile(d, KNOBS["reach"], axis=1)
    if KNOBS.get("global"):
        dq = np.full_like(dq, np.median(dq))
    dq = np.maximum(dq, 1e-4)
    v = 1 / dq if power == 2 else 1 / np.sqrt(dq)
    v = v * (1 + KNOBS["jitter"] * rng.normal(size=n_anchors))
    f = AnchorField(kernel.asarray(anchors), kernel.asarray(signs), kernel.asarray(v), power)
    infl = kernel.influence(logits[: 2000], f)
    p0 = KNOBS["start"] / np.mean(np.abs(infl))
    return AnchorField(f.anchors, kernel.asarray(signs * p0), f.widths, power)


@dataclass(frozen=True)
class Training:
    learn: frozenset[str]
    epsilon: float
    max_epochs: int | None
    learning_rate: float
    batch_size: int


def train(kernel, logits, correct, field, options, rng):
    units = kernel.asarray(unit_rows(logits))
    delta = kernel.asarray(correct.astype(np.float32))
    names = [x for x in ("anchors", "peaks", "widths") if x in options.learn]
    n = len(logits)
    par = {x: getattr(field, x) for x in ("anchors", "peaks", "widths")}
    m = {x: 0 * par[x] for x in names}
    s = {x: 0 * par[x] for x in names}
    scale = {"anchors": KNOBS.get("la", 1.0), "peaks": KNOBS.get("lp", 1.0), "widths": KNOBS.get("lv", 1.0)}
    if KNOBS.get("rel"):
        scale["peaks"] *= float(np.abs(par["peaks"]).mean())
        scale["widths"] *= float(np.abs(par["widths"]).mean())
        scale["anchors"] *= float(np.abs(par["anchors"]).mean())
    acc = correct.mean()
    hist = []
    reason = "max_epochs"
    step = 0
    E = options.max_epochs or 100
    for epoch in range(E):
        order = rng.permutation(n)
        tot = 0.0
        for b in range(0, n, options.batch_size):
            idx = order[b : b + options.batch_size]
            g = kernel.gradients(units[idx], delta[idx], AnchorField(**par, power=field.power))
            tot += g.loss * len(idx)
            step += 1
            lr = options.learning_rate
            if KNOBS.get("cos"):
                lr *= 0.5 * (1 + np.cos(np.pi * step / (E * -(-n // options.batch_size))))
            for x in names:
                gx = getattr(g, x)
                m[x] = 0.9 * m[x] + 0.1 * gx
                s[x] = 0.999 * s[x] + 0.001 * gx * gx
                up = (m[x] / (1 - 0.9**step)) / ((s[x] / (1 - 0.999**step)) ** 0.5 + 1e-8)
                par[x] = par[x] - lr * scale[x] * up
                if x == "peaks" and KNOBS["wd"]:
                    par[x] = par[x] * (1 - lr * KNOBS["wd"])
        f = AnchorField(**par, power=field.power)
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-kernel.influence(logits, f)))
        hist.append({"epoch": epoch, "loss": tot / n, "accuracy": float(p.mean())})
        if KNOBS.get("callback"):
            KNOBS["callback"](epoch, f, hist)
        if abs(p.mean() - acc) < options.epsilon:
            reason = "converged"
            break
    return AnchorField(*(kernel.to_numpy(par[x]) for x in ("anchors", "peaks", "widths")), power=field.power), hist, reason
