//! `gzip_static`: sends a compressed file in place of the file beside it.
//!
//! The settings of `gzip` decide whether the client accepts it (`gzip_http_version`, `gzip_proxied`, `gzip_disable`,
//! `gzip_vary`), even if `gzip` itself is off. <https://nginx.org/en/docs/http/ngx_http_gzip_static_module.html>

use std::os::unix::fs::MetadataExt;

use weir_http::directive::{Directive, HSL, ONE};
use weir_http::exchange::Exchange;
use weir_http::families::Family;
use weir_http::family::disable_symlinks::{self, Failed};
use weir_http::file_path::{self, errno};
use weir_http::phase::{Next, Phase};
use weir_http::value;
use weir_net::log::{Level, Os};
use weir_proxy::family::gzip;
use weir_wire::Known;

use crate::family::static_files;

weir_http::settings! {
    /// `gzip_static`.
    use_of: Use = Use::Off,
}

/// When the compressed file is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Never.
    Off,
    /// To clients that accept it.
    On,
    /// To all clients.
    Always,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "gzip_static",
    &[Directive::new(
        "gzip_static",
        HSL,
        ONE,
        "Sends FILE.gz in place of FILE, to clients that accept gzip (on) or to all clients (always).",
        |b, s| {
            let use_of = value::choice(s, &[("off", Use::Off), ("on", Use::On), ("always", Use::Always)])?;
            crate::settings(b).gzip_static.use_of = Some(use_of);
            Ok(())
        },
    )
    .default("off")],
)
.phase(Phase::Content, |location| crate::values(location).gzip_static.use_of != Use::Off, answer);

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let method = exchange.request.method();
    if (method != b"GET" && method != b"HEAD") || exchange.uri.ends_with(b"/") {
        return Next::Continue;
    }
    let location = exchange.location;
    let gzip = &weir_proxy::values(location).gzip;
    let is_always = crate::values(location).gzip_static.use_of == Use::Always;
    let takes_it = is_always || gzip::client_takes_it(exchange, gzip);
    // If there is a compressed file, a client that does not accept it still needs `Vary`: the answer depends on it.
    if !takes_it && !gzip.vary {
        return Next::Continue;
    }
    let Some((mut path, _)) = file_path::path(exchange) else { return Next::Status(500) };
    path.extend_from_slice(b".gz");
    let opened = disable_symlinks::open(exchange, &path).and_then(|file| match file.metadata() {
        Ok(facts) => Ok((file, facts)),
        Err(error) => Err(Failed { call: "fstat()", error }),
    });
    let (file, facts) = match opened {
        Ok(opened) => opened,
        Err(failed) => {
            complain(exchange, &path, &failed);
            return Next::Continue;
        }
    };
    if !is_always && gzip.vary {
        gzip::vary(exchange);
    }
    if !takes_it || facts.is_dir() {
        return Next::Continue;
    }
    if !facts.is_file() {
        let path = String::from_utf8_lossy(&path);
        exchange.log(Level::Crit, format_args!("\"{path}\" is not a regular file"));
        return Next::Status(404);
    }
    static_files::serve(exchange, file, facts.len(), facts.mtime());
    exchange.response.fields.push_known(b"Content-Encoding", b"gzip", Some(Known::ContentEncoding));
    Next::Respond
}

/// A missing file is the usual case; any other error is logged, and the plain file is sent.
fn complain(exchange: &mut Exchange<'_>, path: &[u8], Failed { call, error }: &Failed) {
    let level = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => return,
        Some(errno::EACCES | errno::EMLINK | errno::ELOOP) => Level::Error,
        Some(_) | None => Level::Crit,
    };
    let path = String::from_utf8_lossy(path);
    exchange.log(level, format_args!("{call} \"{path}\" failed {}", Os(error)));
}
