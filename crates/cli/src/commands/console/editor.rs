//! The line editor: reads inputs of one or more lines from a terminal, with completion, colors and history.

use std::borrow::Cow;

use mangrove::{Error, Result};
use mangrove_gremlin::vocabulary;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::complete::complete;
use super::history::{self, History};
use super::input::wants_more;
use super::words::CompletionWords;

/// The line editor of the console.
pub struct LineEditor(Editor<EditorHelp, FileHistory>);

impl LineEditor {
    /// An editor with the inputs of the history.
    pub fn new(history: &History) -> Result<Self> {
        let failed = |e: ReadlineError| Error::invalid(format!("the terminal cannot be used: {e}"));
        let config = Config::builder()
            .max_history_size(history::LENGTH_MAX)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        let is_colored = std::env::var_os("NO_COLOR").is_none();
        editor.set_helper(Some(EditorHelp { words: CompletionWords::default(), is_colored }));
        if let Some(file) = &history.file {
            // At the first start there is no file. A file that cannot be read does not stop the console.
            let _ = editor.load_history(file);
        }
        Ok(LineEditor(editor))
    }

    /// Sets the words for completion.
    pub fn learn(&mut self, words: CompletionWords) {
        if let Some(help) = self.0.helper_mut() {
            help.words = words;
        }
    }

    /// The next input.
    pub fn read(&mut self, prompt: &str) -> std::result::Result<String, ReadlineError> {
        self.0.readline(prompt)
    }

    /// Adds an input to the history at once, because the program may be killed.
    pub fn remember(&mut self, history: &History, input: &str) {
        let is_new = self.0.add_history_entry(input).unwrap_or(false);
        if let (true, Some(file)) = (is_new, &history.file) {
            let _ = self.0.append_history(file);
        }
    }
}

/// Completion and coloring of inputs.
struct EditorHelp {
    words: CompletionWords,
    is_colored: bool,
}

impl Helper for EditorHelp {}

impl Completer for EditorHelp {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&line[..position], &self.words);
        Ok((start, found.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

impl Hinter for EditorHelp {
    type Hint = String;
}

impl Validator for EditorHelp {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match wants_more(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Highlighter for EditorHelp {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.is_colored { Cow::Owned(colored(line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.is_colored
    }
}

const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[33m";
const STEP: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Colors the strings, numbers, steps and comments of a line.
fn colored(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (length, color) = match first {
            '\'' | '"' => (text_length(rest, first), Some(TEXT)),
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), Some(COMMENT)),
            c if c.is_ascii_digit() => (word_length(rest), Some(NUMBER)),
            c if c.is_alphabetic() || c == '_' => {
                let length = word_length(rest);
                let is_step = vocabulary::steps().binary_search(&&rest[..length]).is_ok();
                (length, (is_step && rest[length..].starts_with('(')).then_some(STEP))
            }
            c => (c.len_utf8(), None),
        };
        let (part, after) = rest.split_at(length);
        match color {
            Some(color) => out.extend([color, part, PLAIN]),
            None => out.push_str(part),
        }
        rest = after;
    }
    out
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of a string with its quotes. A string that is not closed has the rest of the text.
fn text_length(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_change_nothing_but_the_look() {
        for line in ["g.V(1).has('é\\'', 'x').out() // all\n.count()", "'open", "\"a\\", "ü = 5", ""] {
            let colored = colored(line);
            let plain = [TEXT, NUMBER, STEP, COMMENT, PLAIN].iter().fold(colored, |text, mark| text.replace(mark, ""));
            assert_eq!(plain, line);
        }
        assert_eq!(colored("g.out('a')"), format!("g.{STEP}out{PLAIN}({TEXT}'a'{PLAIN})"));
    }
}
