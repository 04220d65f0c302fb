//! The reverse proxy: nginx.conf to an immutable configuration, and exchanges through it.
//!
//! ```text
//!  Tree ─ Build (families read statements) ─► Conf ─► worker: conn ─► exchange ─ phases ─► respond
//!                                                                      └► upstream: pick, try, relay
//! ```
//!
//! Invariants: `Conf` never changes; an exchange ends with the one it began with; parsing a configuration has no side
//! effects; no byte from outside can cause a panic.
#![forbid(unsafe_code)]

/// The version of nginx whose directives weir reads: written only here, as a literal that `concat!` accepts.
macro_rules! nginx_version {
    () => {
        "1.31.5"
    };
}
pub(crate) use nginx_version;

pub mod authority;
pub mod base64;
pub mod board;
pub mod body;
pub mod build;
pub mod cidr;
pub mod client;
pub mod colleagues;
pub mod compile;
pub mod conf;
pub mod conn;
pub mod content_type;
pub mod contexts;
pub mod control;
pub mod counters;
pub mod counting;
pub mod dash;
pub mod directive;
pub mod dns;
pub mod drive;
pub mod exchange;
pub mod explain;
pub mod extensions;
pub mod family;
pub mod file_path;
pub mod found;
pub mod guard;
pub mod h2;
pub mod head;
pub mod host_table;
pub mod keepalive;
mod kept;
pub mod line;
pub mod listens;
pub mod live;
pub mod log_files;
pub mod media_types;
pub mod message;
pub mod modules;
pub mod nginx_only;
pub mod pace;
pub mod patience;
pub mod phase;
pub mod purge;
pub mod refusal;
pub mod regex;
pub mod relay;
pub mod request_body;
pub mod respond;
pub mod response_body;
pub mod route;
pub mod settings;
pub mod slots;
pub mod special;
pub mod table_place;
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
