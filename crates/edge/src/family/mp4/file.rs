//! Finds the atoms of a file, and makes the head of a part of it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::movie::{self, HEAD_BYTES, LARGE_HEAD_BYTES, Movie, Wish};

/// The most atoms on the first level that weir looks at: a file of only tiny atoms would keep a worker busy.
pub const ATOMS_MAX: usize = 4096;

/// nginx reads no longer one.
const FTYP_BYTES_MAX: u64 = 1024;

/// The new head of the file, and the range of the file that follows it; `None` if the client wants the file as it is.
pub type FilePart = Option<(Vec<u8>, Range<u64>)>;

/// Why a file has no such part.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// A line for the error log, in nginx's words.
    File(String),
    /// There is no memory for its index.
    Full,
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault::File(text)
    }
}

/// Makes the part of a file that a client wants. `holds` is asked for the memory of the file's index before that is read.
pub fn part(
    file: &(impl Bytes + ?Sized),
    end: u64,
    wish: &Wish,
    path: &str,
    mut holds: impl FnMut(u64) -> bool,
) -> Result<FilePart, Fault> {
    let mut ftyp = None;
    let mut movie: Option<(Movie, Vec<u8>)> = None;
    let mut media: Option<Range<u64>> = None;
    let mut at = 0;
    for _ in 0..ATOMS_MAX {
        if at >= end {
            break;
        }
        let Some(atom) = next(file, at, end, path)? else { break };
        at = atom.data.end;
        match &atom.name {
            b"ftyp" => {
                if atom.data.end - atom.data.start > FTYP_BYTES_MAX {
                    let size = atom.data.end - atom.data.start;
                    return Err(format!("\"{path}\" mp4 ftyp atom is too large:{size}").into());
                }
                if ftyp.is_some() {
                    return Err(format!("duplicate mp4 ftyp atom in \"{path}\"").into());
                }
                ftyp = Some(read(file, atom.data, path)?);
            }
            b"moov" => {
                if media.is_none() && wish.start == 0 && wish.length.is_none() {
                    return Ok(None);
                }
                if movie.is_some() {
                    return Err(format!("duplicate mp4 moov atom in \"{path}\"").into());
                }
                let size = atom.data.end - atom.data.start;
                if size > wish.index_bytes_max {
                    return Err(format!(
                        "\"{path}\" mp4 moov atom is too large:{size}, you may want to increase mp4_max_buffer_size"
                    )
                    .into());
                }
                // The index, its tables, and the new index.
                if !holds(size.saturating_mul(3)) {
                    return Err(Fault::Full);
                }
                let bytes = read(file, atom.data, path)?;
                movie = Some((Movie::read(&bytes, wish, path)?, bytes));
                if media.is_some() {
                    break;
                }
            }
            b"mdat" => {
                if media.is_some() {
                    return Err(format!("duplicate mp4 mdat atom in \"{path}\"").into());
                }
                media = Some(atom.data);
                if movie.as_ref().is_some_and(|(movie, _)| movie.has_tracks()) {
                    break;
                }
            }
            _ => {}
        }
    }
    let Some((mut movie, mut index)) = movie.filter(|(movie, _)| movie.has_tracks()) else {
        return Err(format!("no mp4 trak atoms were found in \"{path}\"").into());
    };
    let Some(media) = media else { return Err(format!("no mp4 mdat atom was found in \"{path}\"").into()) };
    let range = movie.crop(&mut index, end, media.end, wish, path)?;
    if range.end <= range.start {
        return Err(format!("no data between start time and end time in \"{path}\"").into());
    }
    if range.start >= media.end {
        return Err(format!("start time is out mp4 mdat atom in \"{path}\"").into());
    }
    Ok(Some((head(&movie, &index, ftyp.as_deref(), &range), range)))
}

fn head(movie: &Movie, index: &[u8], ftyp: Option<&[u8]>, range: &Range<u64>) -> Vec<u8> {
    let mut out = Vec::with_capacity(index.len() + FTYP_BYTES_MAX as usize);
    if let Some(ftyp) = ftyp {
        movie::atom(&mut out, *b"ftyp", |out| out.extend_from_slice(ftyp));
    }
    let mut tables = Vec::new();
    movie.write(index, &mut out, &mut tables);
    let size = range.end - range.start + HEAD_BYTES as u64;
    match u32::try_from(size) {
        Ok(size) => {
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(b"mdat");
        }
        Err(_) => {
            out.extend_from_slice(&1u32.to_be_bytes());
            out.extend_from_slice(b"mdat");
            out.extend_from_slice(&(range.end - range.start + LARGE_HEAD_BYTES as u64).to_be_bytes());
        }
    }
    // The positions of the media in the file become those in the answer.
    let shift = (out.len() as u64).wrapping_sub(range.start);
    for table in tables {
        table.shift(&mut out, shift);
    }
    out
}

/// An atom in a file.
struct Atom {
    name: [u8; 4],
    data: Range<u64>,
}

/// The atom at this position; `None` if the atoms end here.
fn next(file: &(impl Bytes + ?Sized), at: u64, end: u64, path: &str) -> Result<Option<Atom>, String> {
    let truncated = || format!("\"{path}\" mp4 file truncated");
    let left = end - at;
    if left < 4 {
        return Err(truncated());
    }
    let mut head = [0; LARGE_HEAD_BYTES];
    let known = left.min(LARGE_HEAD_BYTES as u64) as usize;
    file.read(head.get_mut(..known).unwrap_or_default(), at)
        .map_err(|error| format!("pread() \"{path}\" failed: {error}"))?;
    let [size, name, large, larger] = movie::words(&head);
    if size == 0 {
        return Ok(None);
    }
    let (size, head_size) = match size {
        1 if known < LARGE_HEAD_BYTES => return Err(truncated()),
        1 => (u64::from(large) << 32 | u64::from(larger), LARGE_HEAD_BYTES),
        size => (u64::from(size), HEAD_BYTES),
    };
    if size < head_size as u64 {
        return Err(format!("\"{path}\" mp4 atom is too small:{size}"));
    }
    if left < HEAD_BYTES as u64 {
        return Err(truncated());
    }
    if size > left {
        return Err(format!("\"{path}\" mp4 atom too large:{size}"));
    }
    Ok(Some(Atom { name: name.to_be_bytes(), data: at + head_size as u64..at + size }))
}

fn read(file: &(impl Bytes + ?Sized), range: Range<u64>, path: &str) -> Result<Vec<u8>, String> {
    let size = usize::try_from(range.end - range.start).map_err(|_| format!("\"{path}\" mp4 file truncated"))?;
    let mut bytes = vec![0; size];
    file.read(&mut bytes, range.start).map_err(|error| format!("pread() \"{path}\" failed: {error}"))?;
    Ok(bytes)
}

/// A file, or the bytes of a test.
pub trait Bytes {
    /// Fills `space` from this position on.
    fn read(&self, space: &mut [u8], at: u64) -> std::io::Result<()>;
}

impl Bytes for File {
    fn read(&self, space: &mut [u8], at: u64) -> std::io::Result<()> {
        self.read_exact_at(space, at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    impl Bytes for [u8] {
        fn read(&self, space: &mut [u8], at: u64) -> std::io::Result<()> {
            let from = self.get(at as usize..).and_then(|rest| rest.get(..space.len()));
            space.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
    }

    fn atom(name: &str, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        movie::atom(&mut out, name.as_bytes().try_into().unwrap(), |out| out.extend_from_slice(data));
        out
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A movie of one track: ten samples of a second each, two in a chunk, sample n of n bytes.
    fn sample(is_index_first: bool) -> Vec<u8> {
        let mvhd = [words(&[0, 0, 0, 1000, 10_000]), vec![0; 80]].concat();
        let tkhd = [words(&[0, 0, 0, 1, 0, 10_000]), vec![0; 60]].concat();
        let mdhd = words(&[0, 0, 0, 10, 100, 0]);
        let sizes: Vec<u32> = (1..=10).collect();
        let media: Vec<u8> = (1..=10u8).flat_map(|n| vec![n; n.into()]).collect();
        let ftyp = atom("ftyp", b"isom");
        let movie = |media_at: u32| {
            let mut offset = media_at;
            let offsets: Vec<u32> = sizes
                .chunks(2)
                .map(|pair| {
                    offset += pair.iter().sum::<u32>();
                    offset - pair.iter().sum::<u32>()
                })
                .collect();
            let stbl = [
                atom("stsd", &[0; 16]),
                atom("stts", &words(&[0, 1, 10, 10])),
                atom("stss", &words(&[0, 2, 1, 6])),
                atom("stsc", &words(&[0, 1, 1, 2, 1])),
                atom("stsz", &[words(&[0, 0, 10]), words(&sizes)].concat()),
                atom("stco", &[words(&[0, 5]), words(&offsets)].concat()),
            ]
            .concat();
            let minf = [atom("vmhd", &[0; 12]), atom("dinf", &[0; 8]), atom("stbl", &stbl)].concat();
            let mdia = [atom("mdhd", &mdhd), atom("hdlr", &[0; 24]), atom("minf", &minf)].concat();
            let trak = [atom("tkhd", &tkhd), atom("mdia", &mdia)].concat();
            atom("moov", &[atom("mvhd", &mvhd), atom("trak", &trak), atom("udta", b"dropped")].concat())
        };
        let index_size = movie(0).len();
        if is_index_first {
            let media_at = (ftyp.len() + index_size + 8) as u32;
            [ftyp, movie(media_at), atom("mdat", &media)].concat()
        } else {
            let media_at = (ftyp.len() + 8) as u32;
            [ftyp, atom("mdat", &media), movie(media_at)].concat()
        }
    }

    fn wish(start: u64, length: Option<u64>) -> Wish {
        Wish { start, length, starts_at_key_frame: false, index_bytes_max: 1 << 20 }
    }

    fn cut(file: &[u8], wish: &Wish) -> Result<Vec<u8>, String> {
        let part = part(file, file.len() as u64, wish, "f", |_| true).map_err(|fault| match fault {
            Fault::File(text) => text,
            Fault::Full => panic!("the memory was there"),
        });
        let (mut head, range) = part?.unwrap();
        head.extend_from_slice(&file[range.start as usize..range.end as usize]);
        Ok(head)
    }

    /// The media of a file by its own tables: the bytes of each sample.
    fn samples(file: &[u8]) -> Vec<Vec<u8>> {
        let find = |name: &str| memchr::memmem::find(file, name.as_bytes()).unwrap() + 4;
        let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
        let (sizes, chunks, runs) = (find("stsz"), find("stco"), find("stsc"));
        let mut sample = 0;
        let mut all = Vec::new();
        for chunk in 1..=word(chunks + 4) {
            let run = (0..word(runs + 4)).rfind(|run| word(runs + 8 + *run as usize * 12) <= chunk).unwrap();
            let mut at = word(chunks + 4 + chunk as usize * 4) as usize;
            for _ in 0..word(runs + 8 + run as usize * 12 + 4) {
                if sample == word(sizes + 8) {
                    return all;
                }
                let size = word(sizes + 12 + sample as usize * 4) as usize;
                all.push(file[at..at + size].to_vec());
                at += size;
                sample += 1;
            }
        }
        all
    }

    fn expected(from: u8, to: u8) -> Vec<Vec<u8>> {
        (from..=to).map(|n| vec![n; n.into()]).collect()
    }

    #[test]
    fn a_part_has_the_samples_of_its_time() {
        for is_index_first in [true, false] {
            let file = sample(is_index_first);
            for (start, length, from, to) in [
                (2000, None, 3, 10),
                (3000, None, 4, 10),
                (0, Some(4000), 1, 4),
                (0, Some(5000), 1, 5),
                (2000, Some(1000), 3, 3),
                (3000, Some(4000), 4, 7),
                (9000, Some(90_000), 10, 10),
            ] {
                let part = cut(&file, &wish(start, length)).unwrap();
                assert_eq!(samples(&part), expected(from, to), "{start} {length:?} {is_index_first}");
            }
        }
        assert!(
            part(sample(true).as_slice(), sample(true).len() as u64, &wish(0, None), "f", |_| true).unwrap().is_none()
        );
        assert_eq!(samples(&cut(&sample(false), &wish(0, None)).unwrap()), expected(1, 10));
    }

    #[test]
    fn a_start_at_a_key_frame_hides_the_time_before() {
        let wish = Wish { starts_at_key_frame: true, ..wish(7000, None) };
        let part = cut(&sample(true), &wish).unwrap();
        assert_eq!(samples(&part), expected(6, 10));
        let edit = memchr::memmem::find(&part, b"elst").unwrap() + 4;
        assert_eq!(part[edit + 8..edit + 24], [0u64.wrapping_add(3000).to_be_bytes(), 20u64.to_be_bytes()].concat());
    }

    #[test]
    fn what_cannot_be_cut_is_named() {
        let file = sample(true);
        let said = |file: &[u8], wish: &Wish| cut(file, wish).unwrap_err();
        assert_eq!(said(&file, &wish(11_000, None)), "\"f\" mp4 start time exceeds file duration");
        // nginx: a part that ends in the chunk that it starts in the middle of has no end.
        assert_eq!(said(&file, &wish(3000, Some(1000))), "no data between start time and end time in \"f\"");
        let refused = part(file.as_slice(), file.len() as u64, &wish(1000, None), "f", |_| false);
        assert_eq!(refused, Err(Fault::Full), "the index was not read");
        let small = Wish { index_bytes_max: 10, ..wish(1000, None) };
        assert!(said(&file, &small).contains("you may want to increase mp4_max_buffer_size"));
        let mut cut_off = file.clone();
        cut_off.truncate(file.len() - 1);
        assert!(said(&cut_off, &wish(1000, None)).contains("mp4 atom too large"));
        assert_eq!(said(&atom("free", b""), &wish(1, None)), "no mp4 trak atoms were found in \"f\"");
        let twice = [atom("ftyp", b"a"), atom("ftyp", b"b")].concat();
        assert_eq!(said(&twice, &wish(1, None)), "duplicate mp4 ftyp atom in \"f\"");
        let tiny: Vec<u8> = std::iter::repeat_n(atom("free", b""), 2 * ATOMS_MAX).flatten().collect();
        assert_eq!(said(&tiny, &wish(1, None)), "no mp4 trak atoms were found in \"f\"");
        let many = atom("moov", &std::iter::repeat_n(atom("trak", b""), 300).flatten().collect::<Vec<u8>>());
        assert_eq!(said(&[atom("mdat", b""), many].concat(), &wish(1, None)), "more than 255 mp4 trak atoms in \"f\"");
    }

    proptest! {
        #[test]
        fn no_file_can_do_harm(
            is_index_first: bool,
            changes in prop::collection::vec((0..800usize, any::<u8>()), 1..12),
            start in 0..12_000u64,
            length in prop::option::of(1..12_000u64),
            starts_at_key_frame: bool,
        ) {
            let mut file = sample(is_index_first);
            for (at, byte) in changes {
                let at = at % file.len();
                file[at] = byte;
            }
            let wish = Wish { starts_at_key_frame, ..wish(start, length) };
            if let Ok(Some((head, range))) = part(file.as_slice(), file.len() as u64, &wish, "f", |_| true) {
                prop_assert!(range.start < range.end && range.end <= file.len() as u64);
                prop_assert!(head.len() < file.len() + 200);
            }
        }
    }

    mod mutate {
        use super::*;
        /// A file that is changed, also with words of its format: the part lies in the file, and its head is bounded by it.
        #[test]
        fn files() {
            let words: [&[u8]; 14] = [
                b"moov",
                b"trak",
                b"stts",
                b"stsc",
                b"stsz",
                b"stco",
                b"co64",
                b"ctts",
                b"stss",
                b"mdat",
                &[0, 0, 0, 8],
                &[0, 0, 0, 1],
                &[0xff; 4],
                &[0; 8],
            ];
            weir_mutate::mutate(&[sample(true), sample(false)], &words, |file| {
                for (start, length, starts_at_key_frame) in
                    [(0, None, false), (3_000, Some(4_000), true), (9_999, Some(1), false)]
                {
                    let wish = Wish { starts_at_key_frame, ..wish(start, length) };
                    if let Ok(Some((head, range))) = part(file, file.len() as u64, &wish, "f", |_| true) {
                        assert!(range.start < range.end && range.end <= file.len() as u64);
                        assert!(head.len() < file.len() + 200, "{} of {} bytes", head.len(), file.len());
                    }
                }
            });
        }
    }
}
