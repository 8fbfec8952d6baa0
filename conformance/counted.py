"""Checks that are counted, for scripts that compare what two programs find."""


class Checks:
    """Counts checks, and prints those that fail."""

    def __init__(self):
        self.passed, self.failed = 0, 0

    def equal(self, what, found, expected):
        if found == expected:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED {what}: {str(found)[:300]}, expected {str(expected)[:300]}")
