//! `gunzip`: decompresses answers with `Content-Encoding: gzip` for clients that do not accept it.
//!
//! <https://nginx.org/en/docs/http/ngx_http_gunzip_module.html>. The settings of `gzip` decide which clients accept it
//! (`gzip_http_version`, `gzip_proxied`, `gzip_disable`), and `gzip_vary` applies.

use flate2::{Decompress, FlushDecompress, Status};
use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::{BodyFilter, FilterState};
use weir_http::hold::bounds::{BUFFERS, Share};
use weir_http::read::directive::{Arity, Directive, HSL, TWO};
use weir_http::read::families::Family;
use weir_http::send::altered;
use weir_http::text::value;
use weir_proxy::family::compression::{self, Coding};
use weir_wire::Known;

weir_http::settings! {
    /// `gunzip`.
    enabled: bool = false,
    /// `gunzip_buffers`: their number and size.
    buffers: (u32, u64) = (32, 4 << 10),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "gunzip",
    &[
        Directive::new(
            "gunzip",
            HSL,
            Arity::Flag,
            "Decompresses answers that are compressed with gzip for clients that do not accept gzip.",
            |b, s| {
                crate::settings(b).gunzip.enabled = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "gunzip_buffers",
            HSL,
            TWO,
            "The number and size of buffers for an answer: no more bytes of it are decompressed at once.",
            |b, s| {
                crate::settings(b).gunzip.buffers = Some(value::buffers(s)?);
                Ok(())
            },
        )
        .default("32 4k"),
    ],
)
.filter(|location| crate::values(location).gunzip.enabled, filter)
.fixed(|_, _| false)
.inner();

fn filter(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let is_gzip = exchange.response.fields.get(Known::ContentEncoding);
    if !is_gzip.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip")) {
        return;
    }
    let proxy = weir_proxy::values(location);
    if proxy.gzip.vary {
        compression::vary(exchange);
    }
    let is_gzip = |coding: Coding| coding == Coding::Gzip && coding.is_allowed(exchange, proxy);
    // A part of another answer is plain text there.
    if !exchange.flags.is_subrequest && compression::accepted(exchange, is_gzip).next().is_some() {
        return;
    }
    let (count, size) = crate::values(location).gunzip.buffers;
    let response = &mut exchange.response;
    response.fields.remove(Known::ContentEncoding);
    altered::forget_length(response);
    altered::forget_ranges(response);
    altered::weaken_etag(response);
    // Without the memory for its buffers, the decoder gives less at once, and needs no more than each exchange may have.
    let (mut share, max) = (BUFFERS.share(), u64::from(count).saturating_mul(size));
    let max = if max <= SMALL_BYTES || share.grow(max) { max } else { SMALL_BYTES };
    response.body_filters.push(Box::new(Gunzip::new(usize::try_from(max).unwrap_or(usize::MAX), share)));
}

/// Decompresses a body as it passes through.
struct Gunzip {
    stream: Decompress,
    /// A member has ended; another may follow.
    is_over: bool,
    /// Input whose output has no room yet: the rest of one piece.
    waiting: Vec<u8>,
    is_full: bool,
    /// The most output of one call in bytes.
    max: usize,
    #[expect(dead_code, reason = "it counts the output until the filter ends")]
    share: Share,
    failure: Option<String>,
}

/// The 32k window that gzip uses.
const WINDOW_BITS: u8 = 15;

/// The output of one call that needs no share of the memory for buffers.
const SMALL_BYTES: u64 = 8 << 10;

/// Output grows by this much at a time.
const STEP_BYTES: usize = 16 << 10;

impl Gunzip {
    fn new(max: usize, share: Share) -> Gunzip {
        Gunzip {
            stream: Decompress::new_gzip(WINDOW_BITS),
            is_over: false,
            waiting: Vec::new(),
            is_full: false,
            max: max.max(1),
            share,
            failure: None,
        }
    }

    /// Decompresses; returns how much of the input is used.
    fn run(&mut self, input: &[u8], how: u8, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            if self.is_over {
                if rest.is_empty() {
                    return used;
                }
                // RFC 1952 §2.2: a body may have several members.
                self.stream = Decompress::new_gzip(WINDOW_BITS);
                self.is_over = false;
            }
            let Some(room) = self.max.checked_sub(out.len() - start).filter(|room| *room > 0) else {
                self.is_full = true;
                return used;
            };
            let position = out.len();
            let step = room.min(STEP_BYTES);
            out.resize(position + step, 0);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let space = out.get_mut(position..).unwrap_or_default();
            let status = self.stream.decompress(rest, space, FlushDecompress::None);
            let taken = (self.stream.total_in() - taken) as usize;
            let given = (self.stream.total_out() - given) as usize;
            out.truncate(position + given);
            used += taken;
            match status {
                Err(_) => {
                    self.failure = Some(format!("inflate() failed: {how}, {DATA_ERROR}"));
                    return used;
                }
                Ok(Status::StreamEnd) => self.is_over = true,
                // Room is left: the input is used up.
                Ok(_) if given < step => return used,
                Ok(_) => {}
            }
        }
    }
}

/// zlib's numbers, for messages in nginx's words.
const FINISH: u8 = 4;
const SYNC_FLUSH: u8 = 2;
const DATA_ERROR: i8 = -3;
const BUFFER_ERROR: i8 = -5;

impl BodyFilter for Gunzip {
    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        self.is_full = false;
        if self.failure.is_some() {
            return;
        }
        let how = match (last, flush) {
            (true, _) => FINISH,
            (false, true) => SYNC_FLUSH,
            (false, false) => 0,
        };
        if self.waiting.is_empty() {
            let used = self.run(input, how, out);
            if self.is_full {
                self.waiting.extend_from_slice(input.get(used..).unwrap_or_default());
            }
        } else {
            let mut waiting = std::mem::take(&mut self.waiting);
            waiting.extend_from_slice(input);
            let used = self.run(&waiting, how, out);
            if self.is_full {
                waiting.drain(..used);
                self.waiting = waiting;
            }
        }
        if last && !self.is_full && !self.is_over && self.failure.is_none() {
            self.failure = Some(format!("inflate() returned {BUFFER_ERROR} on response end"));
        }
    }

    fn state(&self) -> FilterState<'_> {
        match &self.failure {
            Some(text) => FilterState::Failed(text),
            None if self.is_full => FilterState::Full,
            None => FilterState::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The output for pieces of a body, and the failure.
    fn through<'p>(pieces: impl Iterator<Item = &'p [u8]>, max: usize) -> (Vec<u8>, Option<String>) {
        let mut filter = Gunzip::new(max, BUFFERS.share());
        let mut all = Vec::new();
        let mut write = |input: &[u8], last| {
            let mut input = input;
            loop {
                let before = all.len();
                filter.write(input, false, last, &mut all);
                assert!(all.len() - before <= max);
                input = b"";
                if filter.state() != FilterState::Full {
                    return;
                }
            }
        };
        pieces.for_each(|piece| write(piece, false));
        write(b"", true);
        (all, filter.failure)
    }

    #[test]
    fn a_body_comes_back_however_it_is_cut() {
        let text: Vec<u8> = (0..50_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 27) as u8).collect();
        let twice = [gzip(&text), gzip(b""), gzip(&text)].concat();
        let expected = [text.as_slice(), &text].concat();
        for (piece, max) in [(1 << 20, 1 << 20), (1 << 20, 4096), (1, 100), (1000, 1), (777, 128 << 10)] {
            assert!(through(twice.chunks(piece), max) == (expected.clone(), None), "pieces of {piece}, at most {max}");
        }
    }

    #[test]
    fn a_body_that_grows_comes_in_portions() {
        let packed = gzip(&vec![0; 10_000_000]);
        assert!(packed.len() < 20_000);
        let (out, failure) = through([packed.as_slice()].into_iter(), 128 << 10);
        assert_eq!((out.len(), failure), (10_000_000, None));
    }

    #[test]
    fn a_body_that_is_cut_or_broken_fails() {
        let packed = gzip(b"a text");
        let whole = |bytes: &[u8]| through([bytes].into_iter(), 1 << 20).1.unwrap_or_default();
        assert_eq!(whole(&packed[..packed.len() - 1]), "inflate() returned -5 on response end");
        assert_eq!(whole(b""), "inflate() returned -5 on response end");
        assert_eq!(whole(b"not compressed"), "inflate() failed: 0, -3");
        assert_eq!(whole(&[packed.as_slice(), b"rubbish"].concat()), "inflate() failed: 0, -3");
        let mut wrong = packed.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert_eq!(whole(&wrong), "inflate() failed: 0, -3");
    }

    mod mutate {
        use super::*;
        use weir_mutate::{mutate, splits};

        /// A body that is cut, changed or a bomb: the same output however it is cut, in portions, and deflate's own bound.
        #[test]
        fn bodies() {
            let seeds = [gzip(b"a text, a text, a text"), gzip(&[0; 5_000]), [gzip(b""), gzip(b"two")].concat()];
            let words: [&[u8]; 5] =
                [b"\x1f\x8b\x08\0", b"\x1f\x8b\x08\x1c", b"\0\0\xff\xff", b"\x03\0", b"\xff\xff\xff\xff"];
            mutate(&seeds, &words, |body| {
                let whole = through([body].into_iter(), 4_096);
                assert!(whole.0.len() <= 1_032 * body.len() + 64, "{} of {} bytes", whole.0.len(), body.len());
                for split in splits(body.len()).step_by(3) {
                    let (head, tail) = body.split_at(split);
                    let (out, failure) = through([head, tail].into_iter(), 4_096);
                    assert_eq!(failure.is_some(), whole.1.is_some(), "split at {split}");
                    // Before a failure, the pieces decide how much came out.
                    assert!(out == whole.0 || failure.is_some(), "split at {split}");
                }
            });
        }
    }
}
