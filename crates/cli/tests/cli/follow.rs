//! A server that follows the owner of its graph, and was paused for so long that commits are missing.

use std::time::Duration;

use crate::common::{Folder, succeed};
use crate::server::Serving;

/// Waits until `/health` of a server contains this, and returns it.
fn health_with(server: &Serving, part: &str) -> String {
    let mut health = String::new();
    for _ in 0..600 {
        health = server.get("/health");
        if health.contains(part) {
            return health;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("/health never had {part}: {health}")
}

fn count(url: &str) -> String {
    let rows = succeed(&["query", "--url", url, "--format", "csv", "g.V().count()"]);
    rows.lines().last().unwrap().to_owned()
}

#[test]
fn a_follower_that_was_paused_for_too_long_loads_the_graph_again() {
    let folder = Folder::new("follow");
    let home = folder.path().join("home");
    let address = format!("file:{}", home.to_str().unwrap());
    let owner = Serving::start(&["--data", &address]);
    let owner_url = format!("ws://{}", owner.address);
    let add = || succeed(&["query", "--url", &owner_url, "g.addV('person')"]);
    add();
    let log = folder.path().join("log");
    let follower = Serving::logged(&log, &["--follow", &address]);
    let url = format!("ws://{}", follower.address);
    assert_eq!(count(&url), "1");
    succeed(&["query", "--url", &url, "g.call('mangrove.config').with('gc_workers', 3)"]);
    // As if it were paused for longer than its pin holds.
    follower.send("STOP");
    let pins: Vec<_> = std::fs::read_dir(home.join("pin")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(pins.len(), 1, "{pins:?}");
    std::fs::remove_file(&pins[0]).unwrap();
    for _ in 0..4 {
        add();
        succeed(&["checkpoint", "--url", &owner_url]);
    }
    follower.send("CONT");
    for _ in 0..600 {
        if count(&url) == "5" {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(count(&url), "5");
    let health = health_with(&follower, "\"status\":\"following\"");
    assert!(health.contains("\"stopped\":null"), "{health}");
    let told = std::fs::read_to_string(&log).unwrap();
    assert!(told.contains("loading the graph again") && told.contains("follows the owner again"), "{told}");
    let settings = succeed(&["query", "--url", &url, "--format", "csv", "g.call('mangrove.config')"]);
    assert!(settings.contains("gc_workers") && settings.contains('3'), "{settings}");
    // It has a pin again, goes on following, and can be promoted.
    assert_eq!(std::fs::read_dir(home.join("pin")).unwrap().count(), 1);
    add();
    while count(&url) != "6" {
        std::thread::sleep(Duration::from_millis(100));
    }
    succeed(&["promote", "--url", &url]);
    succeed(&["query", "--url", &url, "g.addV('person')"]);
    assert_eq!(count(&url), "7");
    assert_eq!(std::fs::read_dir(home.join("pin")).unwrap().count(), 0);
    drop(owner);
}
