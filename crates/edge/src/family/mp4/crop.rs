//! Shortens the tables of a movie to the part that a client wants.
//!
//! The tables depend on each other in this order: the times give the first and last sample, the samples give the
//! chunks, and the chunks give the positions in the file.

use std::ops::Range;

use super::movie::{Movie, Table, Track, Wish, long, put, put_long, word};

/// Which end of a table is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

struct Crop<'c> {
    /// The bytes of the index.
    bytes: &'c mut [u8],
    wish: &'c Wish,
    /// The length of the file.
    end: u64,
    /// The end of the media in the file.
    media_end: u64,
    path: &'c str,
}

impl Movie {
    /// Shortens all tracks; returns the range of the file that they need.
    pub fn crop(
        &mut self,
        bytes: &mut [u8],
        end: u64,
        media_end: u64,
        wish: &Wish,
        path: &str,
    ) -> Result<Range<u64>, String> {
        let mut crop = Crop { bytes, wish, end, media_end, path };
        let mut range = end..0;
        for track in &mut self.tracks {
            crop.times(track)?;
            crop.key_frames(track);
            crop.shifts(track);
            crop.runs(track)?;
            crop.sizes(track)?;
            let (start, stop) = crop.chunks(track)?;
            range = range.start.min(start)..range.end.max(stop);
            crop.set_duration(track.header.as_ref(), [20, 28], track.shown);
            crop.set_duration(track.media_header.as_ref(), [16, 24], track.duration);
        }
        crop.set_duration(self.header.as_ref(), [16, 24], self.duration);
        Ok(range)
    }
}

impl Crop<'_> {
    /// Writes a duration into a header; the positions are those of version 0 and 1.
    fn set_duration(&mut self, header: Option<&Range<usize>>, [short, wide]: [usize; 2], duration: u64) {
        let Some(header) = header else { return };
        match self.bytes.get(header.start) {
            Some(0) => put(self.bytes, header.start + short, duration as u32),
            _ => put_long(self.bytes, header.start + wide, duration),
        }
    }

    fn in_file<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what} in \"{}\"", self.path))
    }

    /// `stts`.
    fn times(&mut self, track: &mut Track) -> Result<(), String> {
        if track.times.is_none() {
            return self.in_file("no mp4 stts atoms were found");
        }
        self.start_of_times(track)?;
        self.end_of_times(track);
        Ok(())
    }

    /// The row of the table of times that has this time, in the track's units: the row's place, the samples before
    /// the time, and those of them in the row. The samples of all rows, if the time is behind the last.
    fn row_of_time(&self, table: &Table, mut time: u64) -> Result<(usize, u64, u64), u64> {
        let mut samples = 0;
        for row in table.rows.clone().step_by(table.width) {
            let (count, duration) = self.pair(row);
            if time < count * duration {
                let rest = time / duration;
                return Ok((row, samples + rest, rest));
            }
            samples += count;
            time -= count * duration;
        }
        Err(samples)
    }

    fn pair(&self, row: usize) -> (u64, u64) {
        (u64::from(word(self.bytes, row)), u64::from(word(self.bytes, row + 4)))
    }

    fn start_of_times(&mut self, track: &mut Track) -> Result<(), String> {
        let Some(mut table) = track.times.take() else { return Ok(()) };
        let time = self.units(self.wish.start, track).wrapping_add(track.hidden);
        let Ok((mut row, mut start, mut rest)) = self.row_of_time(&table, time) else {
            return self.in_file("start time is out mp4 stts samples");
        };
        let mut before = self.samples_since_key_frame(track, start)?;
        start -= before.min(start);
        let (mut count, mut duration) = self.pair(row);
        while rest < before && row > table.rows.start {
            track.hidden = track.hidden.wrapping_add(rest * duration);
            before -= rest;
            row -= table.width;
            (count, duration) = self.pair(row);
            rest = count;
        }
        before = before.min(rest);
        track.hidden = track.hidden.wrapping_add(before * duration);
        track.duration = track.duration.wrapping_add(track.hidden);
        rest -= before;
        put(self.bytes, row, (count - rest) as u32);
        table.rows.start = row;
        track.start_sample = start;
        track.times = Some(table);
        Ok(())
    }

    fn end_of_times(&mut self, track: &mut Track) {
        let (Some(length), Some(table)) = (self.wish.length, &track.times) else { return };
        let time = self.units(length, track).wrapping_add(track.hidden);
        match self.row_of_time(table, time) {
            Ok((row, samples, rest)) => {
                put(self.bytes, row, rest as u32);
                track.end_sample = track.start_sample + samples;
                if let Some(table) = &mut track.times {
                    table.rows.end = row + table.width;
                }
            }
            Err(samples) => track.end_sample = track.start_sample + samples,
        }
    }

    fn units(&self, milliseconds: u64, track: &Track) -> u64 {
        milliseconds.wrapping_mul(u64::from(track.timescale)) / 1000
    }

    /// The samples between the last key frame and this sample, if the part starts at a key frame.
    fn samples_since_key_frame(&self, track: &Track, start: u64) -> Result<u64, String> {
        let (true, Some(table)) = (self.wish.starts_at_key_frame, &track.key_frames) else { return Ok(0) };
        let mut before = 0;
        // Numbers of samples begin with 1.
        for row in table.rows.clone().step_by(table.width) {
            match u64::from(word(self.bytes, row)) {
                0 => return self.in_file("zero sync sample"),
                sample if sample > start + 1 => break,
                sample => before = start + 1 - sample,
            }
        }
        Ok(before)
    }

    /// `stss`.
    fn key_frames(&mut self, track: &mut Track) {
        let Some(table) = &mut track.key_frames else { return };
        let from = |bytes: &[u8], table: &Table, sample: u64| {
            let mut rows = table.rows.clone().step_by(table.width);
            rows.find(|row| u64::from(word(bytes, *row)) > sample).unwrap_or(table.rows.end)
        };
        table.rows.start = from(self.bytes, table, track.start_sample);
        if self.wish.length.is_some() {
            table.rows.end = from(self.bytes, table, track.end_sample);
        }
        for row in table.rows.clone().step_by(table.width) {
            let sample = word(self.bytes, row);
            put(self.bytes, row, sample.wrapping_sub(track.start_sample as u32));
        }
    }

    /// `ctts`.
    fn shifts(&mut self, track: &mut Track) {
        let Some(table) = &mut track.shifts else { return };
        let of_sample = |bytes: &[u8], table: &Table, mut samples: u64| {
            for row in table.rows.clone().step_by(table.width) {
                let count = u64::from(word(bytes, row));
                if samples < count {
                    return Some((row, count, samples));
                }
                samples -= count;
            }
            None
        };
        match of_sample(self.bytes, table, track.start_sample) {
            Some((row, count, rest)) => {
                put(self.bytes, row, (count - rest) as u32);
                table.rows.start = row;
            }
            None => table.rows.start = table.rows.end,
        }
        if self.wish.length.is_some()
            && let Some((row, _, rest)) = of_sample(self.bytes, table, track.end_sample - track.start_sample)
        {
            put(self.bytes, row, rest as u32);
            table.rows.end = row + table.width;
        }
    }

    /// `stsc`.
    fn runs(&mut self, track: &mut Track) -> Result<(), String> {
        match &track.runs {
            None => return self.in_file("no mp4 stsc atoms were found"),
            Some(table) if table.rows.is_empty() => return self.in_file("zero number of entries in stsc atom"),
            Some(_) => {}
        }
        self.start_of_runs(track)?;
        if let Some(length) = self.wish.length.and(track.end_sample.checked_sub(track.start_sample)) {
            self.end_of_runs(track, length)?;
        }
        let rows = track.runs.as_ref().map_or(0..0, |table| table.rows.clone());
        for row in rows.step_by(RUN_BYTES) {
            let chunk = word(self.bytes, row);
            put(self.bytes, row, chunk.wrapping_sub(track.start_chunk as u32));
        }
        Ok(())
    }

    fn run_of(&self, track: &Track, mut sample: u64, side: Side) -> Result<Run, String> {
        let Some(table) = &track.runs else { return self.in_file("no mp4 stsc atoms were found") };
        let chunks = track.chunks.as_ref().map_or(0, |table| table.count());
        let mut rows = table.rows.clone().step_by(table.width).peekable();
        let mut samples_before = 0;
        while let Some(row) = rows.next() {
            let [chunk, samples, kind] = [0, 4, 8].map(|at| u64::from(word(self.bytes, row + at)));
            let next = rows.peek().map(|row| u64::from(word(self.bytes, *row)));
            let next_chunk = next.unwrap_or(chunks + 1);
            let Some(count) = next_chunk.checked_sub(chunk) else { return self.in_file("unordered mp4 stsc chunks") };
            let all = count * samples;
            if next.is_some() && sample >= all {
                sample -= all;
                if count > 0 {
                    samples_before = samples;
                }
                continue;
            }
            if sample > all {
                let side = if side == Side::Start { "start" } else { "end" };
                return self.in_file(&format!("{side} time is out mp4 stsc chunks"));
            }
            if samples == 0 {
                return self.in_file("zero number of samples");
            }
            if chunk == 0 {
                return self.in_file("zero chunk");
            }
            let target = chunk - 1 + sample / samples;
            let rest = sample % samples;
            return Ok(Run {
                row,
                chunk,
                samples,
                kind: kind as u32,
                next_chunk,
                target,
                sample,
                rest,
                samples_before,
            });
        }
        self.in_file("zero number of entries in stsc atom")
    }

    fn start_of_runs(&mut self, track: &mut Track) -> Result<(), String> {
        let run = self.run_of(track, track.start_sample, Side::Start)?;
        track.start_chunk = run.target;
        track.start_chunk_samples = run.rest;
        if let Some(table) = &mut track.runs {
            table.rows.start = run.row;
        }
        put(self.bytes, run.row, run.target as u32 + 1);
        let left = (run.samples - run.rest) as u32;
        if run.rest > 0 && run.next_chunk == run.target + 2 {
            put(self.bytes, run.row + 4, left);
        } else if run.rest > 0 {
            track.first_run = Some([1, left, run.kind]);
            put(self.bytes, run.row, run.target as u32 + 2);
        }
        Ok(())
    }

    fn end_of_runs(&mut self, track: &mut Track, length: u64) -> Result<(), String> {
        let mut sample = length;
        if let Some([_, samples, _]) = &mut track.first_run {
            *samples = u32::try_from(sample).unwrap_or(u32::MAX).min(*samples);
            sample -= u64::from(*samples);
        }
        let run = self.run_of(track, sample, Side::End)?;
        if let Some(table) = &mut track.runs {
            table.rows.end = if run.sample > 0 { run.row + table.width } else { run.row };
        }
        (track.end_chunk, track.end_chunk_samples) = match (run.rest, run.sample) {
            (0, 0) => (run.target, run.samples_before),
            (0, _) => (run.target, run.samples),
            (rest, _) => (run.target + 1, rest),
        };
        if run.rest > 0 && run.chunk + 1 == run.target + 2 {
            put(self.bytes, run.row + 4, run.rest as u32);
        } else if run.rest > 0 {
            let chunk = track.end_chunk.saturating_sub(track.start_chunk);
            track.last_run = Some([chunk as u32, run.rest as u32, run.kind]);
        }
        Ok(())
    }

    /// `stsz`.
    fn sizes(&mut self, track: &mut Track) -> Result<(), String> {
        let Some(mut table) = track.sizes.take_if(|table| table.told.is_none()) else { return Ok(()) };
        if track.start_sample >= table.count() {
            return self.in_file("start time is out mp4 stsz samples");
        }
        let left = table.count() - track.start_sample;
        table.rows.start += track.start_sample as usize * table.width;
        track.start_chunk_bytes = self.sum_before(&table, table.rows.start, track.start_chunk_samples);
        if track.start_chunk_bytes > self.end {
            return self.in_file("too large mp4 start samples size");
        }
        if self.wish.length.is_some() {
            let Some(count) = track.end_sample.checked_sub(track.start_sample).filter(|count| *count <= left) else {
                return self.in_file("end time is out mp4 stsz samples");
            };
            table.rows.end = table.rows.start + count as usize * table.width;
            track.end_chunk_bytes = self.sum_before(&table, table.rows.end, track.end_chunk_samples);
            if track.end_chunk_bytes > self.end {
                return self.in_file("too large mp4 end samples size");
            }
        }
        track.sizes = Some(table);
        Ok(())
    }

    /// The bytes of that many samples before this row.
    fn sum_before(&self, table: &Table, row: usize, samples: u64) -> u64 {
        let bytes = usize::try_from(samples).unwrap_or(usize::MAX).saturating_mul(table.width);
        let rows = row.saturating_sub(bytes).max(table.begin)..row;
        rows.step_by(table.width).map(|row| u64::from(word(self.bytes, row))).sum()
    }

    /// `stco` or `co64`; returns the range of the file.
    fn chunks(&mut self, track: &mut Track) -> Result<(u64, u64), String> {
        let Some(table) = &mut track.chunks else { return self.in_file("no mp4 stco atoms were found") };
        let name = if table.width == 8 { "co64" } else { "stco" };
        if track.start_chunk >= table.count() {
            return self.in_file(&format!("start time is out mp4 {name} chunks"));
        }
        let chunks = table.count();
        table.rows.start += track.start_chunk as usize * table.width;
        let start = self.position(table.rows.start, table.width, track.start_chunk_bytes)?;
        if table.width == 8 {
            put_long(self.bytes, table.rows.start, start);
        } else {
            put(self.bytes, table.rows.start, start as u32);
        }
        if self.wish.length.is_none() {
            return Ok((start, self.media_end));
        }
        let count = track.end_chunk.checked_sub(track.start_chunk).filter(|_| track.end_chunk <= chunks);
        let Some(count) = count else { return self.in_file(&format!("end time is out mp4 {name} chunks")) };
        table.rows.end = table.rows.start + count as usize * table.width;
        if count == 0 {
            return Ok((self.end, 0));
        }
        let last = table.rows.end - table.width;
        Ok((start, self.position(last, table.width, track.end_chunk_bytes)?))
    }

    /// The position of a chunk, and these bytes more.
    fn position(&self, row: usize, width: usize, more: u64) -> Result<u64, String> {
        let chunk = if width == 8 { long(self.bytes, row) } else { u64::from(word(self.bytes, row)) };
        let position = chunk.checked_add(more).filter(|position| *position <= self.end);
        match position.filter(|position| width == 8 || u32::try_from(*position).is_ok()) {
            Some(position) => Ok(position),
            None => self.in_file("too large chunk offset"),
        }
    }
}

/// Bytes in a row of `stsc`.
const RUN_BYTES: usize = 12;

/// The place of a sample in `stsc`.
struct Run {
    row: usize,
    /// The first chunk of the row, counted from 1.
    chunk: u64,
    /// Samples in each of its chunks.
    samples: u64,
    kind: u32,
    /// The first chunk of the next row.
    next_chunk: u64,
    /// The chunk of the sample, counted from 0.
    target: u64,
    /// The sample, counted from the beginning of the row.
    sample: u64,
    /// The samples before it in its chunk.
    rest: u64,
    /// Samples in each chunk of the rows before.
    samples_before: u64,
}
