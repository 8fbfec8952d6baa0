//! Starts and stops servers for tests.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, Ran, mangrove, ran};

/// A running server. It is killed if a test fails before it stops the server.
pub struct Serving {
    child: Child,
    /// The URL for clients.
    pub url: String,
    /// Host and port.
    pub address: String,
}

impl Serving {
    /// Starts one on a free port.
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, Stdio::null())
    }

    /// Starts one whose log is this file.
    pub fn logged(log: &Path, args: &[&str]) -> Self {
        Self::start_with(args, File::create(log).unwrap().into())
    }

    fn start_with(args: &[&str], log: Stdio) -> Self {
        let is_placed = args.contains(&"--listen");
        let args = if is_placed { args.to_vec() } else { [&["--listen", "127.0.0.1:0"], args].concat() };
        let mut child = mangrove().arg("serve").args(args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit_once(' ').unwrap_or_else(|| panic!("no address in {line:?}")).1.to_owned();
        let address = url.split("//").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Serving { child, url, address }
    }

    /// Starts one with the users of a folder, and graphs there that outlive it.
    pub fn with_users(folder: &Folder, more: &[&str]) -> Self {
        Self::with_users_and(folder, more, Self::start)
    }

    /// The same, with its log in a file.
    pub fn logged_with_users(log: &Path, folder: &Folder, more: &[&str]) -> Self {
        Self::with_users_and(folder, more, |args| Self::logged(log, args))
    }

    fn with_users_and(folder: &Folder, more: &[&str], start: impl FnOnce(&[&str]) -> Self) -> Self {
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (users, graphs) = (path("users.toml"), path("graphs"));
        start(&[&["--users-file", &users, "--graphs-dir", &graphs], more].concat())
    }

    /// The server's answer to an HTTP request.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Runs a command of the program as a user.
    pub fn ask(&self, user: &str, args: &[&str]) -> Ran {
        let mut command = mangrove();
        command.env("MANGROVE_USER", user).env("MANGROVE_PASSWORD", format!("{user}'s password"));
        ran(command.args(args).args(["--url", &self.url, "--format", "jsonl"]).output().unwrap())
    }

    /// Runs it, sees it succeed, and returns its standard output.
    #[track_caller]
    pub fn succeed(&self, user: &str, args: &[&str]) -> String {
        let ran = self.ask(user, args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
        ran.out
    }

    /// Runs it, and sees it refused with these words.
    #[track_caller]
    pub fn refuse(&self, user: &str, args: &[&str], part: &str) {
        let ran = self.ask(user, args);
        assert_eq!(ran.code, Some(1), "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
    }

    /// Sends a signal by name.
    pub fn send(&self, name: &str) {
        // The shell's built-in `kill`, because not every system has the program.
        let kill = format!("kill -s {name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Sends a signal by name; returns the exit code.
    pub fn signal(mut self, name: &str) -> Option<i32> {
        self.send(name);
        self.child.wait().unwrap().code()
    }

    /// Ends it as an operator does.
    pub fn stop(self) {
        assert_eq!(self.signal("TERM"), Some(0));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
