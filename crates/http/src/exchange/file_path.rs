//! The file that a URI names: `root` and `alias`.

use weir_conf::At;
use weir_net::log::Level;

use crate::exchange::Exchange;
use crate::text::template::Template;

/// The files of a location.
#[derive(Clone, Debug)]
pub struct Root {
    /// The directory; a relative value starts at the prefix.
    pub directory: Template,
    /// How the URI is appended to it.
    pub alias: Alias,
    /// The statement that sets it.
    pub at: At,
}

/// The part of the URI that is appended to the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// `root`: the whole URI.
    Off,
    /// `alias` in a prefix location: the part after that many bytes, which are the location's name.
    Prefix(usize),
    /// `alias` in a regex location: nothing, because captures give the file's name.
    Whole,
}

/// Appends the directory of `root` or `alias` to `out`.
pub fn directory(exchange: &mut Exchange<'_>, out: &mut Vec<u8>) {
    let (location, conf) = (exchange.location, exchange.conf);
    let Some(root) = &location.values.files.root else { return };
    let start = out.len();
    root.directory.eval(exchange, out);
    if root.directory.literal().is_none() && out.get(start) != Some(&b'/') {
        out.splice(start..start, conf.paths.prefix.bytes());
    }
}

/// How this location's `root` or `alias` treats the URI.
pub fn alias(exchange: &Exchange<'_>) -> Alias {
    exchange.location.values.files.root.as_ref().map_or(Alias::Off, |root| root.alias)
}

/// The file of the URI, and the length of its directory part; `None` if an `alias` cannot map the URI because it was
/// rewritten (nginx: `ngx_http_map_uri_to_path`).
pub fn path(exchange: &mut Exchange<'_>) -> Option<(Vec<u8>, usize)> {
    let alias = alias(exchange);
    if alias != Alias::Off && exchange.flags.uri_changed {
        let name = &exchange.location.name;
        exchange
            .log(Level::Alert, format_args!("\"alias\" cannot be used in location \"{name}\" where URI was rewritten"));
        return None;
    }
    let mut path = Vec::with_capacity(128);
    directory(exchange, &mut path);
    let root = path.len();
    match alias {
        Alias::Off => path.extend_from_slice(exchange.uri),
        Alias::Prefix(skipped) => path.extend_from_slice(exchange.uri.get(skipped..).unwrap_or_default()),
        Alias::Whole if exchange.flags.alias_takes_uri => path.extend_from_slice(exchange.uri),
        Alias::Whole => {}
    }
    Some((path, root))
}

/// Errors of `open(2)` and `stat(2)` that nginx answers in special ways.
pub mod errno {
    #![allow(missing_docs)]
    pub const ENOENT: i32 = 2;
    pub const EACCES: i32 = 13;
    pub const ENOTDIR: i32 = 20;
    pub const EMLINK: i32 = 31;
    pub const ENAMETOOLONG: i32 = 36;
    pub const ELOOP: i32 = 40;
}
