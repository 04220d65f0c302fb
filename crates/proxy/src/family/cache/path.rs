//! `proxy_cache_path`: the directory of a cache, its size, and its maintenance threads.
//!
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_path>. weir adds the parameter
//! `memory=SIZE`: the size of the cache's memory in front of the disk.

use std::sync::Arc;
use std::time::Duration;

use weir_cache::store::{Directory, Settings, Tuning, Zone};
use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{self, Level};
use weir_net::process::Identity;

/// nginx refuses zones of less than two pages.
const KEYS_ZONE_BYTES_MIN: u64 = 8 << 10;

/// The memory of a cache without `memory=`.
pub const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;

/// nginx allows three levels of directories, of one or two digits each.
pub const LEVELS_MAX: usize = 3;

/// The pace of the cache manager or the cache loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The most files in one iteration.
    pub files: u64,
    /// The pause between two iterations.
    pub sleep: Duration,
    /// The longest duration of one iteration.
    pub threshold: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { files: 100, sleep: Duration::from_millis(50), threshold: Duration::from_millis(200) }
    }
}

/// One `proxy_cache_path`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePath {
    /// The family that declares it, as the prefix of its directives: only this family may use it.
    pub prefix: &'static str,
    /// The directory.
    pub directory: String,
    /// Digits of each level of directories below it.
    pub levels: Vec<u8>,
    /// Files are first written to the temporary directory (`proxy_temp_path`), else beside their final place.
    pub use_temp_path: bool,
    /// The zone's name.
    pub name: String,
    /// The zone's size in bytes: it bounds how many keys there are.
    pub keys_bytes: u64,
    /// An object that nobody requests for this time is removed.
    pub inactive: Duration,
    /// Bytes on disk; `None` for no bound.
    pub max_size: Option<u64>,
    /// Bytes of the file system that the cache leaves free.
    pub min_free: u64,
    /// Bytes of bodies kept in memory.
    pub memory: u64,
    /// The cache manager removes objects that are too old or too many.
    pub manager: Pace,
    /// The cache loader finds the objects on disk again after a start.
    pub loader: Pace,
    /// The number of the cell that counts its requests.
    pub cell: u32,
}

impl CachePath {
    /// Opens the cache as `identity`. Files are first written in `temporary`, unless `use_temp_path` is off or there is no such directory.
    pub fn open(&self, temporary: Option<String>, identity: Option<&Identity>) -> Arc<Zone> {
        let zone = Zone::new(Settings {
            name: self.name.clone(),
            keys_bytes: self.keys_bytes,
            memory_bytes: self.memory,
            directory: Some(Directory {
                path: self.directory.clone().into(),
                levels: self.levels.clone(),
                temp_path: temporary.filter(|_| self.use_temp_path).map(Into::into),
            }),
        });
        zone.retune(self.tuning());
        if let Err(error) = zone.start(identity.cloned()) {
            let (name, error) = (&self.name, log::Os(&error));
            log::global(Level::Alert, format_args!("thread of cache \"{name}\" could not be started {error}"));
        }
        zone
    }

    /// The settings that may change while the cache stays open.
    pub fn tuning(&self) -> Tuning {
        let files = |pace: &Pace| u32::try_from(pace.files).unwrap_or(u32::MAX);
        Tuning {
            inactive: self.inactive,
            max_size: self.max_size,
            min_free: Some(self.min_free).filter(|bytes| *bytes > 0),
            manager_files: files(&self.manager),
            manager_sleep: self.manager.sleep,
            manager_threshold: self.manager.threshold,
            loader_files: files(&self.loader),
            loader_sleep: self.loader.sleep,
            loader_threshold: self.loader.threshold,
        }
    }

    /// Whether a cache that the older configuration declares as `before` can continue as this one: the sizes and
    /// `use_temp_path` are equal.
    pub fn is_as_large_as(&self, before: &CachePath) -> bool {
        (self.keys_bytes, self.memory, self.use_temp_path) == (before.keys_bytes, before.memory, before.use_temp_path)
    }

    /// Whether a new configuration may declare a zone like this after `before`; if not, an error in nginx's words.
    pub fn continues(&self, before: &CachePath) -> Result<(), String> {
        let name = &self.name;
        if self.directory != before.directory {
            return Err(format!(
                "cache \"{name}\" uses the \"{}\" cache path while previously it used the \"{}\" cache path",
                self.directory, before.directory
            ));
        }
        if self.levels != before.levels {
            return Err(format!("cache \"{name}\" had previously different levels"));
        }
        Ok(())
    }
}

/// Reads a `proxy_cache_path`; errors have nginx's words.
pub fn read(b: &Build<'_>, statement: &Statement) -> Result<CachePath, Refusal> {
    let directory = b.path(statement.text(0));
    let directory = match directory.trim_end_matches('/') {
        "" => "/".to_owned(),
        trimmed => trimmed.to_owned(),
    };
    let mut path = CachePath {
        prefix: "proxy",
        directory,
        levels: Vec::new(),
        use_temp_path: true,
        name: String::new(),
        keys_bytes: 0,
        inactive: Duration::from_secs(600),
        max_size: None,
        min_free: 0,
        memory: MEMORY_BYTES_DEFAULT,
        manager: Pace::default(),
        loader: Pace::default(),
        cell: 0,
    };
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        parameter(&mut path, word)?;
    }
    if path.name.is_empty() {
        return Err(Refusal::whole(format!("\"{}\" must have \"keys_zone\" parameter", statement.name.text)));
    }
    Ok(path)
}

fn parameter(path: &mut CachePath, word: &str) -> Result<(), Refusal> {
    let Some((key, text)) = word.split_once('=') else { return Err(unknown(word)) };
    let bad = || Refusal::whole(format!("invalid {key} value \"{word}\""));
    match key {
        "levels" => {
            path.levels = levels(text).ok_or_else(|| Refusal::whole(format!("invalid \"levels\" \"{word}\"")))?;
        }
        "use_temp_path" => {
            path.use_temp_path = match text {
                "on" => true,
                "off" => false,
                _ => {
                    let what = format!("invalid use_temp_path value \"{word}\", it must be \"on\" or \"off\"");
                    return Err(Refusal::whole(what));
                }
            };
        }
        "keys_zone" => (path.name, path.keys_bytes) = keys_zone(word, text)?,
        "inactive" => path.inactive = value::whole_seconds_of(text).ok_or_else(bad)?,
        "max_size" => path.max_size = Some(value::offset_of(text).ok_or_else(bad)?),
        "min_free" => path.min_free = value::offset_of(text).ok_or_else(bad)?,
        "memory" => path.memory = value::offset_of(text).ok_or_else(bad)?,
        "manager_files" => path.manager.files = value::number(text).ok_or_else(bad)?,
        "manager_sleep" => path.manager.sleep = value::time_of(text).ok_or_else(bad)?,
        "manager_threshold" => path.manager.threshold = value::time_of(text).ok_or_else(bad)?,
        "loader_files" => path.loader.files = value::number(text).ok_or_else(bad)?,
        "loader_sleep" => path.loader.sleep = value::time_of(text).ok_or_else(bad)?,
        "loader_threshold" => path.loader.threshold = value::time_of(text).ok_or_else(bad)?,
        // NGINX Plus: a process that scans the files after a purge by `*`. weir's purges take effect at once.
        "purger" if matches!(text, "on" | "off") => {}
        "purger_files" => drop(value::number(text).ok_or_else(bad)?),
        "purger_sleep" | "purger_threshold" => drop(value::long_time_of(text).ok_or_else(bad)?),
        _ => return Err(unknown(word)),
    }
    Ok(())
}

fn unknown(word: &str) -> Refusal {
    Refusal::whole(format!("invalid parameter \"{word}\""))
}

/// `1`, `1:2`, `2:2:1` and so on.
fn levels(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .split(':')
        .map(|level| match level {
            "1" => Some(1),
            "2" => Some(2),
            _ => None,
        })
        .collect();
    digits.filter(|digits| digits.len() <= LEVELS_MAX)
}

fn keys_zone(word: &str, text: &str) -> Result<(String, u64), Refusal> {
    let read = text.split_once(':').and_then(|(name, size)| Some((name, value::size_of(size)?)));
    let Some((name, size)) = read else {
        return Err(Refusal::whole(format!("invalid keys zone size \"{word}\"")));
    };
    if size < KEYS_ZONE_BYTES_MIN {
        return Err(Refusal::whole(format!("keys zone \"{word}\" is too small")));
    }
    Ok((name.to_owned(), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_one_to_three_numbers_of_one_or_two() {
        for (text, expected) in [
            ("1", Some(vec![1])),
            ("1:2", Some(vec![1, 2])),
            ("2:2:2", Some(vec![2, 2, 2])),
            ("3", None),
            ("1:", None),
            ("", None),
            ("1:1:1:1", None),
            ("12", None),
        ] {
            assert_eq!(levels(text), expected, "{text:?}");
        }
    }

    fn declared(words: &str) -> Result<CachePath, Vec<String>> {
        let (conf, problems) = crate::of_text(&format!("events {{}} http {{ proxy_cache_path {words}; }}"));
        match problems.is_empty() {
            true => Ok(crate::declared(&conf.unwrap()).cache.paths[0].clone()),
            false => Err(problems),
        }
    }

    #[test]
    fn every_parameter_is_read_or_refused_in_nginx_words() {
        let plain = declared("/c keys_zone=z:1m").unwrap();
        assert_eq!((plain.directory.as_str(), plain.name.as_str(), plain.keys_bytes), ("/c", "z", 1 << 20));
        let ms = Duration::from_millis;
        let changed = |change: fn(&mut CachePath)| {
            let mut path = plain.clone();
            change(&mut path);
            path
        };
        for (word, expected) in [
            ("levels=1:2", changed(|path| path.levels = vec![1, 2])),
            ("use_temp_path=off", changed(|path| path.use_temp_path = false)),
            ("inactive=2h", changed(|path| path.inactive = Duration::from_secs(7200))),
            ("max_size=3g", changed(|path| path.max_size = Some(3 << 30))),
            ("min_free=1k", changed(|path| path.min_free = 1024)),
            ("memory=0", changed(|path| path.memory = 0)),
            ("manager_files=7", changed(|path| path.manager.files = 7)),
            ("loader_files=8", changed(|path| path.loader.files = 8)),
            ("purger=on", changed(|_| {})),
        ] {
            assert_eq!(declared(&format!("/c/ keys_zone=z:1m {word}")), Ok(expected), "{word}");
        }
        let paced =
            declared("/c keys_zone=z:1m manager_sleep=9ms manager_threshold=8ms loader_sleep=7ms loader_threshold=6ms");
        let paced = paced.unwrap();
        assert_eq!((paced.manager.sleep, paced.manager.threshold), (ms(9), ms(8)));
        assert_eq!((paced.loader.sleep, paced.loader.threshold), (ms(7), ms(6)));
        for (words, told) in [
            ("/c levels=1", "\"proxy_cache_path\" must have \"keys_zone\" parameter"),
            ("/c keys_zone=z", "invalid keys zone size \"keys_zone=z\""),
            ("/c keys_zone=z:1k", "keys zone \"keys_zone=z:1k\" is too small"),
            ("/c keys_zone=z:1m levels=3", "invalid \"levels\" \"levels=3\""),
            (
                "/c keys_zone=z:1m use_temp_path=no",
                "invalid use_temp_path value \"use_temp_path=no\", it must be \"on\" or \"off\"",
            ),
            ("/c keys_zone=z:1m inactive=x", "invalid inactive value \"inactive=x\""),
            ("/c keys_zone=z:1m max_size=x", "invalid max_size value \"max_size=x\""),
            ("/c keys_zone=z:1m purger=maybe", "invalid parameter \"purger=maybe\""),
            ("/c keys_zone=z:1m off", "invalid parameter \"off\""),
            ("/c keys_zone=z:1m colour=red", "invalid parameter \"colour=red\""),
        ] {
            assert_eq!(declared(words), Err(vec![told.to_owned()]), "{words}");
        }
    }

    #[test]
    fn a_reload_keeps_a_cache_in_its_place() {
        let before = declared("/c keys_zone=z:1m levels=1:2").unwrap();
        for (words, may, is_as_large) in [
            ("/c keys_zone=z:1m levels=1:2 inactive=1h max_size=1g", Ok(()), true),
            ("/c keys_zone=z:2m levels=1:2", Ok(()), false),
            ("/c keys_zone=z:1m levels=1:2 memory=1m", Ok(()), false),
            ("/c keys_zone=z:1m levels=1:2 use_temp_path=off", Ok(()), false),
            ("/c keys_zone=z:1m", Err("cache \"z\" had previously different levels"), true),
            (
                "/d keys_zone=z:1m levels=1:2",
                Err("cache \"z\" uses the \"/d\" cache path while previously it used the \"/c\" cache path"),
                true,
            ),
        ] {
            let now = declared(words).unwrap();
            assert_eq!(
                (now.continues(&before), now.is_as_large_as(&before)),
                (may.map_err(str::to_owned), is_as_large),
                "{words}"
            );
        }
    }
}
