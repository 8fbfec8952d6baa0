//! Queries that compose functions of texts, lists, maps, numbers and sacks over nested values.
//!
//! The input's bytes choose: each byte picks one of the alternatives at its place in the query. When no bytes are left,
//! every choice takes the first alternative, so the first alternatives must lead to an end of the query. Thus every
//! sequence of bytes makes a query that parses, and a changed byte changes one place of the query.

/// A query of this many bytes gets no further step.
const LENGTH_MAX: usize = 2_000;

/// The largest nesting depth of values and traversals.
const DEPTH_MAX: usize = 4;

/// The simple values.
const LITERALS: &[&str] = &[
    "1",
    "null",
    "true",
    "0",
    "-1",
    "127b",
    "32767s",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
    "100000000000000000000000000000000n",
    "0.1",
    "1e308d",
    "1e-400m",
    "NaN",
    "Infinity",
    "''",
    "'a'",
    "'a,b,,c'",
    "' \u{e9}\u{1f600}  '",
    "'9999999999999999999999'",
];

/// Further values. `x` and `y` are bound: a text of a thousand letters, and a list of a thousand numbers.
const LEAVES: &[&str] =
    &["x", "y", "'%{a}'", "datetime('2020-01-01T00:00:00Z')", "UUID('41d2e28a-20a4-4ab0-b379-d810dede3786')", "1..100"];

const TEXTS: &[&str] = &["'a'", "''", "' '", "x", "'ab'", "'\u{e9}'", "'%{a}%{a}'"];

const INTEGERS: &[&str] = &["0", "1", "2", "-1", "7", "2147483647", "-2147483648"];

/// Numbers of repetitions. A step that doubles its input makes a million of it in twenty.
const COUNTS: &[&str] = &["1", "2", "3", "5", "8", "13", "20", "1000000"];

const BY: &[&str] = &[".by()", ".by(%t)", ".by(Column.keys)", ".by('a')", ""];

const ORDER: &[&str] = &["", ".by(Order.desc)", ".by(%t,Order.desc)", ".by(%t)", ".by(Order.shuffle)"];

const SOURCES: &[&str] = &[
    "g.inject(%v)",
    "g.inject(%v,%v,%v)",
    "g.withSack(%v).inject(%v)",
    "g.withSack(%v,%o).inject(%v,%v)",
    "g.withSideEffect('m',%v).inject(%v)",
    "g.V().values('name')",
    "g.V()",
];

const OPERATORS: &[&str] = &["sum", "mult", "minus", "div", "max", "min", "assign", "addAll", "sumLong", "and", "or"];

/// Steps, with placeholders: %v a value, %x a text, %i an integer, %c a count, %t a traversal, %l a value or a
/// traversal, %b an optional `by()`, %r the modulator of `order()`, %o an operator, %p a condition. Steps that enlarge
/// their input come first, because [`Composer::below`] chooses the first ones more often.
const STEPS: &[&str] = &[
    ".identity()",
    ".repeat(union(identity(),identity())).times(%c)",
    ".asString().repeat(as('s').concat(select('s'))).times(%c)",
    ".constant(x).replace('x',x)",
    ".fold().as('l').product(select('l'))",
    ".repeat(sack(%o).by(sack())).times(%c)",
    ".repeat(sack(%o).by(%t)).times(%c)",
    ".repeat(__.fold().as('f').combine(select('f'))).times(%c)",
    ".repeat(project('a','b').by(%t).by(%t)).times(%c)",
    ".repeat(__.asString().format('%{a}%{a}').as('a')).times(%c)",
    ".repeat(math('_*_+1')).times(%c)",
    ".constant(%v)",
    ".inject(%v)",
    ".fold()",
    ".unfold()",
    ".as('a')",
    ".as('b')",
    ".select('a')",
    ".select(Pop.all,'a')",
    ".select('a','b')%b",
    ".select(Column.keys)",
    ".select(Column.values)",
    ".repeat(%t).times(%c)",
    ".repeat(%t).emit().times(%c)",
    ".repeat(%t).until(%t)",
    ".union(%t,%t)",
    ".map(%t)",
    ".flatMap(%t)",
    ".local(%t)",
    ".optional(%t)",
    ".coalesce(%t,%t)",
    ".choose(%t,%t,%t)",
    ".where(%t)",
    ".not(%t)",
    ".is(%p)",
    ".asString().concat(%x)",
    ".asString().concat(%t)",
    ".concat(%t,%t)",
    ".split(%x)",
    ".split(Scope.local,%x)",
    ".replace(%x,%x)",
    ".replace(Scope.local,%x,%x)",
    ".substring(%i)",
    ".substring(Scope.local,%i,%i)",
    ".format('%{a}%{b}%{_}')%b",
    ".toUpper()",
    ".toLower(Scope.local)",
    ".trim()",
    ".lTrim(Scope.local)",
    ".rTrim()",
    ".reverse()",
    ".length()",
    ".length(Scope.local)",
    ".asString()",
    ".asString(Scope.local)",
    ".asNumber()",
    ".asNumber(GType.BIGDECIMAL)",
    ".asNumber(GType.BYTE)",
    ".asBool()",
    ".asDate()",
    ".constant(datetime('2020-01-01T00:00:00Z')).dateAdd(DT.day,%i)",
    ".dateDiff(%t)",
    ".fold().combine(%l)",
    ".combine(%t)",
    ".fold().merge(%l)",
    ".merge(%t)",
    ".fold().intersect(%l)",
    ".fold().difference(%l)",
    ".fold().disjunct(%l)",
    ".fold().product(%l)",
    ".product(%t)",
    ".fold().conjoin(%x)",
    ".all(%p)",
    ".any(%p)",
    ".none(%p)",
    ".order(Scope.local)%r",
    ".order()%r",
    ".dedup(Scope.local)",
    ".dedup()%b",
    ".range(Scope.local,%i,%i)",
    ".limit(Scope.local,%c)",
    ".limit(%c)",
    ".tail(Scope.local,%c)",
    ".tail(%c)",
    ".sample(Scope.local,%c)",
    ".sum()",
    ".sum(Scope.local)",
    ".min(Scope.local)",
    ".max(Scope.local)",
    ".mean(Scope.local)",
    ".count()",
    ".count(Scope.local)",
    ".index()",
    ".index().with(WithOptions.indexer,WithOptions.map)",
    ".math('_*_')",
    ".math('_^_+sin(a)')%b",
    ".project('a','b')%b%b",
    ".group()%b%b",
    ".groupCount()%b",
    ".group('g')%b%b",
    ".aggregate('m')",
    ".aggregate(Scope.local,'m')%b",
    ".cap('m')",
    ".sack()",
    ".sack(%o)%b",
    ".barrier()",
    ".path()%b",
    ".simplePath()",
    ".tree()%b",
    ".valueMap()",
    ".valueMap(true)%b",
    ".elementMap()",
    ".both()",
    ".loops()",
];

const CONDITIONS: &[&str] = &[
    "gt(%v)",
    "eq(%v)",
    "neq(%v)",
    "lte(%v)",
    "within(%v,%v)",
    "without(%v)",
    "between(%v,%v)",
    "TextP.containing(%x)",
    "TextP.startingWith(%x).negate()",
    "TextP.regex('(a+)+b')",
    "P.typeOf(GType.LIST)",
    "gt(%v).and(lt(%v)).or(eq(%v))",
];

/// The query that these bytes choose.
pub fn query(bytes: &[u8]) -> String {
    let mut composer = Composer { bytes: bytes.iter(), text: String::new(), depth: 0 };
    composer.one_of(SOURCES);
    while composer.has_room() {
        composer.one_of(STEPS);
    }
    composer.text
}

struct Composer<'a> {
    bytes: std::slice::Iter<'a, u8>,
    text: String,
    depth: usize,
}

impl Composer<'_> {
    fn has_room(&self) -> bool {
        self.bytes.len() > 0 && self.text.len() < LENGTH_MAX
    }

    /// A number below `count`; 0 if no bytes are left. If `count` does not divide 256, small numbers come more often.
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    fn one_of(&mut self, templates: &'static [&'static str]) {
        let template = templates[self.below(templates.len())];
        self.expand(template);
    }

    /// Writes a template, with a choice in place of each placeholder.
    fn expand(&mut self, template: &str) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('%') {
            self.text.push_str(before);
            self.depth += 1;
            rest = match after.as_bytes().first().is_some_and(|letter| self.choose(*letter)) {
                true => &after[1..],
                // The percent sign belongs to the pattern of a `format()`.
                false => {
                    self.text.push('%');
                    after
                }
            };
            self.depth -= 1;
        }
        self.text.push_str(rest);
    }

    /// Writes a choice for the placeholder with this letter. Returns false if the letter is no placeholder.
    fn choose(&mut self, letter: u8) -> bool {
        match letter {
            b'v' => self.value(),
            b'x' => self.one_of(TEXTS),
            b'i' => self.one_of(INTEGERS),
            b'c' => self.one_of(COUNTS),
            b't' => self.traversal(),
            b'l' if self.below(2) == 0 => self.value(),
            b'l' => self.traversal(),
            b'b' => self.one_of(BY),
            b'r' => self.one_of(ORDER),
            b'o' => {
                self.text.push_str("Operator.");
                self.one_of(OPERATORS);
            }
            b'p' => self.one_of(CONDITIONS),
            _ => return false,
        }
        true
    }

    fn traversal(&mut self) {
        self.text.push_str("__");
        let count = if self.depth < DEPTH_MAX && self.has_room() { 1 + self.below(3) } else { 0 };
        if count == 0 {
            self.text.push_str(".identity()");
        }
        for _ in 0..count {
            self.one_of(STEPS);
        }
    }

    fn value(&mut self) {
        let collection = if self.depth < DEPTH_MAX && self.has_room() { self.below(8) } else { 0 };
        match collection {
            1 | 2 => self.several("[", Self::value, "]"),
            // A set in a script may hold only literals.
            3 => self.several("{", |composer| composer.one_of(LITERALS), "}"),
            4 | 5 => self.several("[", Self::entry, "]"),
            6 => self.one_of(LEAVES),
            _ => self.one_of(LITERALS),
        }
    }

    /// An entry of a map.
    fn entry(&mut self) {
        self.text.push('(');
        self.value();
        self.text.push_str("):");
        self.value();
    }

    /// Writes one to four parts between brackets, with commas between.
    fn several(&mut self, open: &str, one: fn(&mut Self), close: &str) {
        self.text.push_str(open);
        self.depth += 1;
        for number in 0..=self.below(4) {
            if number > 0 {
                self.text.push(',');
            }
            one(self);
        }
        self.depth -= 1;
        self.text.push_str(close);
    }
}
