//! The slow log of PHP-FPM (`slowlog`): the places at which its scripts were when their time was up.
//!
//! The title of the master process names the file of its configuration, which names the log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::detail::shown;

/// Most bytes of the end of a log, and of a file of the configuration, that are read.
const BYTES_MAX: u64 = 256 << 10;
/// Most files that an `include` names.
const INCLUDED_MAX: usize = 64;
/// A line of each entry.
const MARK: &str = "script_filename = ";

/// The places, each with the number of entries. `None`: the pools of this master write no slow log.
pub fn places(master: u32) -> Option<Vec<(String, f64)>> {
    let title = String::from_utf8_lossy(&std::fs::read(format!("/proc/{master}/cmdline")).ok()?).into_owned();
    let (_, main) = title.split_once("master process (")?;
    let logs = logs(&configuration(Path::new(main.split(')').next()?)));
    (!logs.is_empty()).then(|| logs.iter().filter_map(|log| end_of(log)).flat_map(|text| of(&text)).collect())
}

/// The text of a configuration with the files that it includes (`include = DIR/*.conf`).
fn configuration(main: &Path) -> String {
    let mut text = end_of(main).unwrap_or_default();
    let included: Vec<PathBuf> =
        values(&text, "include").filter_map(|glob| Some(Path::new(glob).parent()?.to_owned())).collect();
    let files =
        included.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "conf")).take(INCLUDED_MAX) {
        text.push('\n');
        text.push_str(&end_of(&file).unwrap_or_default());
    }
    text
}

/// The logs of pools that have a time for slow requests.
fn logs(configuration: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for section in configuration.split("\n[") {
        let is_timed =
            values(section, "request_slowlog_timeout").any(|time| time.trim_end_matches(char::is_alphabetic) != "0");
        let pool = section.split(']').next().unwrap_or_default();
        let named = values(section, "slowlog").map(|log| PathBuf::from(log.replace("$pool", pool)));
        found.extend(named.filter(|log| is_timed && log.is_absolute()));
    }
    found
}

/// The values of a setting, without quotes.
fn values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.split(';').next().unwrap_or_default().trim().trim_matches('"'))
    })
}

/// The end of a file. To open a pipe would wait for its writer.
fn end_of(path: &Path) -> Option<String> {
    let _ = std::fs::metadata(path).ok().filter(|about| about.is_file())?;
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES_MAX))).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `script_filename = /srv/x.php` and then `[0x00007f0000000000] usleep() /srv/x.php:1`, the innermost function first.
fn of(text: &str) -> Vec<(String, f64)> {
    let mut places: Vec<(String, f64)> = Vec::new();
    for entry in text.split(MARK).skip(1) {
        let Some(line) = entry.lines().nth(1) else { continue };
        let Some((_, place)) = line.strip_prefix("[0x").and_then(|rest| rest.split_once("] ")) else { continue };
        let place = shown(place);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, count)) => *count += 1.0,
            None => places.push((place, 1.0)),
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_place_of_each_entry_counts() {
        let entry = "[30-Nov-2026 18:00:00]  [pool www] pid 7\nscript_filename = /srv/x.php\n\
            [0x00007f2c1a8130d0] usleep() /srv/x.php:3\n[0x00007f2c1a813070] wait() /srv/x.php:9\n\n";
        assert_eq!(of(&entry.repeat(3)), [("usleep() /srv/x.php:3".to_owned(), 3.0)]);
        assert_eq!(of("127.0.0.1 - GET /"), []);
        assert_eq!(places(u32::MAX), None);
    }

    #[test]
    fn a_log_is_named_by_the_configuration() {
        let text = "[global]\nerror_log = /e\n[www]\n;slowlog = /no\nslowlog = \"/log/$pool.slow\" ; here\nrequest_slowlog_timeout = 2s\n[other]\nslowlog = /log/o\n\
            request_slowlog_timeout = 0\n";
        assert_eq!(logs(text), [PathBuf::from("/log/www.slow")]);
    }
}
