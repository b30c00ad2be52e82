"""Records a linear regression of salaries on age and years of work into tests/data/salary.*.

salary.json: the table (salaries in hundreds of thousands), the settings, per run the losses of
the 50 epochs, and per epoch the bound. salary.safetensors: `weight` and `bias` at the start.
"""

import torch
from record import bounds, run_all, write
from torch import nn

AGES = [40, 22, 55, 30, 45, 60, 35, 28, 50]
YEARS = [10, 2, 16, 6, 12, 18, 8, 4, 14]
SALARIES = [140, 89, 181, 113, 154, 194, 127, 104, 167]
EPOCHS = 50
LEARNING_RATE = 0.05


def train(initial, dtype):
    table = torch.tensor(list(zip(AGES, YEARS, strict=True)), dtype=dtype)
    inputs = (table - table.mean(0)) / table.std(0)
    targets = torch.tensor(SALARIES, dtype=dtype).unsqueeze(1) / 100
    model = nn.Linear(2, 1).to(dtype)
    model.load_state_dict(initial)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for _ in range(EPOCHS):
        loss = nn.MSELoss()(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(0)
    initial = nn.Linear(2, 1).state_dict()
    runs = run_all(lambda dtype: train(initial, dtype))
    facts = {
        "ages": AGES,
        "years": YEARS,
        "salaries": SALARIES,
        "epochs": EPOCHS,
        "lr": LEARNING_RATE,
        "losses": runs,
        "bounds": bounds(runs),
    }
    write("salary", facts, initial)


if __name__ == "__main__":
    main()
