//! `mp4`: sends a part of an MP4 file, as players ask for it with `start` and `end` in seconds.
//!
//! <https://nginx.org/en/docs/http/ngx_http_mp4_module.html>. `file` finds the atoms of a file, `movie` reads and writes
//! the index of a movie (`moov`), `crop` shortens the tables in it. The media themselves stay in the file. Invariant:
//! a file is never trusted: weir reads at most `mp4_max_buffer_size` bytes of it, [`file::ATOMS_MAX`] atoms and
//! [`movie::TRACKS_MAX`] tracks.

mod crop;
mod file;
mod movie;

use std::os::unix::fs::MetadataExt;

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Next;
use weir_http::hold::bounds::{BUFFERS, EXCHANGE_BYTES};
use weir_http::hold::open_files::OpenFile;
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, NONE, ONE};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_net::log::Level;

use crate::family::static_files;

use file::Fault;
use movie::Wish;

weir_http::settings! {
    /// `mp4_buffer_size`.
    buffer_size: u64 = 512 << 10,
    /// `mp4_max_buffer_size`.
    max_buffer_size: u64 = 10 << 20,
    /// `mp4_start_key_frame`.
    start_key_frame: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "mp4",
    &[
        Directive::new(
            "mp4",
            LOCATION,
            NONE,
            "Sends the part of MP4 files between the times start and end.",
            |b, _| {
                b.scope().handler = Some(answer);
                Ok(())
            },
        )
        .many(),
        Directive::new(
            "mp4_buffer_size",
            HSL,
            ONE,
            "Up to this size, the index of a file (moov) is read in any case.",
            |b, s| {
                crate::settings(b).mp4.buffer_size = Some(value::size(s)?);
                Ok(())
            },
        )
        .default("512k"),
        Directive::new("mp4_max_buffer_size", HSL, ONE, "The largest index of a file that weir reads.", |b, s| {
            crate::settings(b).mp4.max_buffer_size = Some(value::size(s)?);
            Ok(())
        })
        .default("10m"),
        Directive::new(
            "mp4_start_key_frame",
            HSL,
            Arity::Flag,
            "Starts at the key frame before the start; players hide the time in between.",
            |b, s| {
                crate::settings(b).mp4.start_key_frame = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
);

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let (OpenFile { file, facts }, path) = match static_files::open_media(exchange) {
        Ok(opened) => opened,
        Err(next) => return next,
    };
    let start = static_files::argument(exchange, b"start").and_then(|text| milliseconds(&text));
    let end = static_files::argument(exchange, b"end").and_then(|text| milliseconds(&text));
    let Some((start, length)) = asked(start, end) else {
        static_files::serve(exchange, file, facts.len(), facts.mtime());
        return Next::Respond;
    };
    let settings = &crate::values(exchange.location).mp4;
    let wish = Wish {
        start,
        length,
        starts_at_key_frame: settings.start_key_frame,
        index_bytes_max: settings.max_buffer_size.max(settings.buffer_size),
    };
    let mut share = BUFFERS.share();
    let part = file::part(&*file, facts.len(), &wish, &String::from_utf8_lossy(&path), |bytes| {
        bytes <= EXCHANGE_BYTES || share.grow(bytes)
    });
    exchange.own.add(share);
    match part {
        Ok(None) => static_files::serve(exchange, file, facts.len(), facts.mtime()),
        Ok(Some((head, range))) => static_files::serve_rest(exchange, file, facts.mtime(), head, range),
        Err(Fault::File(text)) => {
            exchange.log(Level::Error, format_args!("{text}"));
            return Next::Status(500);
        }
        Err(Fault::Full) => return Next::Status(503),
    }
    Next::Respond
}

/// Start and length; `None` for the whole file. An end that is not after the start is ignored.
fn asked(start: Option<u64>, end: Option<u64>) -> Option<(u64, Option<u64>)> {
    let end = end.filter(|end| *end > 0);
    let start = start.or(end.map(|_| 0))?;
    Some((start, end.filter(|end| *end > start).map(|end| end - start)))
}

/// Seconds with any number of digits after the point, as milliseconds (nginx: `ngx_http_mp4_atofp`).
fn milliseconds(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
    if text.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let thousandths = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(3);
    whole
        .iter()
        .copied()
        .chain(thousandths)
        .try_fold(0i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
        .map(i64::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_nginx_reads_them() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("2.5", Some(2500)),
            ("2.", Some(2000)),
            (".5", Some(500)),
            ("0.12345678901234567890", Some(123)),
            ("", None),
            ("1.2.3", None),
            ("-1", None),
            ("1s", None),
            ("9223372036854775807", None),
        ] {
            assert_eq!(milliseconds(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn an_end_before_the_start_is_ignored() {
        for (start, end, expected) in [
            (None, None, None),
            (Some(0), None, Some((0, None))),
            (None, Some(9), Some((0, Some(9)))),
            (None, Some(0), None),
            (Some(2), Some(5), Some((2, Some(3)))),
            (Some(2), Some(2), Some((2, None))),
            (Some(2), Some(0), Some((2, None))),
        ] {
            assert_eq!(asked(start, end), expected, "{start:?} {end:?}");
        }
    }
}
