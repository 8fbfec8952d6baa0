"""Tables as those of other libraries. Each is imported when it is asked for, so that the package needs none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from ._mangrove import Results, Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: What a table can be made of.
Tabular = Union[Table, Results]


def _missing(package: str, extra: str, error: ImportError) -> ImportError:
    return ImportError(f"this needs the package {package}: pip install 'mangrove-graph[{extra}]' ({error})")


def _table(given: Tabular, options: dict[str, Any]) -> Table:
    return given.table(**options) if isinstance(given, Results) else given


def arrow(given: Tabular, **options: Any) -> "pyarrow.Table":
    """A table of pyarrow, without a copy."""
    try:
        import pyarrow
    except ImportError as error:
        raise _missing("pyarrow", "arrow", error) from None
    return pyarrow.table(_table(given, options))


def df(given: Tabular, **options: Any) -> "pandas.DataFrame":
    """A frame of pandas."""
    try:
        import pandas  # noqa: F401 - pyarrow makes the frame, and its error would name no way out
    except ImportError as error:
        raise _missing("pandas", "pandas", error) from None
    return arrow(given, **options).to_pandas(split_blocks=True, self_destruct=True)


def pl(given: Tabular, **options: Any) -> "polars.DataFrame":
    """A frame of polars, without a copy."""
    try:
        import polars
    except ImportError as error:
        raise _missing("polars", "polars", error) from None
    return polars.DataFrame(_table(given, options))


def numpy(given: Tabular, **options: Any) -> dict[str, Any]:
    """Arrays of NumPy, by column. Columns of numbers without gaps, in one piece, are not copied."""
    table = arrow(given, **options)
    arrays = {}
    for name, column in zip(table.column_names, table.columns):
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        arrays[name] = whole.to_numpy(zero_copy_only=False)
    return arrays


def rows(given: Tabular, **options: Any) -> list[dict[str, Any]]:
    """A list of dictionaries."""
    found: list[dict[str, Any]] = arrow(given, **options).to_pylist()
    return found


def html(table: Table) -> str:
    """The first rows, for notebooks. Without pyarrow, the columns only."""
    from html import escape

    from . import _display

    try:
        import pyarrow
    except ImportError:
        return f"<p>{escape(repr(table))}</p>"
    shown = pyarrow.table(table).slice(0, _display.ROWS_MAX).to_pylist()
    more = len(table) - len(shown)
    note = f"<p><i>the first {len(shown)} of {len(table)} rows</i></p>" if more > 0 else ""
    return (_display.table(shown) if shown else f"<p><i>{escape(repr(table))}</i></p>") + note
