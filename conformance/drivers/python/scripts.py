"""Scripts of several statements: one request, one transaction, with variables."""

from cases import WRITABLE_SOURCE
from checks import Check, expect, expect_error

EVALUATION_ERROR = 597
INVALID_ARGUMENT = 499


class Scripts:
    """The checks, each over an empty graph."""

    def __init__(self, server):
        self.server = server

    def submit(self, text):
        """The results of a script."""
        return self.server.submit(text, WRITABLE_SOURCE)

    def variables_hold_elements(self):
        """The result of a statement is bound to its variable for later statements; the script returns the results of
        the last one."""
        names = self.submit("""
            ada = g.addV('person').property('name', 'ada').next() // the first
            bob = g.addV('person').property('name', 'bob').next(); since = 1999
            g.addE('knows').from(ada).to(bob).property('since', since).iterate()
            g.V(ada).out('knows').values('name')
        """)
        expect(names == ["bob"], f"got {names}")
        expect(self.submit("g.E().values('since')") == [1999], "the edge is not there")
        everyone = self.submit("everyone = g.V().toList(); g.V(everyone).count()")
        expect(everyone == [2], f"got {everyone}")

    def a_name_alone_is_its_value(self):
        """If a variable holds a list, its items are sent as single results."""
        names = self.submit("names = g.inject('b', 'a').order().toList(); names")
        expect(names == ["a", "b"], f"got {names}")

    def a_failure_undoes_all(self):
        """If a statement fails, the earlier ones are rolled back, and the error names statement, line and column."""
        expect_error(lambda: self.submit("g.addV('x').iterate()\n  g.inject('a').sum()"), {EVALUATION_ERROR},
                     "statement 2 (line 2, column 3)")
        expect_error(lambda: self.submit("g.addV('x').iterate(); a = g.V().has('n', 1).next(); g.V(a)"),
                     {EVALUATION_ERROR}, "statement 2 (line 1, column 24)", "no result")
        expect(self.submit("g.V().count()") == [0], "a failed script left a vertex")

    def several_transactions_if_it_says_so(self):
        """`g.tx().commit()` in a script ends a transaction; later errors do not undo it."""
        expect_error(lambda: self.submit("g.addV('x').iterate(); g.tx().commit(); g.addV('x').fail('no')"),
                     {EVALUATION_ERROR, 595}, "statement 3")
        expect(self.submit("g.V().count()") == [1], "the graph must have exactly the committed vertex")

    def checks(self):
        """All checks."""
        def emptied(method):
            def run():
                self.server.empty(WRITABLE_SOURCE)
                method()
            return run

        methods = [self.variables_hold_elements, self.a_name_alone_is_its_value, self.a_failure_undoes_all,
                   self.several_transactions_if_it_says_so]
        return [Check("script", m.__name__.replace("_", " "), emptied(m)) for m in methods]
