//! The configuration in force, its sockets, and the workers that serve. Also gives the parts of a configuration their
//! numbers.

use std::collections::HashMap;
use std::sync::Arc;

use weir_http::exchange::conf::Conf;
use weir_http::hold::board::lock;
use weir_http::hold::board::names::OTHERS;
use weir_net::{Listening, Watched};

use super::Live;

/// The data that the observer needs besides counters.
#[derive(Clone, Default)]
pub struct Scene {
    /// The configuration in force.
    pub conf: Option<Arc<Conf>>,
    /// When it was put in force, in Unix milliseconds.
    pub loaded_ms: u64,
    /// The sockets listened on.
    pub sockets: Vec<Watched>,
    /// The seats of the serving workers, in their order.
    pub seats: Vec<usize>,
    /// How many configurations weir refused at a reload.
    pub refused: u64,
    /// Whether the last one was refused.
    pub is_last_refused: bool,
}

impl Live {
    /// Gives the locations and limits of a configuration their cells; a name keeps the cell that it had before.
    pub fn enlist(&self, conf: &mut Conf) {
        let mut roots = HashMap::new();
        for server in &conf.servers {
            let name = &conf.location(server.root).zone.server;
            roots.entry(name.clone()).or_insert_with(|| self.boards.zones.number(&zone_name(name, "")));
        }
        for location in &mut conf.locations {
            let root = roots.get(&location.zone.server).copied().unwrap_or(OTHERS);
            let name = location.zone.location.as_deref();
            let own = name.map(|name| self.boards.zones.number(&zone_name(&location.zone.server, name)));
            // weir counts a location without its own number in its server, so that the server's totals stay correct.
            location.cell = own.filter(|number| *number != OTHERS).unwrap_or(root);
        }
        let declared = crate::declared_mut(conf);
        declared.limit_req.number_cells(|name| self.boards.limits.number(&format!("req\0{name}")));
        declared.limit_conn.requests.number_cells(|name| self.boards.limits.number(&format!("conn\0{name}")));
        declared.limit_conn.sessions.number_cells(|name| self.boards.limits.number(&format!("sessions\0{name}")));
        for path in &mut weir_proxy::declared_mut(conf).cache.paths {
            path.cell = self.boards.caches.number(&path.name);
        }
    }

    /// Puts this configuration in force for the observer.
    pub fn show(&self, conf: &Arc<Conf>, sockets: Vec<Listening>, seats: Vec<usize>) {
        let mut scene = lock(&self.scene);
        let sockets = sockets.iter().map(Listening::watch).collect();
        let refused = scene.refused;
        let loaded_ms = weir_net::clock::unix_ms();
        *scene = Scene { conf: Some(conf.clone()), loaded_ms, sockets, seats, refused, is_last_refused: false };
    }

    /// Notes that weir refused a configuration at a reload.
    pub fn refuse(&self) {
        let mut scene = lock(&self.scene);
        (scene.refused, scene.is_last_refused) = (scene.refused + 1, true);
    }
}

/// The name of the cell for a location's requests; `location` is empty for requests outside all locations.
pub fn zone_name(server: &str, location: &str) -> String {
    format!("{server}\0{location}")
}
