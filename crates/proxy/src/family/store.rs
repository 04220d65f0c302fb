//! `proxy_store`: saves an upstream's answers as plain files.
//!
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_store>. weir saves only whole answers of 200 to
//! GET: it writes a file among the temporary ones and renames it when it is complete. weir never looks up these files
//! itself; `try_files` does.

use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::file_path;
use weir_http::exchange::visit::Along;
use weir_http::read::build::Build;
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::receive::body;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::log::{self, Level};
use weir_net::path;

use crate::family::proxy::{self, response};

weir_http::settings! {
    /// `proxy_store`.
    store: Store = Store::Off,
    /// `proxy_store_access`.
    access: u32 = 0o600,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The place where answers are saved.
#[derive(Clone, Debug)]
pub enum Store {
    /// Answers are not saved.
    Off,
    /// At the file of `root` or `alias`.
    On,
    /// At this path.
    At(Template),
}

/// The directives of one family of upstreams. The arguments are the prefix of the names, and the paths below `Settings` of the
/// family's settings for its cache and for these.
macro_rules! storing {
    ($prefix:literal, ($($cache:tt)+), ($($path:tt)+)) => {{
                use weir_http::read::directive::{Arity, Directive, HSL, ONE};
        use $crate::family::store;
        &[
            Directive::new(
                concat!($prefix, "_store"),
                HSL,
                ONE,
                "Stores answers as files: on, off, or the file's path.",
                |b, s| {
                    let store = store::store(b, s)?;
                    let all = crate::settings(b);
                    if !matches!(store, store::Store::Off) {
                        all.$($cache)+.give_way(concat!($prefix, "_cache"))?;
                    }
                    all.$($path)+.store = Some(store);
                    Ok(())
                },
            )
            .default("off"),
            Directive::new(
                concat!($prefix, "_store_access"),
                HSL,
                Arity::Between(1, 3),
                "The permissions of stored files: user:rw group:r all:r.",
                |b, s| store::access(b, s, |all| &mut all.$($path)+),
            )
            .default("user:rw"),
        ]
    }};
}

pub(crate) use storing;

/// The family.
pub static FAMILY: Family = Family::new("store", storing!("proxy", (cache), (store))).check(check);

/// `…_store on` saves under the root.
fn check(b: &mut Build<'_>, found: &Found<'_>) {
    let stores = |location: &&Location| matches!(crate::values(location).store.store, Store::On);
    for root in found.locations.iter().filter(stores).filter_map(|location| location.values.files.root.as_ref()) {
        b.writes_under(root.directory.beginning(), root.at);
    }
}

/// Selects a family's settings in a block.
pub type StoreOf = fn(&mut crate::family::Settings) -> &mut Settings;

/// `…_store`.
pub fn store(b: &mut Build<'_>, statement: &Statement) -> Result<Store, Refusal> {
    Ok(match statement.text(0) {
        "off" => Store::Off,
        "on" => Store::On,
        path => {
            let path = if path.starts_with('$') { path.to_owned() } else { b.path(path) };
            let name = b.template(&path)?;
            if b.reach.write_named(name.beginning(), &b.paths.prefix) {
                b.opens_all("writing");
            }
            Store::At(name)
        }
    })
}

impl Settings {
    /// Stores no files because of the blocks around this one, which has a cache, as in nginx. Refuses a block that has both; `store` is the name
    /// of the directive.
    pub fn give_way(&mut self, store: &str) -> Result<(), Refusal> {
        if matches!(self.store, Some(Store::On | Store::At(_))) {
            return Err(Refusal::directive(format!("is incompatible with \"{store}\"")));
        }
        self.store = Some(Store::Off);
        Ok(())
    }
}

/// `…_store_access`.
pub fn access(b: &mut Build<'_>, statement: &Statement, of: StoreOf) -> Result<(), Refusal> {
    of(crate::settings(b)).access = Some(value::access(statement)?);
    Ok(())
}

/// An answer that is being saved; dropping it removes the file unless `end` was called.
pub struct Saving {
    file: File,
    temporary: String,
    path: PathBuf,
    mode: u32,
    modified: Option<i64>,
    is_broken: bool,
}

/// Begins to save the upstream's answer, whose head is in the exchange, if the location and the answer allow it.
pub fn begin(exchange: &mut Exchange<'_>, settings: &crate::family::Values) -> Option<Box<dyn Along>> {
    let values = &settings.store;
    let named = match &values.store {
        Store::Off => return None,
        Store::On => None,
        Store::At(template) => Some(template),
    };
    let origin = exchange.origin.as_ref()?;
    if origin.head.status != 200 || exchange.request.method() != b"GET" || !response::buffers(settings, origin) {
        return None;
    }
    let modified = origin.field(weir_wire::Known::LastModified).and_then(weir_wire::date::parse_http_date);
    let path = match named {
        Some(template) => template.text(exchange),
        None => file_path::path(exchange)?.0,
    };
    let path = weir_net::path::as_path(&path).to_path_buf();
    let (file, temporary) = body::temporary(exchange, settings.proxy.temp_path.as_deref(), proxy::TEMPORARY)?;
    Some(Box::new(Saving { file, temporary, path, mode: values.access, modified, is_broken: false }))
}

impl Along for Saving {
    /// Writes body bytes. `end` reports a failure.
    fn read(&mut self, bytes: &[u8]) {
        self.is_broken = self.is_broken || self.file.write_all(bytes).is_err();
    }

    /// Renames the file.
    fn end(mut self: Box<Self>) {
        let result = self.name_it();
        if let Err(error) = result {
            let (from, to) = (&self.temporary, self.path.display());
            log::global(Level::Crit, format_args!("rename() \"{from}\" to \"{to}\" failed {}", log::Os(&error)));
        } else {
            self.temporary.clear();
        }
    }
}

impl Saving {
    fn name_it(&mut self) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.file.set_permissions(Permissions::from_mode(self.mode))?;
        if let Some(seconds) = self.modified.and_then(|seconds| u64::try_from(seconds).ok()) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            self.file.set_times(FileTimes::new().set_modified(time))?;
        }
        let mut placed = std::fs::rename(&self.temporary, &self.path);
        if placed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            path::make_way(&self.path, value::directory_access(self.mode))?;
            placed = std::fs::rename(&self.temporary, &self.path);
        }
        match placed {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy(),
            done => done,
        }
    }

    /// Copies the file to another file system, and renames it there.
    fn copy(&self) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".weir-temporary");
        std::fs::copy(&self.temporary, &beside)?;
        std::fs::rename(&beside, &self.path)?;
        std::fs::remove_file(&self.temporary)
    }
}

impl Drop for Saving {
    fn drop(&mut self) {
        if !self.temporary.is_empty() {
            // The file may be gone already.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;

    #[test]
    fn rights_are_read_in_nginx_words() {
        for (words, mode) in [
            ("user:rw", Ok(0o600)),
            ("group:rw all:r", Ok(0o664)),
            ("all:rw", Ok(0o606)),
            ("user:x", Err("invalid value \"user:x\"")),
            ("nobody:r", Err("invalid value \"nobody:r\"")),
        ] {
            let (conf, said) = of_text(&format!(
                "events {{}} http {{ proxy_store_access {words}; server {{ listen 127.0.0.1:1; }} }}"
            ));
            match mode {
                Ok(mode) => assert_eq!(crate::values(&conf.unwrap().locations[0]).store.access, mode, "{words}"),
                Err(words) => assert_eq!(said, [words]),
            }
        }
    }
}
