"""Train a small network on handwritten digits, and print its accuracy.

    python project/run_digits.py                    one network, with a line per epoch
    python project/run_digits.py --seeds 5          five networks, with a line each

The training loop, which you should read first, is `minifuse/training/loop.py`.
"""

import argparse

from minifuse.cli.training import TrainingResult, train_digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="number of epochs (40)")
    parser.add_argument("--seeds", type=int, default=1, help="number of networks to train (1)")
    parser.add_argument("--backend", help="backend to use (the default backend)")
    options = parser.parse_args()
    for seed in range(options.seeds):
        result = train_digits(seed, options.epochs, backend=options.backend)
        if options.seeds == 1:
            print_losses(result)
        print_result(seed, result)


def print_losses(result: TrainingResult) -> None:
    """Print a line per epoch, with a bar proportional to the loss."""
    largest = max(result.losses)
    for epoch, loss in enumerate(result.losses, start=1):
        print(f"epoch {epoch:3}   loss {loss:.4f} {'#' * round(50 * loss / largest)}")


def print_result(seed: int, result: TrainingResult) -> None:
    print(f"seed {seed}: {result.accuracy:.1%} of the held-out digits are right, after {result.seconds:.2f} s of training")


if __name__ == "__main__":
    main()
