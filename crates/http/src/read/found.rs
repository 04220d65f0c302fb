//! The places of a configuration that was read to its end.

use crate::exchange::conf::{Location, Server};
use crate::exchange::route::{Listen, ServerId};
use crate::read::listens::Drafted;

/// The places of a configuration, for a family that checks its declarations against them.
pub struct Found<'f> {
    /// All servers.
    pub servers: &'f [Server],
    /// All locations.
    pub locations: &'f [Location],
    /// Address and port to servers.
    pub listens: &'f [Listen],
    /// The `listen` and `server_name` of each server, as written.
    pub drafts: &'f [Drafted],
}

impl Found<'_> {
    /// The settings of a server outside its locations.
    pub fn root(&self, id: ServerId) -> Option<&Location> {
        let server = self.servers.get(id.0 as usize)?;
        self.locations.get(server.root.0 as usize)
    }
}
