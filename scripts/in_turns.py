"""Measures a thing without and with an addition, in turns, so that what else the machine does meets both."""

import statistics


def medians(runs, measure, show, name=""):
    """`measure` gets "without" or "with" and returns a number, `show` makes it a text. Prints a line for each run; returns the
    medians of the two."""
    numbers = {"without": [], "with": []}
    for run in range(runs):
        for kind in ["without", "with"] if run % 2 == 0 else ["with", "without"]:
            numbers[kind].append(measure(kind))
        print(f"{name}{run + 1}: without {show(numbers['without'][-1])}, with {show(numbers['with'][-1])}", flush=True)
    return statistics.median(numbers["without"]), statistics.median(numbers["with"])
