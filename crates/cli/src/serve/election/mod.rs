//! The election of the owner of each graph in a home, by etcd.
//!
//! ```text
//! start: lease ─▶ claim the graph's key ── won ──▶ open the graph as its owner
//!                                       └─ held ─▶ follow the owner ─▶ claim again and again ── won ─▶ promote
//! then:  keep the lease; if another process has taken the graph over: end the program
//! ```
//!
//! etcd says who should be the owner. That is all: whether a commit is durable and a read is fresh rests on the home
//! alone. So if two servers think that they were elected, the home stops one of them, and if etcd is away, the owner goes
//! on.

mod etcd;

use std::sync::Arc;
use std::time::Duration;

use mangrove::{Database, Error, LogReport, ObjectLogState, Result};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::etcd::{Claim, Etcd, LeaseId};

/// How long a lease lives after it was last kept. It is the least that etcd gives.
const LEASE_SECONDS: u64 = 2;
/// The time between two requests that keep a lease.
const KEEP_INTERVAL: Duration = Duration::from_millis(600);
/// The time between two claims, and between two looks at the own graph.
const CLAIM_INTERVAL: Duration = Duration::from_millis(250);
/// The pause after a promotion that failed.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The elections in which this server stands, one for each graph in a home.
pub struct Elections {
    etcd: Arc<Etcd>,
    /// The URL of this server, which others show to their clients.
    me: String,
    runtime: Handle,
    candidates: Vec<Candidate>,
    /// Tells that another server has taken a graph over.
    lost: Arc<Notify>,
}

struct Candidate {
    database: watch::Sender<Option<Database>>,
    /// The lease, when there is one.
    lease: watch::Receiver<Option<LeaseId>>,
    task: JoinHandle<()>,
}

/// The databases of all candidates. With none, nothing is elected.
#[derive(Clone, Default)]
pub struct Candidates(Vec<watch::Sender<Option<Database>>>);

impl Candidates {
    /// Puts another copy of a graph in the place of the one that its candidate has.
    pub fn replace(&self, before: &Database, database: &Database) {
        for candidate in &self.0 {
            candidate.send_if_modified(|known| {
                let is_meant = known.as_ref().is_some_and(|known| known.is_same(before));
                if is_meant {
                    *known = Some(database.clone());
                }
                is_meant
            });
        }
    }
}

/// The outcome of the first claim of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Elected {
    /// This server is to open the graph as its owner.
    Owner,
    /// This server is to follow the owner, which has this URL.
    Follower(String),
}

impl Elections {
    /// The elections in a cluster, for a server with this URL.
    pub fn new(cluster: &str, me: String, runtime: Handle) -> Result<Self> {
        let etcd = Arc::new(Etcd::of_address(cluster)?);
        Ok(Elections { etcd, me, runtime, candidates: Vec::new(), lost: Arc::default() })
    }

    /// Stands for the graph at an address. The candidate goes on from here on, and is told the database next, by
    /// [`Elections::opened`].
    pub fn stand(&mut self, address: &str) -> Result<Elected> {
        let key = format!("/mangrove/owner/{}", address.trim_end_matches('/'));
        let (elected, lease) = self.runtime.block_on(async {
            let lease = self.etcd.grant(LEASE_SECONDS).await?;
            let claimed = self.etcd.claim(&key, &self.me, &lease).await?;
            Ok::<_, Error>((claimed, lease))
        })?;
        let (database, opened) = watch::channel(None);
        let (tell, lease_now) = watch::channel(Some(lease.clone()));
        let campaign = Campaign {
            etcd: Arc::clone(&self.etcd),
            key,
            me: self.me.clone(),
            lease: Some((lease, Instant::now())),
            tell,
            is_elected: elected == Claim::Won,
            opened,
            lost: Arc::clone(&self.lost),
        };
        let task = self.runtime.spawn(campaign.run());
        self.candidates.push(Candidate { database, lease: lease_now, task });
        Ok(match elected {
            Claim::Won => Elected::Owner,
            Claim::Held(owner) => Elected::Follower(owner),
        })
    }

    /// Tells the last candidate the database that was opened.
    pub fn opened(&self, database: &Database) {
        if let Some(candidate) = self.candidates.last() {
            candidate.database.send_replace(Some(database.clone()));
        }
    }

    /// The databases of all candidates.
    pub fn candidates(&self) -> Candidates {
        Candidates(self.candidates.iter().map(|candidate| candidate.database.clone()).collect())
    }

    /// Is notified when another server has taken over a graph that this one owned.
    pub fn lost(&self) -> Arc<Notify> {
        Arc::clone(&self.lost)
    }

    /// Ends the candidacies, after the databases were closed, so that another server is elected at once.
    pub fn resign(self) {
        let leases: Vec<LeaseId> =
            self.candidates.iter().filter_map(|candidate| candidate.lease.borrow().clone()).collect();
        self.candidates.iter().for_each(|candidate| candidate.task.abort());
        // The server's threads have ended.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            for lease in leases {
                if let Err(error) = self.etcd.revoke(&lease).await {
                    tracing::warn!("the lease in etcd ends by itself in {LEASE_SECONDS} s: {error}");
                }
            }
        });
    }

    /// Gives up the databases, so that they can be closed.
    pub fn release(&self) {
        for candidate in &self.candidates {
            candidate.task.abort();
            candidate.database.send_replace(None);
        }
    }
}

/// The campaign of one candidate.
struct Campaign {
    etcd: Arc<Etcd>,
    key: String,
    me: String,
    /// The lease, and when it was last kept.
    lease: Option<(LeaseId, Instant)>,
    tell: watch::Sender<Option<LeaseId>>,
    is_elected: bool,
    opened: watch::Receiver<Option<Database>>,
    lost: Arc<Notify>,
}

impl Campaign {
    async fn run(mut self) {
        let mut is_away = false;
        loop {
            tokio::time::sleep(CLAIM_INTERVAL).await;
            let looked = self.look().await;
            match &looked {
                Ok(()) if is_away => tracing::info!(key = self.key, "etcd answers again"),
                // The owner goes on without etcd; only no other one can be elected meanwhile.
                Err(error) if !is_away => tracing::warn!(key = self.key, "{error}"),
                _ => {}
            }
            is_away = looked.is_err();
        }
    }

    /// Keeps the lease, and does what the state of the election and of the graph asks for.
    async fn look(&mut self) -> Result<()> {
        let database = self.opened.borrow().clone();
        if let Some(successor) = database.as_ref().and_then(successor_of) {
            tracing::error!(key = self.key, "another server has taken the graph over ({successor}), so this one ends");
            self.lost.notify_one();
            return Ok(());
        }
        let lease = self.keep().await?;
        if !self.is_elected {
            self.is_elected = self.etcd.claim(&self.key, &self.me, &lease).await? == Claim::Won;
            if self.is_elected {
                tracing::info!(key = self.key, "was elected");
            }
        }
        let followed = database.filter(|database| self.is_elected && database.following().is_some());
        let Some(database) = followed else { return Ok(()) };
        let promoted = tokio::task::spawn_blocking(move || database.promote()).await;
        if let Ok(Err(error)) = promoted {
            tracing::error!(key = self.key, "was elected, and did not become the owner: {error}");
            // Another server may be able to.
            self.is_elected = false;
            if let Some((lease, _)) = self.lease.take() {
                self.etcd.revoke(&lease).await?;
            }
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
        Ok(())
    }

    /// The lease, kept if it is time, or a new one. With the old one, the election is lost.
    async fn keep(&mut self) -> Result<LeaseId> {
        if let Some((lease, kept)) = self.lease.clone() {
            if kept.elapsed() < KEEP_INTERVAL {
                return Ok(lease);
            }
            let now = Instant::now();
            if self.etcd.keep(&lease).await? {
                self.lease = Some((lease.clone(), now));
                return Ok(lease);
            }
            self.lease = None;
            self.is_elected = false;
        }
        let lease = self.etcd.grant(LEASE_SECONDS).await?;
        self.lease = Some((lease.clone(), Instant::now()));
        self.tell.send_replace(Some(lease.clone()));
        Ok(lease)
    }
}

/// Who has taken a graph over from this process, as its log knows it.
fn successor_of(database: &Database) -> Option<String> {
    match database.durability()?.log {
        LogReport::Home(log) => match log.state {
            ObjectLogState::Fenced { by } => {
                Some(by.map_or("incarnation unknown".to_owned(), |by| format!("incarnation {by}")))
            }
            _ => None,
        },
        LogReport::Lost(error) => Some(error.message().to_owned()),
        _ => None,
    }
}
