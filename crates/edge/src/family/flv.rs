//! `flv`: sends an FLV file from a byte position on, as players ask for it with `start`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_flv_module.html>

use std::os::unix::fs::MetadataExt;

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Next;
use weir_http::hold::open_files::OpenFile;
use weir_http::read::directive::{Directive, LOCATION, NONE};
use weir_http::read::families::Family;
use weir_http::text::value;

use crate::family::static_files;

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "flv",
    &[Directive::new(
        "flv",
        LOCATION,
        NONE,
        "Sends FLV files from the byte on that the argument start names.",
        |b, _| {
            b.scope().handler = Some(answer);
            Ok(())
        },
    )
    .many()],
);

/// The head of a file with audio and video, and the size of the tag before the first one.
const HEAD: &[u8] = b"FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00";

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let (OpenFile { file, facts }, _) = match static_files::open_media(exchange) {
        Ok(opened) => opened,
        Err(next) => return next,
    };
    let start = static_files::argument(exchange, b"start")
        .and_then(|text| value::number(std::str::from_utf8(&text).ok()?))
        .filter(|start| *start < facts.len())
        .unwrap_or(0);
    if start == 0 {
        static_files::serve(exchange, file, facts.len(), facts.mtime());
    } else {
        static_files::serve_rest(exchange, file, facts.mtime(), HEAD.to_vec(), start..facts.len());
    }
    Next::Respond
}
