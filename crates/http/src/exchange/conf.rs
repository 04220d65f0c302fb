//! The compiled configuration: it is immutable, all workers share it, and a reload replaces it as a whole.
//!
//! Blocks become flat arenas of servers and locations that refer to each other by number. A location
//! keeps only the phase handlers, filters and steps that its settings activate.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::exchange::phase::Phase;
use crate::exchange::route::{Listen, LocationId, Methods, Pattern, Place, Places, ServerId, Socket};
use crate::exchange::{Enter, Exchange, Get};
use crate::family::{Declared, Values};
use crate::hold::above;
use crate::hold::paths::Paths;
use crate::hold::reach::Reach;
use crate::hold::zone_names::ZoneNames;
use crate::text::regex::{MatchFailed, Regex};
use crate::text::slots::{SlotStore, VariableId};
use crate::text::template::{Definition, Names, Template};

/// If the limit on open files bounds the table, clients leave one place of so many to connections to upstreams. Without one,
/// no exchange of the clients that have all others could end.
const KEPT_PART: usize = 8;

/// How the families define a name in lower case; `None` if none of them has it.
pub type BuiltIn = dyn Fn(&str) -> Option<Definition<Get>> + Send + Sync;

/// A configuration in force. It never changes: an exchange uses one configuration from start to end.
pub struct Conf {
    /// 1 at start, one more with each reload.
    pub generation: u32,
    /// Workers that hold this configuration.
    pub holders: AtomicUsize,
    /// The settings outside all servers.
    pub main: Values,
    /// The sockets to listen on.
    pub sockets: Vec<Socket>,
    /// The UDP sockets for QUIC.
    pub quic: Vec<Socket>,
    /// Address and port to servers.
    pub listens: Vec<Listen>,
    /// All servers, in the order of the file.
    pub servers: Vec<Server>,
    /// All locations, `if` blocks and server levels among them.
    pub locations: Vec<Location>,
    /// The definition of each variable, by `VariableId`.
    pub definitions: Vec<Definition<Get>>,
    /// The names of the variables.
    pub names: Names<Get>,
    /// How the families define a name that the file does not mention.
    pub built_in: Box<BuiltIn>,
    /// Declarations for the whole of `http`, by family.
    pub declared: Declared,
    /// Declarations of crates above.
    pub above: above::Declared,
    /// Where relative names pointed to.
    pub paths: Paths,
    /// The files and directories that a server with this configuration uses.
    pub reach: Reach,
    /// Places of `worker_connections` that no connection can have (nginx): the file's listening sockets and the channel
    /// to the master.
    pub places_fixed: usize,
    /// The address of the dashboard's own server.
    pub dashboard: Option<SocketAddr>,
    /// Two upstreams that had each other's name in the configuration before.
    pub exchanged: Option<[String; 2]>,
    /// Connections that the limit on open files leaves to a worker; no limit until the limit is known.
    pub places_by_files: usize,
    /// For each variable, by number, whether its value is made of the request's body; empty if none is.
    pub reads_body: Vec<bool>,
    /// The families' facts for lines of the error log.
    pub context: Vec<fn(&Exchange<'_>, &mut Vec<u8>)>,
}

/// A `server` block.
pub struct Server {
    /// Its place in `Conf::servers`.
    pub id: ServerId,
    /// `$server_name`: the first name as written, without a leading dot.
    pub name: String,
    /// All its names.
    pub names: Vec<crate::exchange::route::Name>,
    /// A place in it answers CONNECT; elsewhere weir refuses this method.
    pub answers_connect: bool,
    /// Rewrites at server level.
    pub rules: Vec<Rule>,
    /// The settings in force if no location matches.
    pub root: LocationId,
    /// Its locations.
    pub places: Places,
    /// Named locations, without `@`.
    pub named: HashMap<String, LocationId>,
}

/// A `location`, an `if` in one, or the level of a server.
pub struct Location {
    /// Its place in `Conf::locations`.
    pub id: LocationId,
    /// The prefix, regex or name as written; an `if` has the name of the location around it.
    pub name: String,
    /// How it was matched; `None` at server level and in `if` and `limit_except` blocks.
    pub pattern: Option<Pattern>,
    /// The settings in force.
    pub values: Values,
    /// The settings in force of crates above.
    pub above: above::Values,
    /// Its rewrites.
    pub rules: Vec<Rule>,
    /// The handler that answers here.
    pub handler: Option<Enter>,
    /// The handlers of the phases before the content, only those that have something to do.
    pub walk: Vec<(Phase, Enter)>,
    /// A text of a handler in `walk` reads the request's body.
    pub reads_body: bool,
    /// The handlers of the content phase for locations without a handler of their own.
    pub content: Vec<Enter>,
    /// The filters that have something to do, in the order in which they run.
    pub filters: Vec<fn(&mut Exchange<'_>)>,
    /// Those of them that change the answers of subrequests too.
    pub inner_filters: Vec<fn(&mut Exchange<'_>)>,
    /// The families' steps in it, only those that have something to do.
    pub steps: Steps,
    /// Heads of stored answers may be kept ready (`family::cache::plain`).
    pub has_ready_heads: bool,
    /// Locations inside this one.
    pub places: Places,
    /// The methods another block handles, and that block.
    pub limit_except: Option<(Methods, LocationId)>,
    /// The zones that count its requests.
    pub zone: ZoneNames,
    /// The number of the cell that counts its requests (`live::Live::enlist`).
    pub cell: u32,
}

/// The steps that families take for each request in a location, besides the handlers of phases.
#[derive(Default)]
pub struct Steps {
    /// Before the rules of a server, in the location of the server's level.
    pub enter: Vec<fn(&mut Exchange<'_>)>,
    /// Before the rules of the location.
    pub enter_location: Vec<fn(&mut Exchange<'_>)>,
    /// In the log phase, in the location in which the exchange has ended.
    pub log: Vec<fn(&mut Exchange<'_>)>,
}

/// One rule; a block's rules run in the order of the file.
pub enum Rule {
    /// `set $name value`.
    Set(VariableId, Template),
    /// `set` on a built-in variable that may be changed (`$args`, `$limit_rate`).
    SetBuiltIn(fn(&mut Exchange<'_>, &[u8]), Template),
    /// A variable that a family computes (`set_md5`).
    Compute(Box<Compute>),
    /// `client_body_early_read`: reads the body if one of these is neither empty nor `0`.
    ReadBody(Vec<Template>),
    /// A family answers the request itself, before all other rules; true if the response is in the exchange.
    Answer(fn(&mut Exchange<'_>) -> bool),
    /// `rewrite`.
    Rewrite(Box<Rewrite>),
    /// `return`: the status, then a text or a redirect's target; empty for neither.
    Return(u16, Template),
    /// `break`.
    Break,
    /// `if (condition) { rules }`; in a location the block also has settings of its own.
    If {
        /// The condition of the block.
        condition: Condition,
        /// The rules inside.
        inner: Vec<Rule>,
        /// The index of its block among the children of the block around it.
        child: usize,
        /// The settings in force once the block ran; bound when the configuration is compiled.
        place: Option<LocationId>,
    },
}

impl Rule {
    /// Whether `is_one` is true for a text or a variable that this rule, a rule inside it, or a handler of a block inside
    /// it reads.
    fn reads(&self, is_one: &dyn Fn(&Template) -> bool, place: &dyn Fn(LocationId) -> bool) -> bool {
        match self {
            Rule::Set(_, text) | Rule::SetBuiltIn(_, text) | Rule::Return(_, text) => is_one(text),
            Rule::Compute(rule) => rule.of.iter().any(is_one),
            Rule::ReadBody(_) | Rule::Answer(_) | Rule::Break => false,
            Rule::Rewrite(rewrite) => match &rewrite.target {
                Target::Uri { path, args, .. } => is_one(path) || args.as_ref().is_some_and(is_one),
                Target::Redirect { location, .. } => is_one(location),
            },
            Rule::If { condition, inner, place: block, .. } => {
                let holds = match condition {
                    Condition::True(id) | Condition::Matches(id, ..) => is_one(&Template::of_id(*id)),
                    Condition::Equals(id, text, _) => is_one(&Template::of_id(*id)) || is_one(text),
                    Condition::File(_, text, _) => is_one(text),
                };
                holds || block.is_some_and(place) || inner.iter().any(|rule| rule.reads(is_one, place))
            }
        }
    }
}

/// Puts a rule that reads the request's body before the rules of each server and location whose rules, or whose handlers
/// before the content, read it. nginx has not read the body there, and the value would be empty for every request. Where
/// `client_body_early_read` is written, it decides.
pub fn read_bodies_first(servers: &mut [Server], locations: &mut [Location], reads: &dyn Fn(&Template) -> bool) {
    let by_handlers: Vec<bool> = locations.iter().map(|location| location.reads_body).collect();
    let place = |id: LocationId| by_handlers.get(id.0 as usize).copied().unwrap_or_default();
    let first = |rules: &mut Vec<Rule>, by_handler: bool| {
        if by_handler || rules.iter().any(|rule| rule.reads(reads, &place)) {
            rules.insert(0, Rule::ReadBody(vec![Template::fixed("1")]));
        }
    };
    let is_free = |location: &Location| location.values.early_read.when.is_empty();
    for server in servers {
        if locations.get(server.root.0 as usize).is_some_and(is_free) {
            first(&mut server.rules, false);
        }
    }
    for location in locations {
        if is_free(location) {
            first(&mut location.rules, location.reads_body);
        }
    }
}

/// A rule that sets a variable to a text that a family makes of other texts.
pub struct Compute {
    /// The variable.
    pub place: Settable,
    /// The other texts.
    pub of: Vec<Template>,
    /// Makes the text.
    pub make: Make,
}

/// Appends a text made of other texts; an error is a line for the log, and ends the exchange with 500.
pub type Make = Box<dyn Fn(&mut Exchange<'_>, &[Vec<u8>], &mut Vec<u8>) -> Result<(), String> + Send + Sync>;

/// A variable that a rule may set.
#[derive(Clone, Copy)]
pub enum Settable {
    /// Its value is kept in the exchange.
    Slot(VariableId),
    /// A built-in one.
    BuiltIn(fn(&mut Exchange<'_>, &[u8])),
}

/// `rewrite regex replacement [flag]`.
pub struct Rewrite {
    /// The pattern for the URI.
    pub regex: Arc<Regex>,
    /// The result of the rule.
    pub target: Target,
    /// The request's arguments follow those of the replacement; a final `?` drops them.
    pub keeps_args: bool,
    /// No later rule runs if this one matched.
    pub ends: bool,
}

/// The result of a `rewrite`.
pub enum Target {
    /// A new URI, and the text after its first `?`.
    Uri {
        /// The path.
        path: Template,
        /// The new arguments, if the replacement has some.
        args: Option<Template>,
        /// `break`: the exchange stays in the location.
        stays: bool,
    },
    /// A redirect of the client.
    Redirect {
        /// 301 or 302.
        status: u16,
        /// The address.
        location: Template,
        /// The address has arguments already.
        has_args: bool,
    },
}

/// The condition of an `if`.
pub enum Condition {
    /// The variable is neither empty nor `0`.
    True(VariableId),
    /// The variable equals the text (`true`) or differs from it.
    Equals(VariableId, Template, bool),
    /// The variable matches (`true`) or does not.
    Matches(VariableId, Arc<Regex>, bool),
    /// The test of a file holds (`true`) or does not.
    File(FileTest, Template, bool),
}

/// The tests of a file: `-f`, `-d`, `-e` and `-x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTest {
    /// A regular file.
    Plain,
    /// A directory.
    Directory,
    /// One of the two.
    Exists,
    /// Executable by its owner.
    Executable,
}

impl Conf {
    /// The location of a URI in a server.
    pub fn place(&self, server: &Server, uri: &[u8], slots: &mut SlotStore) -> Result<Place, MatchFailed> {
        server.places.find(&|id| &self.location(id).places, uri, slots).map(|(place, _)| place)
    }

    /// Notes the address of the dashboard's own server. Its socket takes no place of `worker_connections`, because the user did not
    /// count it.
    pub fn show(&mut self, dashboard: SocketAddr) {
        self.dashboard = Some(dashboard);
        let own = self.sockets.iter().filter(|socket| socket.address.tcp() == Some(dashboard)).count();
        self.places_fixed = self.places_fixed.saturating_sub(own);
    }

    /// Connections that a worker may have, clients and upstreams counted together, and whether `worker_connections`
    /// sets this number (else the limit on open files does).
    pub fn places(&self) -> (usize, bool) {
        match self.main.process.connections.map(|written| written.saturating_sub(self.places_fixed)) {
            Some(places) if places <= self.places_by_files => (places, true),
            Some(_) | None => (self.places_by_files, false),
        }
    }

    /// The connections of [`Conf::places`] that may be clients'.
    pub fn places_of_clients(&self) -> usize {
        match self.places() {
            (places, true) => places,
            (places, false) => places - places / KEPT_PART,
        }
    }

    /// A server by number.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0 as usize]
    }

    /// A location by number.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }
}
