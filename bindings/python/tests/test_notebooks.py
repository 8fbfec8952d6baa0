"""The notebooks run from their first cell to their last, and results are shown as tables and drawings."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import mangrove
from mangrove import _display, _magic

FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"

#: What a notebook needs besides the packages of all tests. Without it, the notebook is left out.
NEEDS = {"5_graph_neural_networks": "torch_geometric"}


@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(notebook: pathlib.Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    if notebook.stem in NEEDS:
        pytest.importorskip(NEEDS[notebook.stem])
    document = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in document.cells), "notebooks are kept without outputs"
    nbclient.NotebookClient(document, timeout=300, kernel_name="python3").execute()


def test_results_are_shown_as_a_table(people: mangrove.Database) -> None:
    html = people.query("g.V().order().by(T.id)")._repr_html_()
    assert html.startswith("<table>") and html.count("<tr>") == 4 and "<th>age</th>" in html
    many = people.query("g.inject(0).repeat(union(identity(), identity())).times(5)")._repr_html_()
    assert many.count("<tr>") == 1 + _display.ROWS_MAX and "there are more" in many
    assert "no results" in people.query("g.V().has('name', 'nobody')")._repr_html_()
    assert "&lt;b&gt;" in people.query("g.inject('<b>')")._repr_html_(), "text is no HTML"


def test_small_graphs_are_drawn_and_large_ones_in_part(db: mangrove.Database, people: mangrove.Database) -> None:
    drawing = people.query("g.E()")._repr_html_()
    assert drawing.count("<circle") == 3 + 1 and drawing.count("<line") == 2 and ">knows<" in drawing
    assert people.query("g.E()")._repr_html_() == drawing, "the same graph is drawn alike"
    assert people.query("g.V(1).out().path()").first()._repr_html_().count("<line") == 1
    subgraph = people.query("g.E().subgraph('s').cap('s')").one()
    assert "ada" in subgraph._repr_html_()
    with mangrove.open() as large:
        large.query("g.addV('hub').property(T.id, 0)")
        for number in range(1, 200):
            large.query("g.V(0).as('h').addV('leaf').property(T.id, n).addE('to').from('h')", n=number)
        whole = large.query("g.E().subgraph('s').cap('s')").one()._repr_html_()
        assert f"a part of 200 vertices and 199 edges: {_display.VERTICES_MAX} vertices" in whole


class Shell:
    """What the magic needs of IPython."""

    def __init__(self, **names: Any) -> None:
        self.user_ns = names

    def ev(self, expression: str) -> Any:
        return eval(expression, {}, self.user_ns)


def test_the_magic(people: mangrove.Database, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(db=people, other=people, name="ada")
    assert _magic.gremlin(shell, "", "g.V().count()\n").one() == 3
    assert _magic.gremlin(shell, "other -p name -p 'least=30 + 5'", "g.V().has('name', name).has('age', gt(least)).count()").one() == 1
    assert _magic.gremlin(shell, "-o found", "g.V().values('name').order()") is None
    assert shell.user_ns["found"] == ["ada", "bob", "cyd"]
    _magic.gremlin(shell, "--explain", "g.V()")
    _magic.gremlin(shell, "--profile", "g.V()")
    assert "rows out" in capsys.readouterr().out
    with pytest.raises(mangrove.RequestError, match="the variable nothing has no open database"):
        _magic.gremlin(shell, "nothing", "g.V()")
    with pytest.raises(mangrove.RequestError, match="usage: %%gremlin"):
        _magic.gremlin(shell, "--wrong", "g.V()")
