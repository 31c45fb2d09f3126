"""What the attacks share: a time limit, and a campaign that counts how each case ended."""

import signal
from collections import Counter
from contextlib import contextmanager

import pytest


class Campaign:
    """Counts of how the cases ended, and a line for each that ended neither in a clear error nor in a right result."""

    def __init__(self):
        self.counts = Counter()
        self.found = []

    @contextmanager
    def limited(self, seconds):
        """Turn a hang into a TimeoutError, and count the case."""

        def stop(*_):
            raise TimeoutError

        self.counts["tried"] += 1
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(seconds)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def judge(self, verdict, what):
        self.counts[verdict] += 1
        if verdict not in ("clear", "right"):
            self.found.append(f"{verdict}: {what}")


@pytest.fixture
def campaign():
    """An attack of one test, which fails if anything was found."""
    campaign = Campaign()
    yield campaign
    print(dict(campaign.counts))  # pytest -rP shows it
    assert not campaign.found, f"{dict(campaign.counts)}\n" + "\n".join(campaign.found)
