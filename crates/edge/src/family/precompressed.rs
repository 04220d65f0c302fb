//! `gzip_static`, `brotli_static`, `zstd_static`: sends a compressed file in place of the file beside it.
//!
//! The settings of `gzip` decide whether a client gets a `.gz` file (`gzip_http_version`, `gzip_proxied`,
//! `gzip_disable`), even if `gzip` itself is off; `gzip_vary` is about all of them.
//! <https://nginx.org/en/docs/http/ngx_http_gzip_static_module.html>

use std::os::unix::fs::MetadataExt;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::file_path::{self, errno};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::family::open_file_cache::{self, OpenFailed};
use weir_http::hold::open_files::OpenFile;
use weir_http::read::directive::{Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{Level, Os};
use weir_proxy::family::compression::{self, Coding};
use weir_wire::Known;

use crate::family::static_files;

weir_http::settings! {
    /// `gzip_static`.
    gzip: Precompressed = Precompressed::Off,
    /// `brotli_static`.
    brotli: Precompressed = Precompressed::Off,
    /// `zstd_static`.
    zstd: Precompressed = Precompressed::Off,
}

/// When a compressed file is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precompressed {
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
    "precompressed",
    &[
        Directive::new(
            "gzip_static",
            HSL,
            ONE,
            "Sends FILE.gz in place of FILE, to clients that accept gzip (on) or to all clients (always).",
            |b, s| {
                crate::settings(b).precompressed.gzip = Some(use_of(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "brotli_static",
            HSL,
            ONE,
            "Sends FILE.br in place of FILE, to clients that accept brotli (on) or to all clients (always).",
            |b, s| {
                crate::settings(b).precompressed.brotli = Some(use_of(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "zstd_static",
            HSL,
            ONE,
            "Sends FILE.zst in place of FILE, to clients that accept Zstandard (on) or to all clients (always).",
            |b, s| {
                crate::settings(b).precompressed.zstd = Some(use_of(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.phase(
    Phase::Content,
    |location| {
        compression::ALL.iter().any(|coding| crate::values(location).precompressed.of(*coding) != Precompressed::Off)
    },
    answer,
);

fn use_of(statement: &Statement) -> Result<Precompressed, Refusal> {
    value::choice(
        statement,
        &[("off", Precompressed::Off), ("on", Precompressed::On), ("always", Precompressed::Always)],
    )
}

impl Values {
    fn of(&self, coding: Coding) -> Precompressed {
        match coding {
            Coding::Gzip => self.gzip,
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
        }
    }
}

fn ending(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Gzip => b".gz",
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
    }
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let method = exchange.request.method();
    if (method != b"GET" && method != b"HEAD") || exchange.uri.ends_with(b"/") {
        return Next::Continue;
    }
    let location = exchange.location;
    let (uses, proxy) = (&crate::values(location).precompressed, weir_proxy::values(location));
    let may = |coding: Coding| match uses.of(coding) {
        Precompressed::Off => false,
        Precompressed::On => coding.is_allowed(exchange, proxy),
        Precompressed::Always => true,
    };
    let accepted: Vec<Coding> = compression::accepted(exchange, may).collect();
    let always = |coding: &Coding| uses.of(*coding) == Precompressed::Always && !accepted.contains(coding);
    // If there is a compressed file, a client that does not accept it still needs `Vary`: the answer depends on it.
    let refused =
        |coding: &Coding| proxy.gzip.vary && uses.of(*coding) == Precompressed::On && !accepted.contains(coding);
    let taken = accepted.iter().copied().chain(compression::ALL.into_iter().filter(always));
    let all = taken.map(|coding| (coding, true));
    for (coding, is_taken) in all.chain(compression::ALL.into_iter().filter(refused).map(|coding| (coding, false))) {
        if let Some(next) = send(exchange, coding, uses.of(coding) == Precompressed::On && proxy.gzip.vary, is_taken) {
            return next;
        }
    }
    Next::Continue
}

/// Sends the file in this coding, if there is one and the client takes it.
fn send(exchange: &mut Exchange<'_>, coding: Coding, varies: bool, is_taken: bool) -> Option<Next> {
    let Some((mut path, _)) = file_path::path(exchange) else { return Some(Next::Status(500)) };
    path.extend_from_slice(ending(coding));
    let OpenFile { file, facts } = match open_file_cache::open(exchange, &path) {
        Ok(opened) => opened,
        Err(failed) => {
            complain(exchange, &path, &failed);
            return None;
        }
    };
    if varies {
        compression::vary(exchange);
    }
    if !is_taken || facts.is_dir() {
        return None;
    }
    if !facts.is_file() {
        let path = String::from_utf8_lossy(&path);
        exchange.log(Level::Crit, format_args!("\"{path}\" is not a regular file"));
        return Some(Next::Status(404));
    }
    static_files::serve(exchange, file, facts.len(), facts.mtime());
    let fields = &mut exchange.response.fields;
    fields.push_known(b"Content-Encoding", coding.name().as_bytes(), Some(Known::ContentEncoding));
    Some(Next::Respond)
}

/// A missing file is the usual case; any other error is logged, and the plain file is sent.
fn complain(exchange: &mut Exchange<'_>, path: &[u8], OpenFailed { call, error }: &OpenFailed) {
    let level = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => return,
        Some(errno::EACCES | errno::EMLINK | errno::ELOOP) => Level::Error,
        Some(_) | None => Level::Crit,
    };
    let path = String::from_utf8_lossy(path);
    exchange.log(level, format_args!("{call} \"{path}\" failed {}", Os(error)));
}
