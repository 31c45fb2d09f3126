"""
A softmax layer on embeddings, without a training loop
======================================================

Features often come out of a network as tensors on a GPU, and the last layer is trained there by stochastic gradients:
with a learning rate, a schedule and a penalty that somebody has to choose. For a frozen network this last layer is a
convex problem, the maximum entropy model. `SABFGSCV` takes the tensors as they are, computes on their device, chooses
the penalty by cross-validation, and stops at the minimum. How long does it take, and how long does the training loop
take to the same loss?

Here images of two digits are blended, and the label distribution says how much of each digit is in the image. The
frozen network is a small convolutional one. The example needs torch, and runs on the CPU with fewer images too.
"""

import os
import time

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn needs it for arrays of other libraries

import matplotlib.pyplot as plt
import sklearn
import torch
from sklearn.datasets import load_digits

from skldl import SABFGSCV
from skldl.metrics import kullback_leibler

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
n_train, n_test, width, epochs = (2_000_000, 100_000, 256, 30) if device.type == "cuda" else (6_000, 2_000, 32, 30)

# %%
# Images and a frozen network
# ---------------------------
# The network has fixed random filters. One that was trained on other images would stand in its place.

digits = load_digits()
images = torch.asarray(digits.images, dtype=torch.float32, device=device) / 16
labels = torch.asarray(digits.target, dtype=torch.int64, device=device)


def blends(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of two digits laid over each other, and the share of each digit."""
    first, second = (torch.randint(len(images), (n,), device=device) for _ in range(2))
    share = torch.rand(n, 1, device=device)
    rows = torch.arange(n, device=device)
    D = torch.zeros(n, 10, device=device)
    D.index_put_((rows, labels[first]), share[:, 0], accumulate=True)
    D.index_put_((rows, labels[second]), 1 - share[:, 0], accumulate=True)
    mixed = share[:, :, None] * images[first] + (1 - share[:, :, None]) * images[second]
    return mixed + 0.05 * torch.randn_like(mixed), D


network = torch.nn.Sequential(
    torch.nn.Conv2d(1, width // 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(width // 4, width // 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(width, width),
    torch.nn.Tanh(),
).to(device)


@torch.no_grad()
def embed(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of new images, in pieces, and their distributions."""
    pieces = [blends(min(50_000, n - start)) for start in range(0, n, 50_000)]
    features = torch.cat([network(mixed[:, None]) for mixed, _ in pieces])
    return features, torch.cat([D for _, D in pieces])


X, D = embed(n_train)
X_test, D_test = embed(n_test)
mean, spread = X.mean(dim=0), X.std(dim=0)
X, X_test = (X - mean) / spread, (X_test - mean) / spread  # a help to stochastic gradients; SABFGSCV needs none
print(f"{n_train:,} training rows of {X.shape[1]} features on {device}")


def now() -> float:
    """The time when all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def divergence(P: torch.Tensor) -> float:
    """Mean Kullback-Leibler divergence of predictions for the test rows, computed on the device."""
    with sklearn.config_context(array_api_dispatch=True):
        return kullback_leibler(D_test, P)


# %%
# The head as an estimator
# ------------------------
# ``predict`` returns a tensor on the same device. The first fit of a process also loads the libraries of the device, so
# that we fit once on few rows before the clock starts.

with sklearn.config_context(array_api_dispatch=True):
    SABFGSCV().fit(X[:1000], D[:1000])
    begin = now()
    head = SABFGSCV().fit(X, D)
    seconds = now() - begin
    goal = divergence(head.predict(X_test))
print(f"SABFGSCV: {seconds:.2f} s, penalty {head.alpha_:g} chosen among {len(head.alphas_)}; divergence {goal:.5f}")

# %%
# The same head in a training loop
# --------------------------------
# A linear layer with the cross-entropy loss and Adam or stochastic gradients with momentum, at three learning rates
# each, with a cosine schedule over 30 epochs. It need not choose a penalty: it trains without one. The clock stops
# while the test rows are judged. A run counts as done when its divergence is within 0.1 % of that above.


def train(optimizer: str, rate: float) -> tuple[list[float], list[float]]:
    """Seconds and divergence after each epoch."""
    layer = torch.nn.Linear(X.shape[1], D.shape[1]).to(device)
    kinds = {
        "Adam": lambda: torch.optim.Adam(layer.parameters(), lr=rate),
        "SGD": lambda: torch.optim.SGD(layer.parameters(), lr=rate, momentum=0.9),
    }
    steps, batch = kinds[optimizer](), 8192 if device.type == "cuda" else 128
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(steps, epochs)
    elapsed, times, losses = 0.0, [0.0], [float("nan")]
    for _ in range(epochs):
        begin = now()
        order = torch.randperm(len(X), device=device)
        for rows in torch.split(order, batch):
            steps.zero_grad()
            torch.nn.functional.cross_entropy(layer(X[rows]), D[rows]).backward()
            steps.step()
        schedule.step()
        elapsed += now() - begin
        with torch.no_grad():
            losses.append(divergence(torch.softmax(layer(X_test), dim=1)))
        times.append(elapsed)
    return times, losses


runs = {
    (name, rate): train(name, rate)
    for name, rates in {"Adam": (1e-3, 1e-2, 1e-1), "SGD": (0.1, 1.0, 10.0)}.items()
    for rate in rates
}
for (name, rate), (times, losses) in runs.items():
    reached = [t for t, loss in zip(times, losses, strict=True) if loss <= 1.001 * goal]
    when = f"there after {reached[0]:.2f} s" if reached else f"not there after {times[-1]:.2f} s"
    print(f"{name}, rate {rate:g}: {when}; best divergence {min(losses[1:]):.5f}")

# %%
# Divergence over time
# --------------------
# The estimator has one point: the time of its fit and its divergence.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, rate), (times, losses) in runs.items():
    style = {"Adam": "-", "SGD": "--"}[name]
    axes.plot(times[1:], [loss - goal for loss in losses[1:]], style, label=f"{name}, rate {rate:g}")
axes.axvline(seconds, color="black", label="SABFGSCV, penalty chosen too")
axes.axhline(0.001 * goal, color="grey", linewidth=1, linestyle=":")
axes.set_yscale("symlog", linthresh=1e-4)
axes.set_xlabel(f"seconds on {device.type}")
axes.set_ylabel("divergence above that of SABFGSCV")
axes.legend(fontsize="small")
plt.show()
