//! Completion: the words that may stand at a position of an input.
//!
//! Words of the language come from the tables of the parser, names of labels and keys from the graph. The text before
//! the cursor is an incomplete statement, so it is not parsed. What counts is what the unfinished word follows: a
//! point, a quote, or a bracket and the step before it.

use mangrove_gremlin::vocabulary;

use super::command;
use super::words::CompletionWords;

/// The steps whose text arguments are labels.
const LABEL_STEPS: &[&str] = &["hasLabel", "out", "in", "both", "outE", "inE", "bothE", "toE", "to", "addV", "addE"];
/// The steps whose text arguments are neither labels nor keys.
const OTHER_STEPS: &[&str] =
    &["as", "select", "aggregate", "cap", "constant", "inject", "is", "eq", "neq", "format", "math"];

/// The start of the unfinished word before the cursor, and its sorted completions.
pub fn complete(before: &str, words: &CompletionWords) -> (usize, Vec<String>) {
    let word = UnfinishedWord::of(before);
    let start = word.start;
    let mut found = word.candidates(before, words);
    found.retain(|word| word.starts_with(&before[start..]) && word.len() > before[start..].len());
    found.sort_unstable();
    found.dedup();
    (start, found)
}

/// The unfinished word at the cursor, and its context.
struct UnfinishedWord<'a> {
    /// The byte at which it begins in the text.
    start: usize,
    /// The steps whose brackets are open, outermost first; an empty name for brackets without a step.
    open: Vec<&'a str>,
    /// True if it is inside quotes.
    is_quoted: bool,
}

impl<'a> UnfinishedWord<'a> {
    fn of(before: &'a str) -> Self {
        let mut open = Vec::new();
        let mut quote: Option<(char, usize)> = None;
        let mut characters = before.char_indices();
        // The start of the word that is being read, if one is.
        let mut word: Option<usize> = None;
        while let Some((at, c)) = characters.next() {
            if let Some((mark, _)) = quote {
                match c {
                    '\\' => drop(characters.next()),
                    c if c == mark => quote = None,
                    _ => {}
                }
                continue;
            }
            if is_part(c) {
                word.get_or_insert(at);
                continue;
            }
            let last_word = word.take().map_or("", |start| &before[start..at]);
            match c {
                '\'' | '"' => quote = Some((c, at + 1)),
                '(' => open.push(last_word),
                '[' | '{' => open.push(""),
                ')' | ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
        let start = quote.map(|(_, start)| start).or(word).unwrap_or(before.len());
        UnfinishedWord { start, open, is_quoted: quote.is_some() }
    }

    /// The step in whose arguments it stands.
    fn step(&self) -> &'a str {
        self.open.iter().rev().find(|step| !step.is_empty()).copied().unwrap_or("")
    }

    fn candidates(&self, before: &str, words: &CompletionWords) -> Vec<String> {
        if let Some(command) = before.trim_start().strip_prefix(':') {
            match command.split_once(char::is_whitespace) {
                None => return command::COMMANDS.iter().map(|command| command.name.to_owned()).collect(),
                Some(("format", _)) => return command::formats(),
                Some(("source" | "begin", _)) => return words.sources.clone(),
                Some(("explain" | "profile", _)) => {}
                Some(_) => return Vec::new(),
            }
        }
        if self.is_quoted {
            return self.texts(words);
        }
        let head = before[..self.start].trim_end();
        match head.strip_suffix('.') {
            Some(head) => self.members(head.trim_end(), words),
            None if self.open.is_empty() => [words.sources.as_slice(), &words.variables].concat(),
            None => arguments(words),
        }
    }

    /// Completions inside quotes.
    fn texts(&self, words: &CompletionWords) -> Vec<String> {
        match self.step() {
            "call" => words.services.clone(),
            // The first argument may be a label or a key.
            "has" => [words.keys.as_slice(), &words.labels].concat(),
            step if LABEL_STEPS.contains(&step) => words.labels.clone(),
            step if OTHER_STEPS.contains(&step) => Vec::new(),
            _ => words.keys.clone(),
        }
    }

    /// Completions after a point.
    fn members(&self, head: &str, words: &CompletionWords) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let name_start =
            head.rfind(|c| !is_part(c)).map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let name = &head[name_start..];
        if self.open.is_empty() && words.sources.iter().any(|source| source == name) {
            return [owned(vocabulary::start_steps()), owned(vocabulary::source_methods()), vec!["tx".to_owned()]]
                .concat();
        }
        if vocabulary::qualifiers().contains(&name) {
            return owned(&vocabulary::members(name));
        }
        let mut steps = owned(vocabulary::steps());
        if self.open.is_empty() {
            steps.extend(owned(vocabulary::terminals()));
        }
        steps
    }
}

/// Completions at the start of an argument.
fn arguments(words: &CompletionWords) -> Vec<String> {
    let tokens = vocabulary::members("T").into_iter().chain(vocabulary::members("Order"));
    let names = vocabulary::steps().iter().copied().chain(vocabulary::predicates());
    let names = names.chain(vocabulary::qualifiers().iter().copied()).chain(tokens);
    let names = names.chain(mangrove::strategy_names().iter().copied());
    names.map(str::to_owned).chain(words.variables.iter().cloned()).collect()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> CompletionWords {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CompletionWords {
            labels: owned(&["person", "knows"]),
            keys: owned(&["name", "number of legs"]),
            sources: owned(&["g", "gsi"]),
            services: owned(&["mangrove.stats"]),
            variables: owned(&["ada"]),
        }
    }

    #[track_caller]
    fn check(before: &str, expected: &[&str]) {
        let (start, found) = complete(before, &words());
        let whole: Vec<String> = found.iter().map(|word| format!("{}{word}", &before[..start])).collect();
        assert_eq!(whole, expected, "{before}");
    }

    #[test]
    fn steps_follow_points() {
        check("g.V().hasL", &["g.V().hasLabel"]);
        check("g.V().toLi", &["g.V().toList"]);
        check("g.add", &["g.addE", "g.addV"]);
        check("g.withSt", &["g.withStrategies"]);
        check("gsi.me", &["gsi.mergeE", "gsi.mergeV"]);
        check("g.V()\n  .valueM", &["g.V()\n  .valueMap"]);
        // Terminals end whole traversals only.
        check("g.V().where(__.out().toLi", &[]);
        check("g.V().where(__.simpleP", &["g.V().where(__.simplePath"]);
    }

    #[test]
    fn members_follow_qualifiers() {
        check("g.V().order().by('name', Order.de", &["g.V().order().by('name', Order.desc"]);
        check("g.V().has('age', P.with", &["g.V().has('age', P.within", "g.V().has('age', P.without"]);
        check("g.withStrategies(Read", &["g.withStrategies(ReadOnlyStrategy"]);
        check("g.V().has('age', betw", &["g.V().has('age', between"]);
        check("g.V(ad", &["g.V(ada", "g.V(addE", "g.V(addV"]);
    }

    #[test]
    fn names_of_the_graph_stand_in_quotes() {
        check("g.V().hasLabel('per", &["g.V().hasLabel('person"]);
        check("g.V().out(\"kn", &["g.V().out(\"knows"]);
        check("g.V().values('number of", &["g.V().values('number of legs"]);
        check("g.V().has('person', 'na", &["g.V().has('person', 'name"]);
        check("g.V().hasLabel('na", &[]);
        check("g.V().as('na", &[]);
        check("g.V().has('x\\'(', within(['na", &["g.V().has('x\\'(', within(['name"]);
        check("g.call('mangrove.st", &["g.call('mangrove.stats"]);
    }

    #[test]
    fn inputs_begin_with_sources_variables_and_commands() {
        check("gs", &["gsi"]);
        check("x = g", &["x = gsi"]);
        check("ad", &["ada"]);
        check(":prof", &[":profile"]);
        check(":format cs", &[":format csv"]);
        check(":explain g.V().hasN", &[":explain g.V().hasNext", ":explain g.V().hasNot"]);
        // Places are counted in bytes, and letters may have several.
        check("é", &[]);
        assert_eq!(complete("é.", &words()).0, "é.".len());
    }
}
