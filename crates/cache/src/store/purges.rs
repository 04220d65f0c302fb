//! The record of a zone's purges on disk: a purge stays in force even if the process is killed before the files are
//! removed.
//!
//! `.weir-purges` has one line per purge, each with a checksum. An incomplete last line is a purge that was not
//! answered. Any other invalid line counts as a purge of everything.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_net::whole_file;

use super::ban::{BANS_MAX, Ban, Force, Purge};
use super::label::Tag;

/// The file's name in the cache directory.
pub const PURGES_FILE: &str = ".weir-purges";

/// The largest record that is read; a larger one counts as a purge of everything.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// After this many lines the record is rewritten.
const LINES_MAX: usize = 2 * BANS_MAX;

const FIRST_LINE: &str = "weir-purges 1 ";

/// The record, open for appending.
pub(super) struct Purges {
    path: PathBuf,
    file: File,
    lines: usize,
}

/// The recorded purges of an earlier run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Restored {
    pub bans: Vec<Ban>,
    pub newest: u32,
    /// The record could not be read: everything counts as purged.
    pub is_lost: bool,
}

/// Reads the record in a directory; empty if there is none.
pub(super) fn read(directory: &Path) -> io::Result<Restored> {
    let path = directory.join(PURGES_FILE);
    match whole_file::read(&path, RECORD_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Restored::default()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(lost(0)),
        read => Ok(parse(&String::from_utf8_lossy(&read?))),
    }
}

impl Purges {
    /// Rewrites the record with these rules, and keeps it open.
    pub fn write(directory: &Path, bans: &[Ban], newest: u32) -> io::Result<Purges> {
        let path = directory.join(PURGES_FILE);
        let mut text = format!("{FIRST_LINE}{newest}\n");
        bans.iter().for_each(|ban| text.push_str(&line(ban)));
        whole_file::replace(&path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(Purges { path: directory.to_owned(), file, lines: bans.len() })
    }

    /// Opens the existing record for appending. The next purge rewrites it, if there is room.
    pub fn append(directory: &Path) -> io::Result<Purges> {
        let file = OpenOptions::new().append(true).open(directory.join(PURGES_FILE))?;
        Ok(Purges { path: directory.to_owned(), file, lines: LINES_MAX })
    }

    /// Adds a purge in one write.
    pub fn add(&mut self, ban: &Ban, all: impl FnOnce() -> Vec<Ban>) -> io::Result<()> {
        // If there is no room for a new record, there may be some in this one.
        if self.lines >= LINES_MAX
            && let Ok(written) = Purges::write(&self.path, &all(), ban.number)
        {
            *self = written;
            return Ok(());
        }
        self.lines = self.lines.saturating_add(1);
        self.file.write_all(line(ban).as_bytes())
    }
}

fn line(ban: &Ban) -> String {
    let force = match ban.force {
        Force::Soft => "soft",
        Force::Hard => "hard",
    };
    let (kind, bytes) = match &ban.purge {
        Purge::Key(key) => ("key", key.to_vec()),
        Purge::Prefix(prefix) => ("prefix", prefix.to_vec()),
        Purge::Tag(Tag(tag)) => ("tag", tag.to_be_bytes().to_vec()),
        Purge::All => ("all", Vec::new()),
    };
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{} {force} {kind} -{digits}", ban.number);
    format!("{text} {:08x}\n", crc32fast::hash(text.as_bytes()))
}

fn parse(text: &str) -> Restored {
    let Some((first, rest)) = text.split_once('\n') else { return lost(0) };
    let Some(mut newest) = first.strip_prefix(FIRST_LINE).and_then(|number| number.parse().ok()) else {
        return lost(0);
    };
    let whole = rest.rfind('\n').map_or("", |end| rest.get(..end).unwrap_or_default());
    let mut bans = Vec::new();
    for line in whole.lines() {
        let Some(ban) = parse_line(line) else { return lost(newest) };
        newest = newest.max(ban.number);
        bans.push(ban);
    }
    bans.sort_by_key(|ban| ban.number);
    match bans.len() {
        0..=BANS_MAX => Restored { bans, newest, is_lost: false },
        _ => lost(newest),
    }
}

fn lost(newest: u32) -> Restored {
    let number = newest.saturating_add(1);
    Restored { bans: vec![Ban { number, force: Force::Hard, purge: Purge::All }], newest: number, is_lost: true }
}

fn parse_line(line: &str) -> Option<Ban> {
    let (text, sum) = line.rsplit_once(' ')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(text.as_bytes()) {
        return None;
    }
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let force = match words.next()? {
        "soft" => Force::Soft,
        "hard" => Force::Hard,
        _ => return None,
    };
    let kind = words.next()?;
    let digits = words.next()?.strip_prefix('-')?.as_bytes();
    let bytes: Option<Box<[u8]>> = digits.chunks(2).map(byte_of).collect();
    let bytes = bytes?;
    let purge = match kind {
        "key" => Purge::Key(bytes),
        "prefix" => Purge::Prefix(bytes),
        "tag" => Purge::Tag(Tag(u64::from_be_bytes(bytes.as_ref().try_into().ok()?))),
        "all" => Purge::All,
        _ => return None,
    };
    Some(Ban { number, force, purge })
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn rules() -> Vec<Ban> {
        [
            Purge::Prefix(b"http://a/ \n".as_slice().into()),
            Purge::Tag(Tag(7)),
            Purge::Key(b"".as_slice().into()),
            Purge::All,
        ]
        .into_iter()
        .zip(3..)
        .map(|(purge, number)| Ban { number, force: Force::Soft, purge })
        .collect()
    }

    fn text() -> String {
        format!("{FIRST_LINE}2\n{}", rules().iter().map(line).collect::<String>())
    }

    #[test]
    fn rules_come_back_as_they_were() {
        assert_eq!(parse(&text()), Restored { bans: rules(), newest: 6, is_lost: false });
        assert_eq!(parse(&format!("{FIRST_LINE}9\n")), Restored { bans: vec![], newest: 9, is_lost: false });
    }

    #[test]
    fn a_torn_last_line_was_not_answered_yet() {
        let torn = text();
        let restored = parse(&torn[..torn.len() - 3]);
        assert_eq!(restored, Restored { bans: rules()[..3].to_vec(), newest: 5, is_lost: false });
    }

    #[test]
    fn a_damaged_record_purges_everything() {
        for damaged in ["", "other\n", &text().replace("soft", "hard"), &text().replace("weir", "wear")] {
            let restored = parse(damaged);
            assert!(restored.is_lost, "{damaged}");
            assert!(restored.bans.iter().all(|ban| ban.purge == Purge::All && ban.force == Force::Hard));
        }
    }

    proptest! {
        #[test]
        fn any_record_is_read_or_lost(text in ".{0,200}", tail in "[ -~\n]{0,80}") {
            let restored = parse(&format!("{FIRST_LINE}1\n{tail}"));
            prop_assert!(restored.is_lost || restored.bans.is_empty());
            parse(&text);
        }
    }
}
