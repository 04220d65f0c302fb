//! Servers that the API changes, as records of the fleet: each edge makes the same change to its own group.
//!
//! A record names the servers of the file that it changes. An edge whose file has others ignores it, so a new configuration
//! ends the changes that were made to the old one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use weir_http::exchange::conf::Conf;
use weir_net::log::{self, Level};
use weir_proxy::family::upstream::LiveGroup;
use weir_proxy::family::upstream::edit::Refused;

use crate::fleet::{SharedSpace, TakenRecord};

/// Members of a server that belong to one edge alone.
const OWN: [&str; 3] = ["id", "parent", "host"];

/// Bytes of the hash of a file's servers.
const HASH_BYTES: usize = 8;

/// The servers of one group.
struct ServersSpace {
    name: String,
    live: Arc<LiveGroup>,
    /// The servers that the file gives, as a hash.
    of: String,
    /// The changes that were made here or taken over, by the server's name.
    changed: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// The groups of a configuration that the API may change.
pub fn shared(conf: &Conf) -> Vec<Arc<dyn SharedSpace>> {
    let groups = &weir_proxy::declared(conf).upstream.groups;
    let live = groups.iter().filter_map(|group| Some((space_name(&group.name), group.live.clone()?)));
    let space = |(name, live): (String, Arc<LiveGroup>)| {
        let of = hash(&live);
        Arc::new(ServersSpace { name, live, of, changed: Mutex::default() }) as Arc<dyn SharedSpace>
    };
    live.map(space).collect()
}

/// The space of a group.
pub fn space_name(group: &str) -> String {
    format!("servers:{group}")
}

/// Tells the other edges of a change to a server; `None` if it was removed.
pub fn publish(conf: &Conf, group: &str, name: &str, server: Option<&Value>) {
    if let Some(fleet) = crate::declared(conf).fleet.fleet() {
        let change = json!({"server": server.map(without_own)});
        fleet.publish(&space_name(group), name, Some(change.to_string().into_bytes()));
    }
}

fn without_own(server: &Value) -> Value {
    let mut server = server.clone();
    if let Value::Object(members) = &mut server {
        members.retain(|name, _| !OWN.contains(&name.as_str()));
    }
    server
}

fn hash(live: &LiveGroup) -> String {
    let servers: Vec<Value> =
        live.servers().iter().filter(|server| server["parent"].is_null()).map(without_own).collect();
    let hash = Sha256::digest(Value::Array(servers).to_string());
    hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

impl ServersSpace {
    fn apply(&self, name: &str, server: &Value) -> Result<(), Refused> {
        let known = self.live.servers().into_iter().find(|known| known["server"] == name && known["parent"].is_null());
        let id = known.as_ref().and_then(|known| u32::try_from(known["id"].as_u64()?).ok());
        match (id, server.is_null()) {
            (Some(id), true) => self.live.remove_server(id).map(drop),
            (None, true) => Ok(()),
            (Some(id), false) => match known.as_ref().map(without_own).as_ref() == Some(server) {
                true => Ok(()),
                false => self.live.change_server(id, server).map(drop),
            },
            (None, false) => self.live.add_server(server).map(drop),
        }
    }
}

impl SharedSpace for ServersSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn take(&self, records: &[TakenRecord]) {
        for (key, value) in records {
            let Some(change) = value.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok()) else {
                continue;
            };
            if change["of"] != self.of.as_str() {
                continue;
            }
            match self.apply(key, &change["server"]) {
                Ok(()) => self.note(key, value.as_deref()),
                Err(refused) => log::global(
                    Level::Error,
                    format_args!(
                        "weir cannot take the change of {key} in {} over from the fleet: {refused}",
                        self.name
                    ),
                ),
            }
        }
    }

    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.iter().map(|(name, change)| (name.clone(), change.clone())).collect()
    }

    fn written(&self, value: &[u8]) -> Vec<u8> {
        let mut change = serde_json::from_slice::<Value>(value).unwrap_or_default();
        if let Value::Object(members) = &mut change {
            members.insert("of".to_owned(), json!(self.of));
        }
        change.to_string().into_bytes()
    }

    fn note(&self, key: &str, value: Option<&[u8]>) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) => drop(changed.insert(key.to_owned(), value.to_vec())),
            None => drop(changed.remove(key)),
        }
    }
}
