//! Reads files: access logs, line by line, into requests; a recording is for [`super::recorded`].

use std::io::{BufRead, BufReader, Cursor, Read};

use weir_conf::log_format::{Format, Unfit};
use weir_recording::Fault;
use weir_recording::read::RecordingReader;

use super::detail::CallTraits;
use super::gather::{SeenRequest, TrafficGatherer};
use super::said;

/// The longest line that is read, in bytes; the rest of a longer line is skipped, and the line counts as unread.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The bytes by which a file is known.
const FIRST_BYTES: u64 = 16;
/// Lines from which the format is found.
const GUESS_LINES: usize = 200;
/// Unread lines that are shown.
const SHOWN_MAX: usize = 3;
/// Characters of an unread line that are shown.
const SHOWN_CHARS: usize = 100;

/// Why a line is left out.
enum Why {
    Long,
    Time,
    Unfit(Unfit),
}

impl TrafficGatherer<'_> {
    /// Reads a log or a recording, also one that gzip compressed.
    pub(super) fn file(&mut self, name: &str, bytes: Box<dyn Read>) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let (first, source) = plain(bytes).map_err(failed)?;
        if !weir_recording::is_recording(&first) {
            return self.log(name, &mut BufReader::new(source));
        }
        let refused = |fault: Fault| format!("{name}: {}", fault.said().say(self.wish.language));
        let parts = RecordingReader::new(BufReader::new(source)).map_err(refused)?;
        self.recording(name, parts)
    }

    fn log(&mut self, name: &str, source: &mut dyn BufRead) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut format = self.wish.format.clone();
        let mut number = 0;
        let mut line = Vec::new();
        while next_line(source, &mut line).map_err(failed)? {
            if let Some(format) = &format {
                number += 1;
                self.line(format, name, number, &line);
                continue;
            }
            first.push(line.clone());
            if first.len() == GUESS_LINES {
                format = Some(self.guess(name, &first)?);
                number = self.lines(format.as_ref(), name, &mut first);
            }
        }
        if !first.is_empty() {
            let format = self.guess(name, &first)?;
            self.lines(Some(&format), name, &mut first);
        }
        Ok(())
    }

    fn guess(&mut self, name: &str, first: &[Vec<u8>]) -> Result<Format, String> {
        let lines: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        let Some((known, format)) = Format::guess(&lines) else {
            return Err(said::fill(said::LOAD_FROM_NO_FORMAT, self.wish.language, &[name]));
        };
        self.log.formats.push((name.to_owned(), known.to_owned()));
        Ok(format)
    }

    /// Reads the lines that were kept to find the format; returns their number.
    fn lines(&mut self, format: Option<&Format>, name: &str, first: &mut Vec<Vec<u8>>) -> u64 {
        let mut number = 0;
        for line in std::mem::take(first) {
            number += 1;
            if let Some(format) = format {
                self.line(format, name, number, &line);
            }
        }
        number
    }

    fn line(&mut self, format: &Format, name: &str, number: u64, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        self.log.counts.lines += 1;
        let read = if line.len() < LINE_BYTES_MAX { format.fit(line).map_err(Why::Unfit) } else { Err(Why::Long) };
        match read.and_then(|entry| Ok((entry.at_ms.ok_or(Why::Time)?, entry))) {
            // nginx writes a line at the end of the request.
            Ok((end_ms, entry)) => self.request(&SeenRequest {
                at_ms: end_ms.saturating_sub(entry.took_ms.unwrap_or(0).min(u64::from(u32::MAX))),
                entry: &entry,
                traits: CallTraits::default(),
                detail: 0,
            }),
            Err(why) => {
                self.log.counts.unread += 1;
                if self.log.unread.len() < SHOWN_MAX {
                    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN_CHARS).collect();
                    let why = self.why(&why, format);
                    self.log.unread.push(format!("{name}:{number}: {} ({why})", shown.escape_debug()));
                }
            }
        }
    }

    /// The reason in words.
    fn why(&self, why: &Why, format: &Format) -> String {
        let fill = |text, value: &str| {
            let shown: String = value.chars().take(SHOWN_CHARS).collect();
            said::fill(text, self.wish.language, &[&shown.escape_debug().to_string()])
        };
        match why {
            Why::Long => fill(said::LOAD_FROM_WHY_LONG, &LINE_BYTES_MAX.to_string()),
            Why::Time => match format.time() {
                Some(name) => fill(said::LOAD_FROM_WHY_VALUE, &format!("${name}")),
                None => fill(said::LOAD_FROM_WHY_TIME, ""),
            },
            Why::Unfit(Unfit::NotJson) => fill(said::LOAD_FROM_WHY_JSON, ""),
            Why::Unfit(Unfit::Text(text)) => fill(said::LOAD_FROM_WHY_TEXT, text),
            Why::Unfit(Unfit::Value(name)) => fill(said::LOAD_FROM_WHY_VALUE, &format!("${name}")),
            Why::Unfit(Unfit::Target(target)) if target.is_empty() => fill(said::LOAD_FROM_WHY_NO_TARGET, ""),
            Why::Unfit(Unfit::Target(target)) => fill(said::LOAD_FROM_WHY_TARGET, target),
        }
    }
}

/// The first bytes, and all bytes with them.
fn begun(mut bytes: Box<dyn Read>) -> std::io::Result<(Vec<u8>, Box<dyn Read>)> {
    let mut first = Vec::new();
    bytes.by_ref().take(FIRST_BYTES).read_to_end(&mut first)?;
    Ok((first.clone(), Box::new(Cursor::new(first).chain(bytes))))
}

/// The first bytes of a file without the compression of gzip, and all of them.
fn plain(bytes: Box<dyn Read>) -> std::io::Result<(Vec<u8>, Box<dyn Read>)> {
    let (first, source) = begun(bytes)?;
    match first.starts_with(b"\x1f\x8b") {
        true => begun(Box::new(flate2::read::MultiGzDecoder::new(source))),
        false => Ok((first, source)),
    }
}

/// Calls `see` for each line of a log, also of one that gzip compressed, until `see` returns false. Of a longer line it
/// sees [`LINE_BYTES_MAX`] bytes.
///
/// # Errors
/// The error of the reader.
pub fn each_line(bytes: Box<dyn Read>, see: &mut dyn FnMut(&[u8]) -> bool) -> std::io::Result<()> {
    let (_, source) = plain(bytes)?;
    let (mut source, mut line) = (BufReader::new(source), Vec::new());
    while next_line(&mut source, &mut line)? && see(&line) {}
    Ok(())
}

/// Reads a line without its end. False: there are no more. Of a longer line it keeps [`LINE_BYTES_MAX`] bytes.
fn next_line(source: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut is_any = false;
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = memchr::memchr(b'\n', bytes);
        let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let used = end.map_or(bytes.len(), |end| end + 1);
        source.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
        }
    }
}
