//! One HTTP exchange: nginx.conf to an immutable configuration, and a request through the phases to its answer.
//!
//! ```text
//!  Tree ─ Build (families read statements) ─► Conf ─► conn ─► exchange ─ phases ─► respond
//! ```
//!
//! Invariants: `Conf` never changes; an exchange ends with the one it began with; parsing a configuration has no side
//! effects; no byte from outside can cause a panic. The engine names no family of the crates above.
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
