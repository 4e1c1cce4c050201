"""Train a small network on handwritten digits, and say how many it reads right.

    python project/run_digits.py                    one network, with a line an epoch
    python project/run_digits.py --seeds 5          five of them, a line each

The training itself, to be read first, is `minifuse/training/loop.py`. It needs `pip install "minifuse[cli]"`.
"""

import argparse

from minifuse.cli.training import TrainingResult, train_digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="how often each digit is seen (40)")
    parser.add_argument("--seeds", type=int, default=1, help="how many networks to train (1)")
    parser.add_argument("--backend", help="what computes (the default backend)")
    options = parser.parse_args()
    for seed in range(options.seeds):
        result = train_digits(seed, options.epochs, backend=options.backend)
        if options.seeds == 1:
            tell_losses(result)
        tell(seed, result)


def tell_losses(result: TrainingResult) -> None:
    """A line an epoch, with a bar as long as its loss is large."""
    largest = max(result.losses)
    for epoch, loss in enumerate(result.losses, start=1):
        print(f"epoch {epoch:3}   loss {loss:.4f} {'#' * round(50 * loss / largest)}")


def tell(seed: int, result: TrainingResult) -> None:
    print(f"seed {seed}: {result.accuracy:.1%} of the held-out digits read right, after {result.seconds:.2f} s of training")


if __name__ == "__main__":
    main()
