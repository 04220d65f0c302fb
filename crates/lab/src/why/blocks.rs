//! The blocks of a run: their stacks, their signals, and the block that allows no conclusion.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::asked::{NamedVariant, Why};
use super::gather;
use super::known::KnownBlock;
use super::prove;
use super::signals::{Role, Signals};
use crate::ab::Tell;
use crate::ask::{Ask, Cpus, EdgeProgram, Load, Side, Stack};
use crate::experiment::run::{Own, spec_of};
use crate::experiment::{Sent, What};
use crate::said::{Said, say};
use crate::stack::{self, BlockFailure, HUB, LabDirectory, Spec};

/// A client was not on time if its quota throttled it in more than this part of the periods.
const CLIENT_THROTTLED: f64 = 0.05;
/// How often a spoiled block is run again.
pub(super) const AGAIN_MAX: u32 = 2;

/// Why an experiment ended early.
pub(super) enum Ended {
    Stopped,
    Broken(Said),
}

impl From<BlockFailure> for Ended {
    fn from(failed: BlockFailure) -> Ended {
        match failed {
            BlockFailure::Stopped => Ended::Stopped,
            BlockFailure::Broken(why) => Ended::Broken(why),
        }
    }
}

/// The state of a run.
pub(super) struct Lab<'a> {
    pub(super) it: &'a Why,
    /// `None` for an experiment, which brings its own stack.
    pub(super) stack: Option<Stack>,
    pub(super) place: LabDirectory,
    pub(super) blocks: usize,
    pub(super) stop: &'a AtomicBool,
    pub(super) tell: &'a mut dyn Tell,
    /// The id of the run.
    pub(super) id: String,
    /// The length of the next blocks, if it is not the usual one.
    pub(super) length: Option<Duration>,
    /// CPUs chosen instead of the first assignment, because two parts were in each other's way.
    pub(super) cpus: Option<Cpus>,
}

impl Lab<'_> {
    /// The spec of the next block, and its directory.
    pub(super) fn spec(&mut self, load: &Load) -> Result<(Spec, std::path::PathBuf), Ended> {
        let dir = self.place.path().join(self.blocks.to_string());
        self.blocks += 1;
        fs::create_dir_all(&dir)
            .map_err(|error| Ended::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
        let cpus = self.cpus.clone().unwrap_or_else(|| self.it.ask.cpus.clone());
        let block = self.length.unwrap_or(self.it.ask.block);
        let ask = Ask { load: load.clone(), cpus, block, ..self.it.ask.clone() };
        let mut spec = match (&self.stack, &self.it.lab) {
            (Some(stack), _) => ask.spec(&self.it.side, stack, &dir, self.it.seed),
            (None, Some(lab)) => of_lab(lab, &ask, &self.it.side, &dir, self.it.seed).map_err(Ended::Broken)?,
            (None, None) => return Err(Ended::Broken("the lab has no stack".into())),
        };
        for pool in &self.it.pools {
            let own = spec.processes.iter_mut().find(|process| process.name == pool.process);
            let own = own.ok_or_else(|| Ended::Broken(say!(ERR_POOL, &pool.process)))?;
            prove::give(&mut own.env, &pool.variable, pool.size);
        }
        // A saturated stack never becomes warm, so the warm-up is not judged.
        spec.is_warm_judged = false;
        inject(&mut spec, &self.it.inject).map_err(Ended::Broken)?;
        Ok((spec, dir))
    }

    /// Runs a block.
    pub(super) fn block(&mut self, spec: &Spec, load: &Load) -> Result<Signals, Ended> {
        let answer = stack::run(spec, &self.it.ask.weir, self.stop)?;
        let _ = fs::remove_dir_all(&spec.dir);
        let (connections, offered, planned) = match load {
            Load::Path { connections, rate, .. } => (*connections as u64, *rate, None),
            Load::Script { requests, .. } => (0, None, *requests),
        };
        let known = KnownBlock {
            spec,
            tree: &self.it.side.tree,
            offered,
            planned,
            length_s: self.length.unwrap_or(self.it.ask.length()).as_secs_f64(),
            connections,
            is_closed: matches!(load, Load::Path { rate: None, .. }),
            is_noisy: self.it.ask.is_noisy,
            is_direct: self.stack.is_some(),
            is_weir: self.it.side.edge == EdgeProgram::Weir,
            pools: &self.it.pools,
            good: &self.it.good,
            running: None,
        };
        gather::signals(&answer, &known).map_err(Ended::Broken)
    }
}

/// A block of an experiment's stack with the load of this run.
fn of_lab(lab: &NamedVariant, ask: &Ask, side: &Side, dir: &Path, seed: u64) -> Result<Spec, Said> {
    let mut variant = lab.variant.clone();
    let place = variant.load.take();
    let (host, cpus, to) = place.map_or((HUB.to_owned(), Vec::new(), None), |sent| (sent.host, sent.cpus, sent.to));
    let insecure = (variant.front.scheme == "https").then(|| "--insecure".to_owned());
    let sent = |time: std::time::Duration| {
        let what = match &ask.load {
            Load::Path { path, connections, rate } => {
                let time = format!("{}ms", time.as_millis());
                let mut flags = vec!["-c".to_owned(), connections.to_string(), "-d".to_owned(), time];
                flags.extend(rate.iter().flat_map(|rate| ["-R".to_owned(), rate.to_string()]));
                flags.extend(ask.headers.iter().flat_map(|field| ["-H".to_owned(), field.clone()]));
                What::Path(path.clone(), flags.into_iter().chain(insecure.clone()).collect())
            }
            Load::Script { file, .. } => What::Script(file.clone(), insecure.iter().cloned().collect()),
        };
        Sent { host: host.clone(), cpus: cpus.clone(), to, what }
    };
    variant.load = Some(sent(ask.block));
    let warms = matches!(ask.load, Load::Path { .. }) && !ask.warm_up.is_zero();
    variant.warm = warms.then(|| sent(ask.warm_up));
    variant.limit += ask.length() * 2 + ask.warm_up * 2;
    let edge = if side.edge == EdgeProgram::Weir { "weir" } else { "nginx" };
    let own = Own { lab: &lab.name, places: &lab.places, edge, share: &ask.cpus };
    spec_of(&own, &variant, &side.tree, dir, seed)
}

/// Why no conclusion may be drawn from a block, if so.
pub(super) fn gate(signals: &Signals) -> Option<Said> {
    let client = signals.processes.iter().find(|process| process.role == Role::Client);
    if let Some(client) = client.filter(|client| client.throttled > CLIENT_THROTTLED) {
        return Some(say!(QUOTA_STOPPED_GENERATOR, format!("{:.0}", client.throttled * 100.0)));
    }
    if let Some(why) = signals.load.spoiled.first() {
        return Some(why.clone());
    }
    (signals.load.sent == 0).then(|| say!(LOAD_SENT_NO_REQUEST))
}

/// Writes changed files into the block's directory. The block mounts them over their originals.
pub(super) fn write_overlays(
    dir: &Path,
    files: &[(std::path::PathBuf, Vec<u8>)],
) -> Result<Vec<(std::path::PathBuf, std::path::PathBuf)>, Said> {
    let mut overlays = Vec::new();
    for (number, (over, bytes)) in files.iter().enumerate() {
        let file = dir.join(format!("conf.{number}"));
        fs::write(&file, bytes).map_err(|error| say!(ERR_FILE, file.display().to_string(), error.to_string()))?;
        overlays.push((file, over.clone()));
    }
    Ok(overlays)
}

/// Adds to a spec the parts that a test wants: hosts by name, processes by name, actions.
fn inject(spec: &mut Spec, what: &Value) -> Result<(), Said> {
    let Some(members) = what.as_object() else { return Ok(()) };
    let mut json = spec.to_json();
    for (member, value) in members {
        match (member.as_str(), value) {
            ("hosts" | "processes", Value::Array(items)) => {
                items.iter().for_each(|item| by_name(&mut json[member.as_str()], item))
            }
            ("client", Value::Object(fields)) => fields.iter().for_each(|(field, value)| {
                json["client"][field] = value.clone();
                if !json["warm"].is_null() {
                    json["warm"][field] = value.clone();
                }
            }),
            _ => json[member.as_str()] = value.clone(),
        }
    }
    *spec = serde_json::from_value(json).map_err(|error| Said::from(format!("the injected change: {error}")))?;
    Ok(())
}

fn by_name(list: &mut Value, item: &Value) {
    let Some(list) = list.as_array_mut() else { return };
    let known = list.iter_mut().find(|known| known["name"] == item["name"]);
    match (known, item.as_object()) {
        (Some(known), Some(fields)) => fields.iter().for_each(|(field, value)| known[field] = value.clone()),
        // Insert it before the edge, which is last: the edge may need it.
        _ => list.insert(0, item.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_is_held_back_ends_it() {
        assert_eq!(gate(&Signals::quiet()), None);
        let mut signals = Signals::quiet();
        signals.processes[2].throttled = 0.6;
        assert!(gate(&signals).is_some_and(|why| why.contains("stopped the load generator in 60 %")));
        let mut signals = Signals::quiet();
        signals.load.spoiled.push("load generator saturated (core 97 %)".into());
        assert!(gate(&signals).is_some_and(|why| why.contains("saturated")));
        let mut signals = Signals::quiet();
        signals.load.sent = 0;
        assert!(gate(&signals).is_some());
    }

    #[test]
    fn a_test_may_give_a_block_what_it_wants() {
        let mut spec = Spec { edge: "edge".into(), ..Spec::default() };
        spec.client.name = "client".into();
        let what = json!({"hosts": [{"name": "edge", "cpus": 0.2}], "client": {"is_unlimited": true},
            "processes": [{"name": "db", "host": "edge", "argv": ["x"]}], "actions": [{"at_ms": 5, "deed": {"Stop": "db"}}]});
        inject(&mut spec, &what).unwrap();
        assert_eq!(
            (spec.hosts[0].cpus, spec.processes[0].name.as_str(), spec.client.is_unlimited),
            (Some(0.2), "db", true)
        );
        assert_eq!((spec.actions.len(), spec.edge.as_str()), (1, "edge"));
        assert!(inject(&mut spec, &json!({"processes": 5})).is_err());
    }
}
