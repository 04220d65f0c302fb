//! One HTTP exchange: nginx.conf to an immutable configuration, and a request through the phases to its answer.
//!
//! ```text
//!  Tree ─ Build (families read statements) ─► Conf ─► conn ─► exchange ─ phases ─► respond
//! ```
//!
//! Invariants: `Conf` never changes; an exchange ends with the one it began with; parsing a configuration has no side
//! effects; no byte from outside can cause a panic. The engine names no family of the crates above.
//!
//! A configuration:
//!
//! - `families`, `above`, `macros`, `settings`: the parts of a family, and the list of all families, which `edge` hands
//!   in; typed places in which the crates above keep settings and declarations; macros that declare a crate's families
//! - `contexts`, `directive`, `known`, `value`, `authority`, `build/`, `refusal`: where a directive may be, and with
//!   how many arguments; how a statement finds its directive; readers of arguments, hosts and ports among them; the
//!   blocks; problems are collected, not thrown
//! - `compile`, `found`, `listens`, `conf`, `route`: blocks become flat arenas of servers and locations; the `listen`
//!   statements of all servers become sockets; addresses, hosts and URIs find servers and locations
//! - `slots`, `regex`, `template`, `variable`: the values that an exchange keeps for variables; PCRE2; texts with
//!   `$names`
//! - `paths`, `reach`: where relative names point to; the places of the file system that a configuration names
//! - `family/`: the families of the engine itself; `nginx_only/`: the directives that weir does not have, each with an
//!   alternative
//!
//! An exchange:
//!
//! - `conn/`, `client`, `head`: a connection's socket and waits; the facts about its client; how weir reads a head
//! - `exchange/`, `status_code`, `message`, `visit`, `phase`, `walk/`: one request and its answer; the status, which an
//!   error fixes; the request as received, and the tries; the cache's part; nginx's phases, which never wait; the walk
//!   through them
//! - `subrequest`, `background`, `composing/`, `composed/`, `pipe`: requests to other URIs of this server; bodies that
//!   contain their answers, in order; the bounded way of such an answer into the body
//! - `body/`, `body_file`, `request_body`: receives bodies
//! - `respond/`, `head_out`, `response_body`, `filtering`, `altered`, `kept`, `writing`, `framed`, `pace`: sends heads
//!   and bodies; passes bodies through filters; takes back what a head says about a changed body; stored answers; the
//!   few ways to send bytes; rates
//! - `h2/`: HTTP/2. A task drives each connection. A stream is a `net::Carried`, which is read and written like a
//!   socket. Each stream from a client has its own task; exchanges open the streams to an origin (`ask`, `reply`) on a
//!   connection of `proxy`
//! - `special`, `line`: error pages and redirects; lines of the error log about an exchange
//! - `subject`: an exchange or a session, for families whose directives are the same in `http` and in `stream`
//!
//! A worker and the process:
//!
//! - `worker`, `extensions`, `own`, `colleagues`: the things a worker owns; values that families keep with a worker, a
//!   configuration or an exchange, one of each type; how a worker reaches the others
//! - `zone`, `bounds`: tables in which all workers count; the bounds for all clients together
//! - `board/`, `counters`, `counting`: the cells in which a worker counts, by name; the counts of the process
//! - `dns/`: names resolved while the edge serves: the known answers (`book`), the questions (`ask`)
//! - `trace/`: W3C trace context; spans go into one bounded queue, and a thread sends them to a collector
//!   (`family/otel` has the directives)
#![forbid(unsafe_code)]

/// The version of nginx whose directives weir reads: written only here, as a literal that `concat!` accepts.
macro_rules! nginx_version {
    () => {
        "1.31.5"
    };
}
pub(crate) use nginx_version;

pub mod above;
pub mod altered;
pub mod authority;
pub mod background;
pub mod base64;
pub mod board;
pub mod body;
pub mod body_file;
pub mod bounds;
pub mod build;
pub mod cidr;
pub mod client;
pub mod colleagues;
pub mod compile;
mod composed;
pub mod composing;
pub mod conf;
pub mod conn;
pub mod content_type;
pub mod contexts;
pub mod counters;
pub mod counting;
pub mod directive;
pub mod dns;
pub mod exchange;
pub mod extensions;
pub mod families;
pub mod family;
pub mod file_path;
pub mod filtering;
pub mod found;
pub mod framed;
pub mod frames;
pub mod h2;
pub mod head;
mod head_out;
pub mod host_table;
pub mod keepalive;
pub mod kept;
pub mod known;
pub mod line;
pub mod listens;
mod macros;
pub mod media_types;
pub mod message;
pub mod nginx_only;
pub mod own;
pub mod pace;
pub mod paths;
pub mod patience;
pub mod phase;
pub mod pipe;
pub mod reach;
pub mod refusal;
pub mod regex;
pub mod request_body;
pub mod respond;
pub mod response_body;
pub mod route;
pub mod settings;
pub mod slots;
pub mod special;
pub mod status_code;
pub mod subject;
pub mod subrequest;
pub mod table_place;
pub mod template;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod trace;
pub mod value;
pub mod variable;
pub mod visit;
pub mod walk;
pub mod worker;
pub mod writing;
pub mod zone;
pub mod zone_names;

/// Compiles a file of this text with the families of this crate and of those below; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<crate::conf::Conf>, Vec<String>) {
    crate::compile::of_text(text, families())
}

/// The families of this crate and of those below.
#[cfg(test)]
fn families() -> &'static crate::families::Families {
    static ALL: std::sync::LazyLock<crate::families::Families> =
        std::sync::LazyLock::new(|| crate::families::Families::new(&[&families::ENGINE], &["headers"]));
    &ALL
}
