//! A JVM's own counters, from the file that it maps for `jstat` and `jcmd PID PerfCounter.print`. Reading the file
//! starts no JVM and costs the watched JVM nothing.
//!
//! The format is `PerfDataPrologue` and `PerfDataEntry` of HotSpot (src/hotspot/share/runtime/perfMemory.hpp),
//! version 2.0.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::program::Probe;
use super::ways::Reading;

/// Most bytes of the file. HotSpot's default is 32 kB.
const FILE_MAX: u64 = 1 << 20;
/// Most counters in it.
const ENTRIES_MAX: u32 = 4096;
/// Most users' directories that are looked at.
const USERS_MAX: usize = 256;
/// Most entries of a directory of temporary files that are read to find these.
const ENTRIES_OF_TMP_MAX: usize = 1 << 16;

/// Reads the counters of the probe's process.
pub fn read(probe: &Probe) -> Result<Reading, String> {
    // A JVM in a container has its own /tmp, and its own number in the file's name.
    let own = Path::new("/proc").join(probe.pid.to_string()).join("root/tmp");
    let inner = weir_host::number_inside(probe.pid).unwrap_or(probe.pid);
    let found = file_in(&own, inner, probe.pid).or_else(|| file_in(Path::new("/tmp"), probe.pid, probe.pid));
    let file = found.ok_or_else(|| {
        format!("no /tmp/hsperfdata_*/{inner} (is it started with -XX:-UsePerfData, or another java.io.tmpdir?)")
    })?;
    let mut bytes = Vec::new();
    let opened = fs::File::open(&file).and_then(|opened| opened.take(FILE_MAX).read_to_end(&mut bytes));
    opened.map_err(|error| format!("{}: {error}", file.display()))?;
    let counters =
        counters(&bytes).ok_or_else(|| format!("{}: this file does not contain HotSpot's counters", file.display()))?;
    Ok(of(&counters))
}

/// The file that has the number `name` in a directory of temporary files and belongs to the process `pid`.
fn file_in(tmp: &Path, name: u32, pid: u32) -> Option<PathBuf> {
    let entries = fs::read_dir(tmp).ok()?.flatten().take(ENTRIES_OF_TMP_MAX);
    let users = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"hsperfdata_"));
    users.take(USERS_MAX).map(|user| user.path().join(name.to_string())).find(|file| is_of(file, pid))
}

/// Whether a file belongs to the process. Any user may make a directory of that name, or put a link or a pipe there.
fn is_of(file: &Path, pid: u32) -> bool {
    let Ok(process) = fs::metadata(format!("/proc/{pid}")) else { return false };
    let of_owner = |path: &Path| fs::symlink_metadata(path).ok().filter(|found| found.uid() == process.uid());
    file.parent().and_then(of_owner).is_some_and(|above| above.is_dir())
        && of_owner(file).is_some_and(|file| file.is_file())
}

/// The figures that follow from the counters.
fn of(counters: &BTreeMap<String, i64>) -> Reading {
    let number = |name: &str| counters.get(name).map(|value| *value as f64);
    let sum = |start: &str, end: &str| {
        let own = counters.iter().filter(|(name, _)| name.starts_with(start) && name.ends_with(end));
        own.map(|(_, value)| *value as f64).sum::<f64>()
    };
    let ticks = number("sun.os.hrt.frequency").unwrap_or(1e9).max(1.0);
    // With G1, each generation may grow to the whole heap.
    let most = |at: u32| number(&format!("sun.gc.generation.{at}.maxCapacity")).unwrap_or(0.0);
    let heap_max = if most(0) == most(1) { most(1) } else { most(0) + most(1) };
    let mut found: Reading = [
        ("gc_ms", sum("sun.gc.collector.", ".time") / ticks * 1000.0),
        ("gc_count", sum("sun.gc.collector.", ".invocations")),
        ("heap", sum("sun.gc.generation.", ".used")),
        ("heap_max", heap_max),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    found.extend(number("java.threads.live").map(|live| ("threads".to_owned(), live)));
    found
}

/// Every counter that is a single number.
fn counters(bytes: &[u8]) -> Option<BTreeMap<String, i64>> {
    if bytes.get(..4)? != [0xca, 0xfe, 0xc0, 0xc0] {
        return None;
    }
    let is_little = *bytes.get(4)? == 1;
    let word = |at: usize| {
        let word: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) })
    };
    let long = |at: usize| {
        let long: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if is_little { i64::from_le_bytes(long) } else { i64::from_be_bytes(long) })
    };
    let (mut at, count) = (word(24)? as usize, word(28)?);
    let mut found = BTreeMap::new();
    for _ in 0..count.min(ENTRIES_MAX) {
        let (length, name, vector) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
        let (kind, data) = (*bytes.get(at + 12)?, word(at + 16)? as usize);
        let text = bytes.get(at.checked_add(name)?..)?.split(|byte| *byte == 0).next()?;
        if kind == b'J' && vector == 0 {
            found.insert(String::from_utf8_lossy(text).into_owned(), long(at.checked_add(data)?)?);
        }
        if length == 0 {
            return None;
        }
        at = at.checked_add(length)?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(list: &[(&str, i64)]) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        bytes.extend([0; 16]);
        bytes.extend(32u32.to_le_bytes());
        bytes.extend((list.len() as u32).to_le_bytes());
        for (name, value) in list {
            let data = (20 + name.len() + 1).next_multiple_of(8);
            bytes.extend(((data + 8) as u32).to_le_bytes());
            bytes.extend(20u32.to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            bytes.extend([b'J', 0, 1, 3]);
            bytes.extend((data as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.resize(bytes.len() + data - 20 - name.len(), 0);
            bytes.extend(value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn hotspots_counters_are_read() {
        let bytes = file(&[
            ("sun.os.hrt.frequency", 1_000_000_000),
            ("sun.gc.collector.0.time", 250_000_000),
            ("sun.gc.collector.1.time", 50_000_000),
            ("sun.gc.collector.0.invocations", 7),
            ("sun.gc.generation.0.space.0.used", 100),
            ("sun.gc.generation.1.space.0.used", 900),
            ("sun.gc.generation.0.maxCapacity", 4096),
            ("sun.gc.generation.1.maxCapacity", 4096),
            ("java.threads.live", 33),
        ]);
        let found = of(&counters(&bytes).unwrap());
        assert_eq!((found["gc_ms"], found["gc_count"], found["threads"]), (300.0, 7.0, 33.0));
        assert_eq!((found["heap"], found["heap_max"]), (1000.0, 4096.0));
    }

    /// A machine that has run for a while has thousands of files there.
    #[test]
    fn the_file_is_found_among_many_others() {
        let tmp = std::env::temp_dir().join(format!("weir-test-jvm-{}", std::process::id()));
        for number in 0..2 * USERS_MAX {
            fs::create_dir_all(tmp.join(format!("other-{number}"))).unwrap();
        }
        let own = std::process::id();
        fs::create_dir_all(tmp.join("hsperfdata_one")).unwrap();
        let file = tmp.join("hsperfdata_one/7");
        assert_eq!(file_in(&tmp, 7, own), None);
        fs::write(&file, "").unwrap();
        assert_eq!(file_in(&tmp, 7, own), Some(file.clone()));
        // A link may lead anywhere.
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert_eq!(file_in(&tmp, 7, own), None);
        fs::remove_dir_all(tmp).unwrap();
    }

    #[test]
    fn any_bytes_are_no_panic() {
        let whole = file(&[("a", 1), ("b", 2)]);
        for length in 0..whole.len() {
            let _ = counters(&whole[..length]);
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[at] = byte;
                let _ = counters(&broken);
            }
        }
        assert_eq!(counters(b"x"), None);
    }

    mod mutate {
        use super::*;
        /// A file of another program, or one that is being written: counters, or none.
        #[test]
        fn files() {
            let seeds = [file(&[("java.threads.live", 7), ("sun.gc.generation.0.used", 9)]), file(&[])];
            let words: [&[u8]; 5] = [&[0xff; 4], &[0; 4], &[8, 0, 0, 0], b"J\0\x01\x03", &[32, 0, 0, 0]];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                if let Some(found) = counters(bytes) {
                    assert!(found.len() <= bytes.len() && found.len() <= ENTRIES_MAX as usize);
                    let _ = of(&found);
                }
            });
        }
    }
}
