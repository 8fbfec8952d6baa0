//! SIGHUP: reads the settings again, and applies those that can change without a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove::{Result, Value};
use mangrove_server::{DatabaseEngine, Engine, ReloadableLimits};

use super::budget;
use crate::args::ServeArgs;
use crate::config::{GraphSetup, Setup};
use crate::settings::SETTINGS;

/// Settings by name, as the file shows them.
type ShownSettings = BTreeMap<&'static str, Option<String>>;

/// The settings of the running server, and what is needed to apply new ones.
pub struct Reload {
    args: ServeArgs,
    limits: ReloadableLimits,
    engine: Arc<DatabaseEngine>,
    /// The settings in effect. Those that need a restart have the value of the start.
    counting: ShownSettings,
    /// The limits of memory of the graphs, by name, in bytes.
    memory_limits: BTreeMap<String, Option<u64>>,
}

/// The names of settings that have changed.
#[derive(Default)]
struct ChangedSettings {
    /// Changed, and in effect.
    at_once: Vec<&'static str>,
    /// Changed, and in effect after a restart.
    later: Vec<&'static str>,
}

impl Reload {
    /// Remembers the arguments and settings with which a server was started.
    pub fn new(args: ServeArgs, mut setup: Setup, limits: ReloadableLimits, engine: Arc<DatabaseEngine>) -> Self {
        let counting = shown(&mut setup);
        let memory_limits = setup.graphs.iter().map(|graph| (graph.name.clone(), bytes(graph))).collect();
        Reload { args, limits, engine, counting, memory_limits }
    }

    /// Reads the settings again. If there is a mistake, nothing changes.
    pub fn run(&mut self) {
        match Setup::new(&self.args).and_then(|setup| self.apply(setup)) {
            Ok(ChangedSettings { at_once, later }) => {
                tracing::info!(changed = at_once.join(", "), "SIGHUP: the settings were read again");
                if !later.is_empty() {
                    tracing::warn!(changed = later.join(", "), "SIGHUP: these settings count after a restart");
                }
            }
            Err(error) => tracing::error!("SIGHUP: the settings stay as they were: {}", error.message()),
        }
    }

    fn apply(&mut self, mut setup: Setup) -> Result<ChangedSettings> {
        let now = shown(&mut setup);
        let mut changed = ChangedSettings::default();
        for setting in SETTINGS {
            if self.counting[setting.name] == now[setting.name] {
                continue;
            }
            if setting.counts_at_once() {
                changed.at_once.push(setting.name);
                self.counting.insert(setting.name, now[setting.name].clone());
            } else {
                changed.later.push(setting.name);
            }
        }
        self.limits.set(setup.options.server.limits);
        self.engine.set_limits(setup.options.engine);
        let is_changed = |name: &&str| changed.at_once.contains(name);
        for (_, database) in self.engine.databases() {
            setup.options.graph_settings.apply_some(&database, |name| is_changed(&name))?;
        }
        if is_changed(&"memory_budget")
            && let Some(bytes) = budget::limit(setup.options.memory_budget)
        {
            self.engine.memory_budget().set_limit(bytes);
        }
        self.limit_memory(&setup.graphs)?;
        Ok(changed)
    }

    /// Sets the memory limits of graphs whose setting has changed. Other limits stay, because an administrator may have
    /// set them.
    fn limit_memory(&mut self, graphs: &[GraphSetup]) -> Result<()> {
        for graph in graphs {
            let limit = bytes(graph);
            let Some(before) = self.memory_limits.get_mut(&graph.name).filter(|before| **before != limit) else {
                continue;
            };
            *before = limit;
            let number = limit.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
            for (_, database) in self.engine.databases().iter().filter(|(name, _)| *name == graph.name) {
                database.configure("memory_limit_bytes", &Value::I64(number))?;
            }
        }
        Ok(())
    }
}

fn shown(setup: &mut Setup) -> ShownSettings {
    SETTINGS.iter().map(|setting| (setting.name, setting.show(&mut setup.options))).collect()
}

fn bytes(graph: &GraphSetup) -> Option<u64> {
    graph.memory_limit.map(|limit| limit.bytes)
}
