"""Trains a convolutional network to read handwritten digits (data/README.md), the PyTorch way.

    python -m gradwire digits.py [--epochs N] [--seed N] [--checkpoint FILE] [--curve FILE]

Nothing in here knows Gradwire: the same file runs on PyTorch with `python digits.py`.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

DATA = Path(__file__).parent / "data" / "digits.npz"


def load_digits():
    """Images (1797, 1, 8, 8) float32 in [0, 1] and labels (1797,) int64."""
    with np.load(DATA) as data:
        images = torch.from_numpy(data["images"].astype(np.float32)[:, None] / 16)
        labels = torch.from_numpy(data["labels"].astype(np.int64))
    return images, labels


def split(count, seed):
    """Indices of a training part and of a held-out fifth."""
    order = np.random.default_rng(seed).permutation(count)
    held_out = count // 5
    return torch.from_numpy(order[held_out:]), torch.from_numpy(order[:held_out])


def make_network(dropout=0.25):
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def train(model, loader, epochs, lr=1e-3, show_progress=True):
    """Returns the loss of every step, as floats."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    model.train()
    with tqdm(total=epochs * len(loader), unit="step", disable=not show_progress) as bar:
        for epoch in range(epochs):
            steps = []
            for images, labels in loader:
                loss = F.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps.append(loss.detach())
                bar.update()
            # One read an epoch: a value that nobody waits for costs no round trip.
            losses += torch.stack(steps).tolist()
            bar.set_postfix(epoch=epoch + 1, loss=f"{np.mean(losses[-len(steps) :]):.4f}")
    return losses


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def save_checkpoint(model, path):
    from safetensors.numpy import save_file

    state = model.state_dict()
    save_file({name: tensor.cpu().numpy() for name, tensor in state.items()}, path)


def save_curve(losses, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    smooth = np.convolve(losses, np.ones(10) / 10, mode="valid")
    figure, axes = plt.subplots(figsize=(7, 4), dpi=110)
    axes.plot(losses, color="0.75", linewidth=0.8, label="loss of a step")
    axes.plot(np.arange(len(smooth)) + 9, smooth, color="C0", label="mean of ten")
    axes.set(xlabel="step", ylabel="cross entropy", yscale="log", title="Handwritten digits")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="where to write the weights (safetensors)")
    parser.add_argument("--curve", type=Path, help="where to write the loss curve (PNG)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    images, labels = load_digits()
    training, held_out = split(len(images), options.seed)
    dataset = TensorDataset(images[training], labels[training])
    model = make_network()
    losses = train(
        model, DataLoader(dataset, options.batch_size, shuffle=True), epochs=options.epochs
    )
    print(f"test accuracy: {accuracy(model, images[held_out], labels[held_out]):.2%}")
    if options.checkpoint:
        save_checkpoint(model, options.checkpoint)
        print(f"checkpoint: {options.checkpoint}")
    if options.curve:
        save_curve(losses, options.curve)
        print(f"loss curve: {options.curve}")


if __name__ == "__main__":
    main()
