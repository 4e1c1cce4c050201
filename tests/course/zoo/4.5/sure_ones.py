"""only labels with more than one half count"""


def count_right(likely, labels):
    count = 0
    for row, label in zip(likely.tolist(), labels):
        count += row[label] > -0.6931
    return count
