//! Zones with `sync`: their pairs as records of the fleet.

use std::sync::Arc;

use weir_http::exchange::conf::Conf;
use weir_net::clock;
use weir_net::log::{self, Level};

use super::pairs::Pair;
use super::state;
use super::zone::{KeptPairs, KeyvalZone};
use crate::fleet::{SharedSpace, TakenRecord};

/// The pairs of one zone.
struct PairsSpace {
    name: String,
    pairs: Arc<KeptPairs>,
    state: Option<String>,
}

/// The zones of a configuration that a fleet shares.
pub fn shared(conf: &Conf) -> Vec<Arc<dyn SharedSpace>> {
    let zones = crate::declared(conf).keyval.zones.iter().filter(|zone| zone.shared_at.is_some());
    let space =
        |zone: &KeyvalZone| PairsSpace { name: zone.space(), pairs: zone.pairs.clone(), state: zone.state.clone() };
    zones.map(|zone| Arc::new(space(zone)) as Arc<dyn SharedSpace>).collect()
}

impl KeyvalZone {
    fn space(&self) -> String {
        format!("keyval:{}", self.name)
    }

    /// Tells the other edges of the present values of these keys.
    pub fn publish(&self, conf: &Conf, keys: &[String]) {
        let Some(fleet) = crate::declared(conf).fleet.fleet().filter(|_| self.shared_at.is_some()) else { return };
        let now_ms = clock::unix_ms();
        for key in keys {
            let value = self.read().get(key, now_ms).map(|pair| state::to_json(pair).to_string().into_bytes());
            fleet.publish(&self.space(), key, value);
        }
    }
}

impl SharedSpace for PairsSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn take(&self, records: &[TakenRecord]) {
        let mut misfits = 0;
        let taken = self.pairs.edit(self.state.as_deref(), |pairs, now_ms| {
            for (key, value) in records {
                let pair =
                    value.as_ref().map(|bytes| serde_json::from_slice(bytes).ok().as_ref().and_then(state::of_json));
                match pair {
                    None => drop(pairs.remove(key)),
                    // Another program wrote it.
                    Some(None) => {}
                    Some(Some(pair)) if pair.until_ms.is_some_and(|until| until <= now_ms) => drop(pairs.remove(key)),
                    Some(Some(pair)) => misfits += usize::from(pairs.set(key, pair).is_err()),
                }
            }
            Ok(())
        });
        let name = &self.name;
        if let Err(refused) = taken {
            log::global(
                Level::Error,
                format_args!("weir cannot take pairs of {name} over from the fleet: {}", refused.text),
            );
        } else if misfits > 0 {
            log::global(
                Level::Error,
                format_args!(
                    "{misfits} pairs of the fleet do not fit into {name}: give each edge the same size and type"
                ),
            );
        }
    }

    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let pairs = self.pairs.read();
        let record = |(key, pair): (&[u8], &Pair)| {
            (String::from_utf8_lossy(key).into_owned(), state::to_json(pair).to_string().into_bytes())
        };
        pairs.iter(clock::unix_ms()).map(record).collect()
    }
}
