"""Records the first 50 steps of clients/python/examples/digits.py into tests/data/digits.*.

Dropout is off (p = 0) and the batches are given, so that a run depends on nothing random.
digits.json: the learning rate, `batches` (indices into digits.npz), per run the losses, and per
step the bound. digits.safetensors: the state at the start.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from record import bounds, run_all, write

sys.path.insert(0, str(Path(__file__).parents[2] / "clients" / "python" / "examples"))
import digits  # noqa: E402

STEPS = 50
BATCH_SIZE = 64
LEARNING_RATE = 1e-3


def make_batches(training, generator):
    """Batches as a shuffling loader yields them: every image once an epoch, the rest last."""
    batches = []
    while len(batches) < STEPS:
        order = training[torch.randperm(len(training), generator=generator)]
        batches += [batch.tolist() for batch in order.split(BATCH_SIZE)]
    return batches[:STEPS]


def train(initial, batches, dtype):
    images, labels = digits.load_digits()
    images = images.to(dtype)
    model = digits.make_network(dropout=0.0).to(dtype)
    model.load_state_dict(initial)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for batch in batches:
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(0)
    initial = {k: v.clone() for k, v in digits.make_network().state_dict().items()}
    images, _ = digits.load_digits()
    training, _ = digits.split(len(images), seed=0)
    batches = make_batches(training, torch.Generator().manual_seed(0))
    runs = run_all(lambda dtype: train(initial, batches, dtype))
    facts = {"lr": LEARNING_RATE, "losses": runs, "bounds": bounds(runs), "batches": batches}
    write("digits", facts, initial)


if __name__ == "__main__":
    main()
