//! The filters that compress a body as it passes through, one for each coding. `cost` knows their memory.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use flate2::{Compress, Compression, FlushCompress, Status};
use weir_http::exchange::response_body::{BodyFilter, FilterState};
use weir_http::hold::bounds::Share;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use super::coding::{Coding, CodingPlan};
use super::cost;

/// Output grows by this much at a time.
const STEP_BYTES: usize = 8 << 10;

/// A coder that is made when the first piece of its body comes. Its memory is counted before that.
pub struct CodingCounted<C> {
    plan: CodingPlan,
    coder: Option<C>,
    #[expect(dead_code, reason = "it counts the memory until the filter ends")]
    share: Share,
}

/// The filter of a plan. `share` has the memory of the coder.
pub fn filter(plan: CodingPlan, share: Share) -> Box<dyn BodyFilter> {
    match plan.coding {
        Coding::Gzip => Box::new(CodingCounted::<Gzip> { plan, coder: None, share }),
        Coding::Brotli => Box::new(CodingCounted::<Brotli> { plan, coder: None, share }),
        Coding::Zstd => Box::new(CodingCounted::<Zstd> { plan, coder: None, share }),
    }
}

impl<C: BodyFilter + From<CodingPlan>> BodyFilter for CodingCounted<C> {
    fn is_outer(&self) -> bool {
        true
    }

    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        self.coder.get_or_insert_with(|| C::from(self.plan)).write(input, flush, last, out);
    }

    fn is_costly(&self) -> bool {
        self.coder.is_none()
    }

    fn state(&self) -> FilterState<'_> {
        self.coder.as_ref().map_or(FilterState::Done, BodyFilter::state)
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        self.coder.as_ref().map_or(Some((0, 0)), BodyFilter::bytes)
    }
}

impl From<CodingPlan> for Gzip {
    fn from(plan: CodingPlan) -> Gzip {
        Gzip::new(plan.level.unsigned_abs())
    }
}

impl From<CodingPlan> for Brotli {
    fn from(plan: CodingPlan) -> Brotli {
        Brotli::new(plan.level, plan.window_bits.unwrap_or(cost::BROTLI_WINDOW_BITS_MAX), plan.length)
    }
}

impl From<CodingPlan> for Zstd {
    fn from(plan: CodingPlan) -> Zstd {
        Zstd::new(plan.level, plan.window_bits.map(i32::unsigned_abs), plan.length)
    }
}

/// Compresses with gzip.
pub struct Gzip {
    stream: Compress,
}

/// The 32k window that every decoder has.
const WINDOW_BITS: u8 = 15;

/// zlib-rs's level 1 uses one fixed code for all texts: C source shrinks to 1/3.87 at 357 MB/s. zlib's level 1, which
/// is nginx's default, gives 1/4.72 at 171 MB/s. Level 2 gives 1/4.96 at 247 MB/s: fewer bytes, less time.
const LEVEL_MIN: u32 = 2;

impl Gzip {
    /// A coder of this level.
    fn new(level: u32) -> Gzip {
        Gzip { stream: Compress::new_gzip(Compression::new(level.max(LEVEL_MIN)), WINDOW_BITS) }
    }
}

impl BodyFilter for Gzip {
    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        let how = match (last, flush) {
            (true, _) => FlushCompress::Finish,
            (false, true) => FlushCompress::Sync,
            (false, false) => FlushCompress::None,
        };
        let mut rest = input;
        loop {
            out.reserve(STEP_BYTES);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.compress_vec(rest, out, how);
            let taken = self.stream.total_in() - taken;
            let has_given = self.stream.total_out() > given;
            rest = rest.get(taken as usize..).unwrap_or_default();
            match status {
                Ok(Status::StreamEnd) | Err(_) => return,
                // Room is left: the compressor has no more output for now.
                Ok(_) if !last && rest.is_empty() && out.len() < out.capacity() => return,
                Ok(_) if taken == 0 && !has_given => return,
                Ok(_) => {}
            }
        }
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        Some((self.stream.total_in(), self.stream.total_out()))
    }
}

/// Compresses with brotli.
pub struct Brotli {
    encoder: Box<BrotliEncoderStateStruct<StandardAlloc>>,
    taken: u64,
    given: u64,
    has_failed: bool,
}

impl Brotli {
    /// A coder for a body of this length, if the length is known.
    fn new(level: i32, window_bits: i32, length: Option<u64>) -> Brotli {
        let bits = cost::brotli_window(level, window_bits, length);
        let mut encoder = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
        encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level as u32);
        encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, bits as u32);
        if let Some(hint) = length.and_then(|length| u32::try_from(length).ok()) {
            encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint);
        }
        Brotli { encoder, taken: 0, given: 0, has_failed: false }
    }
}

impl BodyFilter for Brotli {
    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        let how = match (last, flush) {
            (true, _) => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
            (false, true) => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
            (false, false) => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        };
        let (start, mut left, mut at) = (out.len(), input.len(), 0);
        loop {
            // Without room for output, the encoder keeps its output until it is taken.
            let (mut room, mut none) = (0, 0);
            let is_ok = self.encoder.compress_stream(
                how,
                &mut left,
                input,
                &mut at,
                &mut room,
                &mut [],
                &mut none,
                &mut None,
                &mut |_, _, _, _| (),
            );
            self.has_failed |= !is_ok;
            let before = out.len();
            while self.encoder.has_more_output() {
                let mut size = 0;
                let bytes = self.encoder.take_output(&mut size);
                out.extend_from_slice(bytes.get(..size).unwrap_or_default());
            }
            let is_done = left == 0 && (!last || self.encoder.is_finished());
            let is_stuck = left > 0 && at == 0 && out.len() == before;
            if is_done || is_stuck || self.has_failed {
                self.has_failed |= is_stuck;
                break;
            }
        }
        self.taken += input.len() as u64;
        self.given += (out.len() - start) as u64;
    }

    fn state(&self) -> FilterState<'_> {
        if self.has_failed { FilterState::Failed("brotli compression failed") } else { FilterState::Done }
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        Some((self.taken, self.given))
    }
}

/// Compresses with Zstandard.
pub struct Zstd {
    context: CCtx<'static>,
    taken: u64,
    given: u64,
    failure: Option<String>,
}

/// RFC 9659: browsers refuse a larger window than 8 MB, which the highest levels would use.
const ZSTD_WINDOW_BITS_MAX: u32 = 23;

/// From this level on, windows may be larger.
const ZSTD_LEVEL_LARGE: i32 = 20;

impl Zstd {
    /// A coder for a body of this length, if the length is known: then the tables are no larger than the body needs.
    fn new(level: i32, window_bits: Option<u32>, length: Option<u64>) -> Zstd {
        let mut zstd = Zstd { context: CCtx::create(), taken: 0, given: 0, failure: None };
        let mut parameter = zstd.context.set_parameter(CParameter::CompressionLevel(level));
        if let Some(bits) = window_bits.or((level >= ZSTD_LEVEL_LARGE).then_some(ZSTD_WINDOW_BITS_MAX)) {
            parameter = parameter.and_then(|_| zstd.context.set_parameter(CParameter::WindowLog(bits)));
        }
        if length.is_some() {
            parameter = parameter.and_then(|_| zstd.context.set_pledged_src_size(length));
        }
        if let Err(code) = parameter {
            zstd.failure = Some(text(code));
        }
        zstd
    }
}

fn text(code: zstd_safe::ErrorCode) -> String {
    format!("zstd compression failed: {}", zstd_safe::get_error_name(code))
}

impl BodyFilter for Zstd {
    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        let how = match (last, flush) {
            (true, _) => ZSTD_EndDirective::ZSTD_e_end,
            (false, true) => ZSTD_EndDirective::ZSTD_e_flush,
            (false, false) => ZSTD_EndDirective::ZSTD_e_continue,
        };
        let start = out.len();
        let mut rest = InBuffer::around(input);
        while self.failure.is_none() {
            out.reserve(STEP_BYTES);
            let position = out.len();
            let result = self.context.compress_stream2(&mut OutBuffer::around_pos(out, position), &mut rest, how);
            match result {
                Err(code) => self.failure = Some(text(code)),
                Ok(0) => break,
                Ok(_) if !last && !flush && rest.pos() == input.len() => break,
                Ok(_) => {}
            }
        }
        self.taken += input.len() as u64;
        self.given += (out.len() - start) as u64;
    }

    fn state(&self) -> FilterState<'_> {
        self.failure.as_deref().map_or(FilterState::Done, FilterState::Failed)
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        Some((self.taken, self.given))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Read;

    /// A decoder: the original bytes of a coded text.
    type Decode = fn(&[u8]) -> Vec<u8>;

    fn gunzip(coded: &[u8]) -> Vec<u8> {
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(coded).read_to_end(&mut back).unwrap();
        back
    }

    fn unbrotli(coded: &[u8]) -> Vec<u8> {
        let mut back = Vec::new();
        brotli::Decompressor::new(coded, 4096).read_to_end(&mut back).unwrap();
        back
    }

    fn unzstd(coded: &[u8]) -> Vec<u8> {
        let mut back = Vec::with_capacity(1 << 20);
        zstd_safe::decompress(&mut back, coded).unwrap();
        back
    }

    fn coders(length: Option<u64>) -> Vec<(String, Box<dyn BodyFilter>, Decode)> {
        let mut all: Vec<(String, Box<dyn BodyFilter>, Decode)> = Vec::new();
        for level in [1, 6] {
            all.push((format!("gzip {level}"), Box::new(Gzip::new(level)), gunzip));
        }
        for level in [0, 1, 2, 5, 6, 11] {
            all.push((format!("brotli {level}"), Box::new(Brotli::new(level, 19, length)), unbrotli));
        }
        for level in [-5, 1, 3, 22] {
            all.push((format!("zstd {level}"), Box::new(Zstd::new(level, None, length)), unzstd));
        }
        all
    }

    #[test]
    fn what_is_compressed_comes_back_however_it_is_cut() {
        let text: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 27) as u8).collect();
        for (piece, flush, told) in
            [(1 << 20, false, true), (7000, false, false), (7000, true, false), (100, false, true)]
        {
            for (name, mut filter, decode) in coders(told.then_some(text.len() as u64)) {
                let mut out = Vec::new();
                for part in text.chunks(piece) {
                    filter.write(part, flush, false, &mut out);
                }
                filter.write(b"", false, true, &mut out);
                assert_eq!(filter.state(), FilterState::Done);
                assert!(decode(&out) == text, "{name}: pieces of {piece}, flush {flush}");
                assert_eq!(filter.bytes(), Some((text.len() as u64, out.len() as u64)), "{name}");
            }
        }
    }

    #[test]
    fn a_coder_takes_no_more_memory_than_its_plan_says() {
        let mut seed = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .take(1 << 20)
        .collect();
        let brotli = |level, bits| (Coding::Brotli, level, Some(bits));
        let plans = [1, 6, 9].map(|level| (Coding::Gzip, level, None));
        let plans = plans.into_iter().chain([0, 1, 2, 4, 5, 6, 7, 9, 11].map(|level| brotli(level, 19)));
        let plans = plans.chain([brotli(5, 10), brotli(6, 16), brotli(2, 22), brotli(1, 24)]);
        let plans = plans.chain([-1, 1, 3, 6, 9, 12, 15, 16, 22].map(|level| (Coding::Zstd, level, None)));
        for (coding, level, window_bits) in plans {
            for length in [None, Some(1 << 16), Some(1 << 20)] {
                let plan = CodingPlan { coding, level, window_bits, length };
                for plan in [plan, cost::small(plan)] {
                    let used = memory(plan, noise.get(..length.unwrap_or(1 << 20) as usize).unwrap());
                    assert!(used <= cost::bytes(plan) as i64, "{plan:?} takes {} KiB", used >> 10);
                    assert!(cost::bytes(cost::small(plan)) <= 640 << 10, "{plan:?}");
                }
            }
        }
    }

    /// The most memory that a coder takes between two pieces of a body. The allocator does not see zstd's memory, which zstd
    /// itself tells.
    fn memory(plan: CodingPlan, body: &[u8]) -> i64 {
        let mut out = Vec::with_capacity(4 << 20);
        let before = weir_net::counts::held_bytes();
        let mut zstd = (plan.coding == Coding::Zstd).then(|| Zstd::from(plan));
        let mut filter = filter(plan, weir_http::hold::bounds::BUFFERS.share());
        let mut most = 0;
        for piece in body.chunks(32 << 10) {
            out.clear();
            let used = match &mut zstd {
                Some(zstd) => {
                    zstd.write(piece, false, false, &mut out);
                    zstd.context.sizeof() as i64
                }
                None => {
                    filter.write(piece, false, false, &mut out);
                    weir_net::counts::held_bytes() - before
                }
            };
            most = most.max(used);
        }
        most
    }

    #[test]
    fn an_empty_body_is_still_a_body() {
        for (name, mut filter, decode) in coders(Some(0)) {
            let mut out = Vec::new();
            filter.write(b"", false, true, &mut out);
            assert!(!out.is_empty() && decode(&out).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_lowest_level_still_codes_by_frequency() {
        let mut seed = 1u32;
        let hex: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"0123456789abcdef"[(seed >> 28) as usize]
        })
        .take(50_000)
        .collect();
        let mut out = Vec::new();
        Gzip::new(1).write(&hex, false, true, &mut out);
        assert!(out.len() * 10 < hex.len() * 6, "four bits of eight are noise, but {} bytes came out", out.len());
    }

    #[test]
    fn a_flush_gives_everything_that_went_in() {
        for (name, mut filter, _) in coders(None) {
            let mut out = Vec::new();
            filter.write(b"the first event", true, false, &mut out);
            let mut back = vec![0; 15];
            let read = match name.split(' ').next() {
                Some("gzip") => flate2::read::GzDecoder::new(out.as_slice()).read(&mut back).unwrap(),
                Some("br" | "brotli") => brotli::Decompressor::new(out.as_slice(), 4096).read(&mut back).unwrap(),
                _ => {
                    let mut context = zstd_safe::DCtx::create();
                    let mut output = OutBuffer::around(back.as_mut_slice());
                    context.decompress_stream(&mut output, &mut InBuffer::around(&out)).unwrap();
                    output.pos()
                }
            };
            assert_eq!(&back[..read], b"the first event", "{name}");
        }
    }
}
