//! The index of a movie (`moov`, ISO/IEC 14496-12): which atoms weir keeps, and in which order it writes them.
//!
//! As in nginx, a part of a movie has only the atoms that a player needs.

use std::ops::Range;

/// The most tracks of a movie.
pub const TRACKS_MAX: usize = 255;

/// The head of an atom: size and name.
pub const HEAD_BYTES: usize = 8;

/// The head of an atom that is larger than 4 GB.
pub const LARGE_HEAD_BYTES: usize = 16;

/// The part of a file that a client wants.
pub struct Wish {
    /// Where it starts, in milliseconds.
    pub start: u64,
    /// How long it is, in milliseconds; `None` to the end.
    pub length: Option<u64>,
    /// `mp4_start_key_frame`.
    pub starts_at_key_frame: bool,
    /// The largest index that weir reads.
    pub index_bytes_max: u64,
}

/// An index that was read: places in its bytes.
#[derive(Default)]
pub struct Movie {
    pub(super) header: Option<Range<usize>>,
    timescale: u32,
    pub(super) duration: u64,
    pub(super) tracks: Vec<Track>,
}

/// One track of a movie.
#[derive(Default)]
pub(super) struct Track {
    pub header: Option<Range<usize>>,
    has_media: bool,
    pub media_header: Option<Range<usize>>,
    handler: Option<Range<usize>>,
    has_information: bool,
    media_kind: Option<([u8; 4], Range<usize>)>,
    data_references: Option<Range<usize>>,
    has_tables: bool,
    descriptions: Option<Range<usize>>,
    /// `stts`: how long samples last.
    pub times: Option<Table>,
    /// `stss`: which samples are key frames.
    pub key_frames: Option<Table>,
    /// `ctts`: when samples are shown.
    pub shifts: Option<Table>,
    /// `stsc`: how many samples chunks have.
    pub runs: Option<Table>,
    /// A row of `stsc` before the others, for the rest of a chunk.
    pub first_run: Option<[u32; 3]>,
    /// A row of `stsc` after the others, for the beginning of a chunk.
    pub last_run: Option<[u32; 3]>,
    /// `stsz`: how large samples are.
    pub sizes: Option<Table>,
    /// `stco` or `co64`: where chunks are.
    pub chunks: Option<Table>,
    pub timescale: u32,
    pub duration: u64,
    /// Its duration in the movie's units.
    pub shown: u64,
    /// The time before the start that a player hides.
    pub hidden: u64,
    pub start_sample: u64,
    pub end_sample: u64,
    pub start_chunk: u64,
    pub end_chunk: u64,
    pub start_chunk_samples: u64,
    pub end_chunk_samples: u64,
    pub start_chunk_bytes: u64,
    pub end_chunk_bytes: u64,
}

/// A table in an atom: rows of one width.
#[derive(Clone)]
pub(super) struct Table {
    /// The bytes before the number of rows.
    head: Range<usize>,
    /// Where the first row of the file is.
    pub begin: usize,
    /// The rows that are left.
    pub rows: Range<usize>,
    /// Bytes in a row.
    pub width: usize,
    /// The number of rows that the atom tells, if it has no rows itself (samples of one size).
    pub told: Option<u32>,
}

impl Table {
    /// How many rows are left.
    pub fn count(&self) -> u64 {
        (self.rows.len() / self.width) as u64
    }
}

/// The positions of chunks in an answer's head.
pub struct Positions {
    rows: Range<usize>,
    width: usize,
}

impl Positions {
    /// Adds to each position.
    pub fn shift(&self, out: &mut [u8], by: u64) {
        for row in out.get_mut(self.rows.clone()).unwrap_or_default().chunks_exact_mut(self.width) {
            if let Ok(bytes) = <&mut [u8; 8]>::try_from(&mut *row) {
                *bytes = u64::from_be_bytes(*bytes).wrapping_add(by).to_be_bytes();
            } else if let Ok(bytes) = <&mut [u8; 4]>::try_from(row) {
                *bytes = u32::from_be_bytes(*bytes).wrapping_add(by as u32).to_be_bytes();
            }
        }
    }
}

/// The first words of some bytes; missing ones are 0.
pub fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|number| word(bytes, number * 4))
}

/// The word at this position; 0 if it is not there.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// The double word at this position; 0 if it is not there.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_be_bytes(*word))
}

/// Writes a word over the bytes at this position.
pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}

/// Writes a double word over the bytes at this position.
pub(super) fn put_long(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}

/// Appends an atom with the bytes that `inside` appends.
pub fn atom(out: &mut Vec<u8>, name: [u8; 4], inside: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&name);
    inside(out);
    let size = out.len() - start;
    put(out, start, u32::try_from(size).unwrap_or(u32::MAX));
}

/// How the walk through atoms goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    /// An atom of size 0: nothing follows.
    End,
    /// The track ends before the start: weir leaves it out.
    LeaveOut,
}

/// The levels of atoms that weir walks through.
#[derive(Clone, Copy)]
enum Level {
    Movie,
    Track,
    Media,
    Information,
    Tables,
}

struct Reader<'r> {
    bytes: &'r [u8],
    wish: &'r Wish,
    path: &'r str,
    movie: Movie,
}

impl Movie {
    /// Reads an index.
    pub fn read(bytes: &[u8], wish: &Wish, path: &str) -> Result<Movie, String> {
        let mut reader = Reader { bytes, wish, path, movie: Movie::default() };
        reader.walk(Level::Movie, 0..bytes.len())?;
        Ok(reader.movie)
    }

    /// Whether any track is left.
    pub fn has_tracks(&self) -> bool {
        !self.tracks.is_empty()
    }

    /// Appends the index as an atom; notes where the positions of chunks are in `out`.
    pub fn write(&self, bytes: &[u8], out: &mut Vec<u8>, positions: &mut Vec<Positions>) {
        atom(out, *b"moov", |out| {
            copy(out, *b"mvhd", bytes, self.header.as_ref());
            for track in &self.tracks {
                atom(out, *b"trak", |out| track.write(bytes, out, positions));
            }
        });
    }
}

fn copy(out: &mut Vec<u8>, name: [u8; 4], bytes: &[u8], range: Option<&Range<usize>>) {
    if let Some(range) = range {
        atom(out, name, |out| out.extend_from_slice(bytes.get(range.clone()).unwrap_or_default()));
    }
}

impl Track {
    fn write(&self, bytes: &[u8], out: &mut Vec<u8>, positions: &mut Vec<Positions>) {
        copy(out, *b"tkhd", bytes, self.header.as_ref());
        if self.hidden > 0 {
            atom(out, *b"edts", |out| {
                atom(out, *b"elst", |out| {
                    // Version 1, one row: duration, the time to start at, the rate 1.
                    out.extend_from_slice(&(1u32 << 24).to_be_bytes());
                    out.extend_from_slice(&1u32.to_be_bytes());
                    out.extend_from_slice(&self.shown.to_be_bytes());
                    out.extend_from_slice(&self.hidden.to_be_bytes());
                    out.extend_from_slice(&(1u32 << 16).to_be_bytes());
                });
            });
        }
        atom(out, *b"mdia", |out| {
            copy(out, *b"mdhd", bytes, self.media_header.as_ref());
            copy(out, *b"hdlr", bytes, self.handler.as_ref());
            atom(out, *b"minf", |out| {
                if let Some((name, range)) = &self.media_kind {
                    copy(out, *name, bytes, Some(range));
                }
                copy(out, *b"dinf", bytes, self.data_references.as_ref());
                atom(out, *b"stbl", |out| self.write_tables(bytes, out, positions));
            });
        });
    }

    fn write_tables(&self, bytes: &[u8], out: &mut Vec<u8>, positions: &mut Vec<Positions>) {
        copy(out, *b"stsd", bytes, self.descriptions.as_ref());
        let rows = |table: &Table| bytes.get(table.rows.clone()).unwrap_or_default();
        let put_table = |out: &mut Vec<u8>, name: [u8; 4], table: &Table, extra: u64| {
            atom(out, name, |out| {
                out.extend_from_slice(bytes.get(table.head.clone()).unwrap_or_default());
                let count = table.told.unwrap_or((table.count() + extra) as u32);
                out.extend_from_slice(&count.to_be_bytes());
            });
        };
        for (name, table) in [(*b"stts", &self.times), (*b"stss", &self.key_frames), (*b"ctts", &self.shifts)] {
            let Some(table) = table else { continue };
            if name == *b"ctts" && table.rows.is_empty() {
                continue;
            }
            let start = out.len();
            put_table(out, name, table, 0);
            out.extend_from_slice(rows(table));
            close(out, start);
        }
        if let Some(table) = &self.runs {
            let start = out.len();
            let extra = [self.first_run, self.last_run];
            put_table(out, *b"stsc", table, extra.iter().flatten().count() as u64);
            out.extend(self.first_run.iter().flatten().flat_map(|word| word.to_be_bytes()));
            out.extend_from_slice(rows(table));
            out.extend(self.last_run.iter().flatten().flat_map(|word| word.to_be_bytes()));
            close(out, start);
        }
        if let Some(table) = &self.sizes {
            let start = out.len();
            put_table(out, *b"stsz", table, 0);
            out.extend_from_slice(rows(table));
            close(out, start);
        }
        if let Some(table) = &self.chunks {
            let start = out.len();
            put_table(out, if table.width == 8 { *b"co64" } else { *b"stco" }, table, 0);
            let first = out.len();
            out.extend_from_slice(rows(table));
            positions.push(Positions { rows: first..out.len(), width: table.width });
            close(out, start);
        }
    }
}

/// Sets the size of an atom that began at `start` and ends here.
fn close(out: &mut [u8], start: usize) {
    let size = out.len() - start;
    put(out, start, u32::try_from(size).unwrap_or(u32::MAX));
}

impl Reader<'_> {
    fn walk(&mut self, level: Level, range: Range<usize>) -> Result<Flow, String> {
        let path = self.path;
        let mut at = range.start;
        while at < range.end {
            let left = range.end - at;
            let head = self.bytes.get(at..range.end).unwrap_or_default();
            let [size, name, large, larger] = words(head);
            if left >= 4 && size == 0 {
                return Ok(Flow::End);
            }
            let (size, head_size) = match size {
                1 if left >= LARGE_HEAD_BYTES => (u64::from(large) << 32 | u64::from(larger), LARGE_HEAD_BYTES),
                size => (u64::from(size), HEAD_BYTES),
            };
            if left < head_size {
                return Err(format!("\"{path}\" mp4 file truncated"));
            }
            if size < head_size as u64 {
                return Err(format!("\"{path}\" mp4 atom is too small:{size}"));
            }
            let Some(size) = usize::try_from(size).ok().filter(|size| *size <= left) else {
                return Err(format!("\"{path}\" mp4 atom too large:{size}"));
            };
            let flow = self.atom(level, name.to_be_bytes(), at + head_size..at + size)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
            at += size;
        }
        Ok(Flow::Next)
    }

    fn atom(&mut self, level: Level, name: [u8; 4], data: Range<usize>) -> Result<Flow, String> {
        match (level, &name) {
            (Level::Movie, b"mvhd") => self.movie_header(data),
            (Level::Movie, b"trak") => self.track(data),
            (Level::Movie, b"cmov") => {
                Err(format!("\"{}\" mp4 compressed moov atom (cmov) is not supported", self.path))
            }
            (Level::Track, b"tkhd") => self.track_header(data),
            (Level::Track, b"mdia") => {
                self.once("mdia", |track| std::mem::replace(&mut track.has_media, true))?;
                self.walk(Level::Media, data)
            }
            (Level::Media, b"mdhd") => self.media_header(data),
            (Level::Media, b"hdlr") => self.keep("hdlr", |track| &mut track.handler, data),
            (Level::Media, b"minf") => {
                self.once("minf", |track| std::mem::replace(&mut track.has_information, true))?;
                self.walk(Level::Information, data)
            }
            (Level::Information, b"vmhd" | b"smhd") => {
                self.once("vmhd/smhd", |track| track.media_kind.replace((name, data)).is_some())?;
                Ok(Flow::Next)
            }
            (Level::Information, b"dinf") => self.keep("dinf", |track| &mut track.data_references, data),
            (Level::Information, b"stbl") => {
                self.once("stbl", |track| std::mem::replace(&mut track.has_tables, true))?;
                self.walk(Level::Tables, data)
            }
            (Level::Tables, b"stsd") => {
                self.needs(&data, 16, "stsd")?;
                self.keep("stsd", |track| &mut track.descriptions, data)
            }
            (Level::Tables, b"stts") => self.table("stts", "stts", data, 8, |track| &mut track.times),
            (Level::Tables, b"stss") => self.table("stss", "stss", data, 4, |track| &mut track.key_frames),
            (Level::Tables, b"ctts") => self.table("ctts", "ctts", data, 8, |track| &mut track.shifts),
            (Level::Tables, b"stsc") => self.table("stsc", "stsc", data, 12, |track| &mut track.runs),
            (Level::Tables, b"stsz") => self.sizes(data),
            (Level::Tables, b"stco") => self.table("stco", "stco/co64", data, 4, |track| &mut track.chunks),
            (Level::Tables, b"co64") => self.table("co64", "stco/co64", data, 8, |track| &mut track.chunks),
            _ => Ok(Flow::Next),
        }
    }

    /// Refuses a second atom of a kind; `note` notes the atom, and returns whether there was one.
    fn once(&mut self, name: &str, note: impl FnOnce(&mut Track) -> bool) -> Result<(), String> {
        let had = self.movie.tracks.last_mut().is_some_and(note);
        if had { Err(format!("duplicate mp4 {name} atom in \"{}\"", self.path)) } else { Ok(()) }
    }

    fn keep(
        &mut self,
        name: &str,
        place: impl FnOnce(&mut Track) -> &mut Option<Range<usize>>,
        data: Range<usize>,
    ) -> Result<Flow, String> {
        self.once(name, |track| place(track).replace(data).is_some())?;
        Ok(Flow::Next)
    }

    fn needs(&self, data: &Range<usize>, size: usize, name: &str) -> Result<(), String> {
        if data.len() < size {
            return Err(format!("\"{}\" mp4 {name} atom too small", self.path));
        }
        Ok(())
    }

    fn track(&mut self, data: Range<usize>) -> Result<Flow, String> {
        if self.movie.tracks.len() == TRACKS_MAX {
            return Err(format!("more than {TRACKS_MAX} mp4 trak atoms in \"{}\"", self.path));
        }
        self.movie.tracks.push(Track::default());
        let flow = self.walk(Level::Track, data)?;
        if flow == Flow::LeaveOut {
            self.movie.tracks.pop();
            return Ok(Flow::Next);
        }
        Ok(flow)
    }

    /// The units of a second and the duration of a header whose fields of version 0 and 1 have these positions.
    fn time(&self, data: &Range<usize>, [units, short, units_1, duration_1]: [usize; 4]) -> (u32, u64) {
        let bytes = self.bytes.get(data.clone()).unwrap_or_default();
        match bytes.first() {
            Some(0) => (word(bytes, units), u64::from(word(bytes, short))),
            _ => (word(bytes, units_1), long(bytes, duration_1)),
        }
    }

    fn is_long(&self, data: &Range<usize>) -> bool {
        self.bytes.get(data.start).is_some_and(|version| *version != 0)
    }

    /// The duration from the start to the end of the file, and to the end that the client wants; `None` if the start is
    /// behind the end of the file.
    fn left(&self, duration: u64, timescale: u32) -> Option<(u64, u64)> {
        let units = |milliseconds: u64| milliseconds.wrapping_mul(u64::from(timescale)) / 1000;
        let left = duration.checked_sub(units(self.wish.start))?;
        Some((left, self.wish.length.map_or(left, |length| left.min(units(length)))))
    }

    fn movie_header(&mut self, data: Range<usize>) -> Result<Flow, String> {
        if self.movie.header.is_some() {
            return Err(format!("duplicate mp4 mvhd atom in \"{}\"", self.path));
        }
        self.needs(&data, if self.is_long(&data) { 112 } else { 100 }, "mvhd")?;
        let (timescale, duration) = self.time(&data, [12, 16, 20, 24]);
        self.movie.timescale = timescale;
        let Some((_, wanted)) = self.left(duration, timescale) else {
            return Err(format!("\"{}\" mp4 start time exceeds file duration", self.path));
        };
        self.movie.duration = wanted;
        self.movie.header = Some(data);
        Ok(Flow::Next)
    }

    fn track_header(&mut self, data: Range<usize>) -> Result<Flow, String> {
        self.needs(&data, if self.is_long(&data) { 96 } else { 84 }, "tkhd")?;
        let (_, duration) = self.time(&data, [0, 20, 0, 28]);
        let Some((_, wanted)) = self.left(duration, self.movie.timescale).filter(|(left, _)| *left > 0) else {
            return Ok(Flow::LeaveOut);
        };
        self.once("tkhd", |track| {
            track.shown = wanted;
            track.header.replace(data).is_some()
        })?;
        Ok(Flow::Next)
    }

    fn media_header(&mut self, data: Range<usize>) -> Result<Flow, String> {
        self.needs(&data, if self.is_long(&data) { 36 } else { 24 }, "mdhd")?;
        let (timescale, duration) = self.time(&data, [12, 16, 20, 24]);
        let Some((_, wanted)) = self.left(duration, timescale).filter(|(left, _)| *left > 0) else {
            return Ok(Flow::LeaveOut);
        };
        self.once("mdhd", |track| {
            (track.timescale, track.duration) = (timescale, wanted);
            track.media_header.replace(data).is_some()
        })?;
        Ok(Flow::Next)
    }

    fn table(
        &mut self,
        name: &str,
        kind: &str,
        data: Range<usize>,
        width: usize,
        place: impl FnOnce(&mut Track) -> &mut Option<Table>,
    ) -> Result<Flow, String> {
        const HEAD: usize = 8;
        self.needs(&data, HEAD, name)?;
        let count = word(self.bytes, data.start + 4) as usize;
        let size = count.saturating_mul(width);
        self.needs(&data, size.saturating_add(HEAD), name)?;
        let begin = data.start + HEAD;
        let table = Table { head: data.start..data.start + 4, begin, rows: begin..begin + size, width, told: None };
        self.once(kind, |track| place(track).replace(table).is_some())?;
        Ok(Flow::Next)
    }

    fn sizes(&mut self, data: Range<usize>) -> Result<Flow, String> {
        const HEAD: usize = 12;
        self.needs(&data, HEAD, "stsz")?;
        let (size, count) = (word(self.bytes, data.start + 4), word(self.bytes, data.start + 8));
        let is_uniform = size != 0;
        let rows = if is_uniform { 0 } else { (count as usize).saturating_mul(4) };
        self.needs(&data, rows.saturating_add(HEAD), "stsz")?;
        let begin = data.start + HEAD;
        let head = data.start..data.start + 8;
        let told = is_uniform.then_some(count);
        let table = Table { head, begin, rows: begin..begin + rows, width: 4, told };
        self.once("stsz", |track| track.sizes.replace(table).is_some())?;
        Ok(Flow::Next)
    }
}
