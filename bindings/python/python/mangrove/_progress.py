"""Progress of long work: a line in a terminal, a bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Optional, Union

#: What a caller says about progress: whether to show it, or a function that is told.
Progress = Union[None, bool, Callable[..., None]]

#: Work that ends within this time shows nothing, in seconds.
_QUIET = 0.5
_WIDTH = 30


class Bar:
    """Shows how far some work has come, and takes itself away at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._display: Any = None
        self._is_shown = False
        self._shell = _notebook()

    def show(self, done: int, all: int, unit: str, phase: str = "") -> None:
        """Shows that so many of so many units are done; 0 means that it is not known how many there are."""
        if time.monotonic() - self._begun < _QUIET:
            return
        share = min(done / all, 1.0) if all > 0 else 0.0
        text = f"{self._what}{': ' + phase if phase else ''}"
        count = f"{done:,} of {all:,} {unit}" if all > 0 else f"{done:,} {unit}"
        if self._shell is not None:
            from html import escape

            content = {"text/html": f"{escape(text)} <progress value='{share:.3f}' max='1'></progress> {count}", "text/plain": f"{text} {count}"}
            if self._display is None:
                from IPython.display import display

                show: Any = display
                self._display = show(content, raw=True, display_id=True)
            else:
                self._display.update(content, raw=True)
        else:
            filled = int(_WIDTH * share)
            sys.stderr.write(f"\r\x1b[K{text} [{'#' * filled}{'.' * (_WIDTH - filled)}] {count}")
            sys.stderr.flush()
        self._is_shown = True

    def end(self) -> None:
        """Takes the bar away."""
        if not self._is_shown:
            return
        if self._display is not None:
            self._display.update({"text/plain": "", "text/html": ""}, raw=True)
        elif self._shell is None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _notebook() -> Any:
    """The shell of a notebook; ``None`` in a terminal and elsewhere."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell if type(shell).__name__ == "ZMQInteractiveShell" else None


def wanted(progress: Progress, what: str) -> tuple[Optional[Bar], Optional[Callable[..., None]]]:
    """The bar that is shown, or the function that is told."""
    if callable(progress):
        return None, progress
    if progress is None:
        progress = _notebook() is not None or sys.stderr.isatty()
    return (Bar(what), None) if progress else (None, None)
