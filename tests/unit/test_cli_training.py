"""cli.training: the demo's network learns, with the same losses in every run."""

from minifuse.cli.training import train_digits


def test_it_learns_in_a_few_epochs():
    result = train_digits(seed=0, epochs=10)
    assert result.accuracy > 0.95
    assert len(result.losses) == 10
    assert result.losses[-1] < result.losses[0] / 5
    assert sum(p.size for p in result.model.parameters()) == 64 * 128 + 128 + 128 * 10 + 10


def test_equal_seeds_give_equal_losses():
    one, again, other = train_digits(1, 2), train_digits(1, 2), train_digits(2, 2)
    assert (one.losses, one.accuracy) == (again.losses, again.accuracy)
    assert one.losses != other.losses


def test_progress_is_reported_for_each_batch():
    told = []
    train_digits(seed=0, epochs=2, on_batch=lambda *what: told.append(what))
    assert [done for done, _, _ in told] == list(range(1, 47))
    assert {total for _, total, _ in told} == {46}
    assert told[-1][2] < told[0][2]
