//! Followers that lack commits for good: each is loaded again from its home, and the new copy takes the place of the old one.
//!
//! ```text
//! follower has stopped ─▶ load another copy, while the old one answers ─▶ new requests go to it ─▶ the old one is closed
//! ```
//!
//! The process has both copies in memory for that time. If there is no room, or if the home fails, the old one goes on
//! answering, and there is another attempt later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mangrove::Database;
use mangrove_server::DatabaseEngine;
use smol_str::SmolStr;
use tokio::time::{Instant, sleep};

use super::election::Candidates;

/// The time between two looks at the followers.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before the second attempt for a graph. Each later one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The last attempt for a graph.
struct Attempt {
    pause: Duration,
    next: Instant,
}

/// Looks after the followers for as long as it is polled. `candidates` are told of new copies.
pub async fn watch(engine: Arc<DatabaseEngine>, candidates: Candidates) {
    let mut attempts: BTreeMap<SmolStr, Attempt> = BTreeMap::new();
    loop {
        sleep(LOOK_INTERVAL).await;
        let stopped = engine.databases().into_iter().filter_map(|(name, database)| {
            let cause = database.stopped_following()?;
            Some((name, database, cause))
        });
        for (name, database, cause) in stopped.collect::<Vec<_>>() {
            let now = Instant::now();
            let pause = match attempts.get(&name) {
                Some(last) if now < last.next => continue,
                // It has stopped again soon after it was loaded, or could not be loaded.
                Some(last) if now < last.next + PAUSE_MAX => (last.pause * 2).min(PAUSE_MAX),
                _ => PAUSE,
            };
            tracing::warn!(graph = %name, "loading the graph again: {cause}");
            again(&engine, &candidates, &name, database).await;
            attempts.insert(name, Attempt { pause, next: Instant::now() + pause });
        }
    }
}

/// Loads a graph again, and puts the new copy in the place of the old one.
async fn again(engine: &DatabaseEngine, candidates: &Candidates, name: &SmolStr, before: Database) {
    let old = before.clone();
    let Ok(loaded) = tokio::task::spawn_blocking(move || old.follow_again()).await else { return };
    let replaced = loaded.and_then(|database| {
        candidates.replace(&before, &database);
        let (vertices, edges) = database.element_counts();
        engine.replace(name, database)?;
        tracing::info!(graph = %name, vertices, edges, "follows the owner again");
        Ok(())
    });
    if let Err(error) = replaced {
        tracing::error!(graph = %name, "the graph could not be loaded again, and the old copy answers: {error}");
    }
    // Its last handle closes it, which deletes its pin.
    drop(tokio::task::spawn_blocking(move || drop(before)));
}
