//! Failing disks, as a user meets them: errors name the cause and the way out, and operations that are still possible
//! continue.
//!
//! A full and a read-only file system are mounted for this, which only root can do. Without root, these tests print
//! that they were skipped.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{Folder, fail, mangrove, ran, run, succeed};
use crate::server::Serving;

/// A mount that ends with the test.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts with these arguments; `None` if that is not possible.
    fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(arguments).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Mounted(at.to_owned()));
        }
        println!("left out: mount {} {} is not possible here", arguments.join(" "), at.display());
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Fills a file system, and empties it again.
fn fill(file: &Path) {
    let mut filler = fs::File::create(file).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
}

/// Waits until something holds; fails after a while.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never came true: {what}");
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_space() {
    let folder = Folder::new("full");
    let disk = folder.path().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"], &disk) else { return };
    let (graph, filler) = (disk.join("graph"), disk.join("filler"));
    let data = text(&graph);
    let log = folder.path().join("log");
    let serving = Serving::logged(&log, &["--data", data, "--log-segment-size", "64KiB"]);
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    let url = format!("ws://{}", serving.address);
    let ask = |script: &str| run(&["query", "--url", &url, "--format", "csv", script]);
    assert_eq!(ask("g.addV('n')").code, Some(0));
    fill(&filler);
    let parameter = format!("text={}", "x".repeat(30_000));
    let write = || run(&["query", "--url", &url, "--param", &parameter, "g.addV('n').property('text', text)"]);
    let mut written = 1;
    let refused = loop {
        match write() {
            done if done.code == Some(0) => written += 1,
            refused => break refused.err,
        }
        assert!(written < 20, "a disk of 4 MiB takes no more");
    };
    for part in ["no writes", "are free", "make room", "reads go on"] {
        assert!(refused.contains(part), "{refused}");
    }
    let health = serving.get("/health");
    assert!(health.contains("\"read-only\"") && health.contains("are free"), "{health}");
    assert!(serving.get("/metrics").contains("mangrove_log_running{graph=\"g\"} 0"));
    eventually("the log says that it takes no writes", || said("takes no writes"));
    assert!(said("are free") && !said("takes writes again"));
    assert!(ask("g.V().count()").out.contains(&written.to_string()));
    let checkpoint = fail(1, &["checkpoint", "--url", &url]);
    assert!(checkpoint.contains("No space left") && checkpoint.contains("make room"), "{checkpoint}");
    assert!(serving.get("/metrics").contains("mangrove_checkpoint_failing{graph=\"g\"} 1"));
    // The server notices it without a write.
    fs::remove_file(&filler).unwrap();
    eventually("/health says ok", || serving.get("/health").contains("\"ok\""));
    eventually("the log says that it takes writes", || said("takes writes again"));
    assert_eq!(write().code, Some(0));
    succeed(&["checkpoint", "--url", &url]);
    let metrics = serving.get("/metrics");
    assert!(metrics.contains("mangrove_log_running{graph=\"g\"} 1"), "{metrics}");
    assert!(metrics.contains("mangrove_checkpoint_failing{graph=\"g\"} 0"), "{metrics}");
    assert_eq!(serving.signal("TERM"), Some(0));
    assert!(succeed(&["verify", "--data", data]).contains(&format!("{} vertices", written + 1)));
    // A database that cannot be opened because the disk is full is unchanged.
    fill(&filler);
    let refused = fail(1, &["query", "--data", data, "g.addV('more')"]);
    assert!(refused.contains("No space left") && refused.contains("make room"), "{refused}");
    let counted = || succeed(&["query", "--data", data, "--format", "csv", "g.V().count()"]);
    let expected = format!("result\n{}\n", written + 1);
    assert_eq!(counted(), expected, "reading needs no space");
    fs::remove_file(&filler).unwrap();
    assert_eq!(counted(), expected);
}

#[test]
fn a_read_only_directory_can_be_looked_at() {
    let folder = Folder::new("read-only");
    let (graph, view) = (folder.path().join("graph"), folder.path().join("view"));
    succeed(&["generate", "kronecker", "--scale", "4", "--data", text(&graph)]);
    fs::create_dir_all(&view).unwrap();
    let Some(_mounted) = Mounted::new(&["--bind", text(&graph)], &view) else { return };
    let Some(remounted) = Mounted::new(&["-o", "remount,bind,ro"], &view) else { return };
    // The first one takes it away.
    std::mem::forget(remounted);
    let data = text(&view);
    for command in
        [&["query", "--data", data, "g.addV('a')"][..], &["serve", "--data", data], &["checkpoint", "--data", data]]
    {
        let error = fail(1, command);
        assert!(error.contains("Read-only file system") && error.contains("mount"), "{command:?}: {error}");
    }
    assert!(succeed(&["query", "--data", data, "--format", "csv", "g.V().count()"]).starts_with("result\n"));
    assert!(succeed(&["verify", "--data", data]).contains("every checksum is right"));
    assert!(succeed(&["inspect", "manifest", "--data", data]).contains("\"version\""));
    succeed(&["inspect", "log", "--data", data]);
}

#[test]
fn a_file_is_no_directory() {
    let folder = Folder::new("file");
    let file = folder.file("graph", "something else");
    let below = format!("{file}/graph");
    for command in ["serve", "verify", "checkpoint"] {
        let error = fail(1, &[command, "--data", &file]);
        assert!(error.contains("is a file") && error.contains("directory of its own"), "{error}");
        let error = fail(1, &[command, "--data", &below]);
        assert!(error.contains("Not a directory") && error.contains("name another"), "{error}");
    }
    // A directory with only a part of a database.
    let graph = folder.path().join("half");
    succeed(&["generate", "kronecker", "--scale", "4", "--data", text(&graph)]);
    let wal = graph.join("wal");
    fs::remove_dir_all(&wal).unwrap();
    let missing = fail(1, &["serve", "--data", text(&graph)]);
    assert!(missing.contains("wal/") && missing.contains("missing") && missing.contains("backup"), "{missing}");
    fs::write(&wal, "").unwrap();
    assert!(fail(1, &["verify", "--data", text(&graph)]).contains("Not a directory"));
}

#[test]
fn a_directory_without_rights_says_so() {
    /// The user id of the Unix user `nobody`. That user has no rights on files of other users.
    const NOBODY: u32 = 65534;
    let folder = Folder::new("rights");
    let graph = folder.path().join("graph");
    succeed(&["generate", "kronecker", "--scale", "4", "--data", text(&graph)]);
    let is_root = fs::metadata(&graph).unwrap().uid() == 0;
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let run = |args: &[&str]| {
        let mut command = mangrove();
        if is_root {
            command.uid(NOBODY);
        }
        command.args(args).output()
    };
    let is_possible = run(&["--version"]).is_ok_and(|output| output.status.success());
    if !is_possible {
        return println!("left out: the program cannot be run as another user here");
    }
    // Only the owner of a graph can read it, unless the owner lets others read.
    assert!(Command::new("chmod").args(["-R", "go+rX"]).arg(&graph).status().unwrap().success());
    // No right to read the directory, to write in it, or to create a file beside it.
    for (mode, script, said) in [(0o000, "g.V().count()", "database"), (0o555, "g.addV('a')", "LOCK")] {
        set(&graph, mode);
        if !is_root {
            set(&graph.join("LOCK"), 0o444);
        }
        let ran = ran(run(&["query", "--data", text(&graph), script]).unwrap());
        assert_eq!(ran.code, Some(1), "{mode:o}: {}", ran.out);
        let is_named = ran.err.contains("Permission denied") && ran.err.contains("right") && ran.err.contains(said);
        assert!(is_named, "{mode:o}: {}", ran.err);
    }
    for command in [&["verify", "--data", text(&graph)][..], &["query", "--data", text(&graph), "g.V().count()"]] {
        let looked = ran(run(command).unwrap());
        assert_eq!(looked.code, Some(0), "the right to read is enough for {command:?}: {}", looked.err);
    }
    set(&graph, 0o755);
    set(folder.path(), 0o555);
    let made = ran(run(&["serve", "--data", text(&folder.path().join("new"))]).unwrap());
    set(folder.path(), 0o755);
    assert!(
        made.code == Some(1) && made.err.contains("Permission denied") && made.err.contains("right"),
        "{}",
        made.err
    );
}
