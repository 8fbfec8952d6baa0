//! Runs the built program.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program, without the environment it may take configuration from.
pub fn mangrove() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mangrove"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MANGROVE_")) {
        command.env_remove(name);
    }
    command
}

/// The output of a run, and its exit code.
#[derive(Debug)]
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

/// Runs the program to its end.
pub fn run(args: &[&str]) -> Ran {
    ran(mangrove().args(args).output().unwrap())
}

/// Runs the program in a folder.
pub fn run_in(folder: &Path, args: &[&str]) -> Ran {
    ran(mangrove().current_dir(folder).args(args).output().unwrap())
}

/// Runs a command with this on standard input.
pub fn fed(command: &str, args: &[&str], input: &str) -> Ran {
    let mut child = mangrove()
        .arg(command)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    ran(child.wait_with_output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    Ran {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

/// Runs it, sees it succeed, and returns its standard output.
#[track_caller]
pub fn succeed(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran.out
}

/// Runs it, sees it fail with `code`, and returns its standard error.
#[track_caller]
pub fn fail(code: i32, args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.out, ran.err);
    assert_eq!(ran.out, "", "an error prints no result");
    ran.err
}

/// A folder of its own for a test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file; returns its path as an argument.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Three people, of whom ada knows the other two.
    pub fn people(&self) -> [String; 2] {
        let people = "id:ID,name:string,age:int,:LABEL\n1,ada,36,person\n2,bob,,person\n3,eve,29,person\n";
        let knows = ":START_ID,:END_ID,:TYPE,since:int\n1,2,knows,1999\n1,3,knows,2005\n";
        [self.file("people.csv", people), self.file("knows.csv", knows)]
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
