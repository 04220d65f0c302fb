//! The location of a request, by the configuration as it is now.

use std::collections::HashMap;

use weir_http::exchange::route::{self, LocationId, Place};
use weir_http::text::regex::Regex;
use weir_http::text::slots::{SlotStore, VariableId};

use crate::explain::place;
use crate::view::{Match, Scope, Spot, View, matches_by};

/// Most requests whose location is looked up; the answer for each is kept.
const LOOKED_UP_MAX: usize = 4096;
/// Deepest nesting of locations.
const DEPTH_MAX: usize = 16;

/// The locations of all servers, compiled when a line needs them.
pub struct Places<'v> {
    view: &'v View<'v>,
    servers: HashMap<String, Vec<Levels<'v>>>,
    known: HashMap<(String, String), Option<String>>,
}

/// The locations of one server.
struct Levels<'v> {
    top: route::Places,
    inside: Vec<route::Places>,
    spots: Vec<Spot<'v>>,
}

impl<'v> Places<'v> {
    /// The locations of this configuration.
    pub fn new(view: &'v View<'v>) -> Places<'v> {
        Places { view, servers: HashMap::new(), known: HashMap::new() }
    }

    /// The location of a request, with its place: `location /api/ (nginx.conf:12)`. The server's name is the one that
    /// nginx logs, the first of its names. `None` if the configuration has no such location.
    ///
    /// The path is the client's, so a request that was rewritten may have another location.
    pub fn of(&mut self, server: &str, path: &str) -> Option<String> {
        let key = (server.to_owned(), path.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= LOOKED_UP_MAX {
            return None;
        }
        let view = self.view;
        let servers = self.servers.entry(server.to_owned()).or_insert_with(|| {
            let is_named = |scope: &Scope<'v>| scope.get("server_name").map_or("", |names| names.arg(0)) == server;
            view.servers().filter(is_named).map(Levels::of).collect()
        });
        // Servers with the same name listen at different addresses, and the line does not name the address. Only a
        // location that asks an origin has errors of an upstream.
        let found: Vec<Spot<'v>> = servers.iter().filter_map(|levels| levels.find(path)).collect();
        let asks = found.iter().find(|spot| spot.inside().all().any(|inner| inner.name().ends_with("_pass")));
        let label = |spot: &Spot<'v>| format!("location {} ({})", spot.text(), place(view.tree(), spot.at()));
        let label = asks.or(found.first()).map(label);
        self.known.insert(key, label.clone());
        label
    }
}

impl<'v> Levels<'v> {
    fn of(server: Scope<'v>) -> Levels<'v> {
        let mut levels = Levels { top: route::Places::default(), inside: Vec::new(), spots: Vec::new() };
        levels.top = levels.level(server, 0);
        levels
    }

    /// The locations of one block. Patterns that PCRE does not accept are left out.
    fn level(&mut self, block: Scope<'v>, depth: usize) -> route::Places {
        let mut places = route::Places::default();
        if depth >= DEPTH_MAX {
            return places;
        }
        for spot in block.named("location").filter(|spot| spot.is_block()) {
            let Ok(number) = u32::try_from(self.spots.len()) else { break };
            let id = LocationId(number);
            self.spots.push(spot);
            self.inside.push(route::Places::default());
            match matches_by(spot) {
                Match::Exact(path) => {
                    places.add_exact(path, id);
                }
                Match::Prefix(path) => {
                    let stops_regex = spot.arg(0).starts_with("^~");
                    places.add_prefix(path, id, stops_regex, false);
                }
                Match::Pattern(text, caseless) => {
                    if let Ok(regex) = Regex::new(text, caseless, false, |_| VariableId(0)) {
                        places.add_regex(regex.into(), id);
                    }
                }
                Match::Named(_) => {}
            }
            let inner = self.level(spot.inside(), depth + 1);
            if let Some(slot) = self.inside.get_mut(number as usize) {
                *slot = inner;
            }
        }
        places.compile();
        places
    }

    fn find(&self, path: &str) -> Option<Spot<'v>> {
        let none = route::Places::default();
        let inside = |id: LocationId| self.inside.get(id.0 as usize).unwrap_or(&none);
        match self.top.find(&inside, path.as_bytes(), &mut SlotStore::default()) {
            Ok((Place::Here(id) | Place::AddSlash(id), _)) => self.spots.get(id.0 as usize).copied(),
            Ok((Place::Nowhere, _)) | Err(_) => None,
        }
    }
}
