//! The reference: a Java process with a TinkerGraph. Requests and answers are one line each; `java/Reference.java` has
//! the protocol.

use std::io::{BufRead, BufReader, BufWriter, Error, ErrorKind, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mangrove::Value;
use mangrove_gremlin::graphson::{Dialect, Version, decode_value, encode_value};
use mangrove_oracle::graph::AUTOMATIC_ID_MIN;

/// A running reference. Dropping it ends the process.
pub struct Reference {
    class_path: String,
    seconds_max: u32,
    process: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The answer of the reference: values, or its error.
pub type Told = Result<Vec<Value>, String>;

impl Reference {
    /// Starts a process. The class path has TinkerGraph and the compiled `Reference`. A script that takes longer than
    /// `seconds_max` is an error.
    pub fn start(class_path: &str, seconds_max: u32) -> std::io::Result<Self> {
        // The reference orders some maps by the identity hash codes of objects (of classes, of `T.label`). With one
        // hash code for all objects, the order of answers does not depend on earlier scripts.
        let one_identity = ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2"];
        let mut process = Command::new("java")
            .args(["-Xmx2g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args(one_identity)
            .args(["-cp", class_path, "Reference"])
            .args([AUTOMATIC_ID_MIN.to_string(), seconds_max.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let piped = "the process was started with pipes";
        let questions = BufWriter::new(process.stdin.take().expect(piped));
        let answers = BufReader::new(process.stdout.take().expect(piped));
        Ok(Reference { class_path: class_path.to_owned(), seconds_max, process, questions, answers })
    }

    /// Replaces the graph by these elements, which are detached.
    pub fn load(&mut self, elements: Vec<Value>) -> std::io::Result<()> {
        let mut text = Vec::new();
        let dialect = Dialect { version: Version::V3, typed: true };
        encode_value(dialect, &Value::list(elements), &mut text).map_err(Error::other)?;
        let text = String::from_utf8(text).map_err(Error::other)?;
        self.exchange("load", &text)?.map(drop).map_err(Error::other)
    }

    /// Runs a script and returns its results. If the script took too long, the process may have another graph
    /// afterwards, or none. Then call [`Reference::load`] before the next script.
    pub fn ask(&mut self, script: &str) -> std::io::Result<Told> {
        let told = self.exchange("run", script)?;
        if goes_on(&told) {
            *self = Reference::start(&self.class_path, self.seconds_max)?;
        }
        Ok(told)
    }

    /// Sends a request and reads its answer. The outer error means that the process ended or broke the protocol.
    fn exchange(&mut self, word: &str, text: &str) -> std::io::Result<Told> {
        // A line is one request; no literal needs a line end.
        let text = text.replace(['\n', '\r'], " ");
        writeln!(self.questions, "{word}\t{text}")?;
        self.questions.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, format!("the reference ended at: {text}")));
        }
        match line.trim_end_matches('\n').split_once('\t') {
            Some(("!", error)) => Ok(Err(error.to_owned())),
            Some(("+", results)) => match decode_value(results.as_bytes()) {
                Ok(Value::List(values)) => Ok(Ok(values.to_vec())),
                Ok(other) => Err(Error::other(format!("{text}: {} in place of a list", other.type_name()))),
                // The results have types for which there is no value here.
                Err(error) => Ok(Err(format!("unreadable: {error}"))),
            },
            _ => Err(Error::other(format!("the reference says: {line}"))),
        }
    }
}

/// Returns true if this is the answer to a script that took too long.
pub fn took_too_long(told: &Told) -> bool {
    matches!(told, Err(error) if error.starts_with("TimeoutException"))
}

/// Returns true if this is the answer to a script that took too long and cannot be stopped.
fn goes_on(told: &Told) -> bool {
    took_too_long(told) && matches!(told, Err(error) if error.ends_with("and it goes on"))
}

impl Drop for Reference {
    fn drop(&mut self) {
        // The process may be in an endless traversal whose result is not needed.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
