//! The zones of the configuration in force, for the purge log.

use std::sync::{Arc, PoisonError, RwLock};

use weir_cache::store::{Force, Purge, Zone};

/// The zones that purges are applied to; a reload replaces them. Requests never use this list.
#[derive(Default)]
pub struct ZoneList(RwLock<Vec<Arc<Zone>>>);

impl ZoneList {
    /// A list of these zones.
    pub fn new(zones: Vec<Arc<Zone>>) -> ZoneList {
        ZoneList(RwLock::new(zones))
    }

    /// Purges in the zone of that name, or in all. On return, the purge is in force for every worker.
    pub fn apply(&self, zone: Option<&str>, purge: &Purge, force: Force) {
        let zones = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for zone in zones.iter().filter(|known| zone.is_none_or(|zone| known.settings().name == zone)) {
            zone.purge(purge.clone(), force);
        }
    }

    /// The zone of that name, or all zones.
    pub fn of(&self, zone: Option<&str>) -> Vec<Arc<Zone>> {
        let zones = self.0.read().unwrap_or_else(PoisonError::into_inner);
        zones.iter().filter(|known| zone.is_none_or(|zone| known.settings().name == zone)).cloned().collect()
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        let zones = self.0.read().unwrap_or_else(PoisonError::into_inner);
        zones.iter().map(|zone| zone.settings().name.clone()).collect()
    }

    /// Replaces the zones. A new zone may have objects on its disk that are older than any purge: it is soft-purged.
    pub fn replace(&self, new: Vec<Arc<Zone>>) {
        let mut zones = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for zone in new.iter().filter(|zone| !zones.iter().any(|known| Arc::ptr_eq(known, zone))) {
            zone.purge(Purge::All, Force::Soft);
        }
        *zones = new;
    }

    /// Soft-purges all zones but these.
    pub fn doubt_all_but(&self, known: &[String]) {
        let zones = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for zone in zones.iter().filter(|zone| !known.contains(&zone.settings().name)) {
            zone.purge(Purge::All, Force::Soft);
        }
    }
}
