//! Files of certificates and keys, for TLS with clients and with peers: weir reads each once per configuration, even if
//! several directives name it.
//!
//! <https://nginx.org/en/docs/ngx_core_module.html#ssl_object_cache_inheritable>. A file may be a pipe that gives its text only once. With `ssl_object_cache_inheritable`, weir takes texts over from
//! the previous configuration if the file is unchanged.

pub mod source;

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use weir_conf::Statement;
use weir_net::log::Os;
use weir_net::{answers, opening};

use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, MAIN};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::value;

crate::settings! {}

/// The files read for one configuration.
#[derive(Default)]
pub struct Declared {
    /// Texts by path.
    texts: HashMap<String, Arc<Vec<u8>>>,
    /// `ssl_object_cache_inheritable`; applies to the statements after it.
    inherits: bool,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "certificates",
    &[Directive::new(
        "ssl_object_cache_inheritable",
        MAIN,
        Arity::Flag,
        "Keeps certificates and keys across a reload if their files are unchanged.",
        |b, s| {
            b.declared.certificates.inherits = value::flag(s)?;
            Ok(())
        },
    )
    .default("off")],
);

/// The identity of a file, and its last change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

/// The largest file in bytes: 1000 authorities take half of it.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The files of the configuration read last, for one that inherits. Only inheriting configurations write here.
static LAST: Mutex<Option<Read>> = Mutex::new(None);

/// Files by name, each with its state at the time of reading.
type Read = HashMap<String, (Stamp, Arc<Vec<u8>>)>;

impl Stamp {
    /// Whether nginx would treat both as the same file; nginx compares whole seconds.
    fn is_as(&self, other: &Stamp) -> bool {
        (self.inode, self.changed.0) == (other.inode, other.changed.0)
    }

    /// The stamp of a file by its full name; `None` if there is none, or if it is not a regular file.
    pub fn of(path: &str) -> Option<Stamp> {
        let asked = answers::ask(answers::QuestionKind::Stamp, path, || {
            let meta = std::fs::metadata(path)?;
            let facts = if meta.is_file() {
                vec![meta.ino().cast_signed(), meta.mtime(), meta.mtime_nsec()]
            } else {
                Vec::new()
            };
            Ok(facts.iter().flat_map(|fact| fact.to_le_bytes()).collect())
        });
        let bytes = asked.ok()?;
        let mut facts = bytes.as_chunks().0.iter().map(|fact| i64::from_le_bytes(*fact));
        let inode = facts.next()?.cast_unsigned();
        Some(Stamp { inode, changed: (facts.next()?, facts.next()?) })
    }
}

/// The full name of a file; a relative name starts at the configuration's directory.
pub fn full_name(b: &Build<'_>, name: &str) -> String {
    absolute(&b.paths.conf_prefix, name)
}

/// The full name of a file below a directory with a final slash.
pub fn absolute(directory: &str, name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("{directory}{name}") }
}

/// The text of a file; the error is its full name and nginx's `(2: No such file or directory)`.
pub fn read(b: &mut Build<'_>, name: &str) -> Result<Arc<Vec<u8>>, (String, String)> {
    let path = full_name(b, name);
    if let Some(text) = b.declared.certificates.texts.get(&path) {
        return Ok(text.clone());
    }
    let stamp = if b.declared.certificates.inherits { Stamp::of(&path) } else { None };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = last.as_ref().and_then(|last| last.get(&path));
    let text = match (known, stamp) {
        (Some((then, text)), Some(now)) if then.is_as(&now) => text.clone(),
        _ => Arc::new(text(&path).map_err(|error| (path.clone(), error))?),
    };
    if let Some(stamp) = stamp {
        last.get_or_insert_default().insert(path.clone(), (stamp, text.clone()));
    }
    b.declared.certificates.texts.insert(path, text.clone());
    Ok(text)
}

/// The text of a file by its full name; the error is nginx's.
pub fn text(path: &str) -> Result<Vec<u8>, String> {
    let read = || opening::read(path.as_bytes(), FILE_BYTES_MAX + 1);
    let text = answers::ask(answers::QuestionKind::File, path, read).map_err(|error| Os(&error).to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("(larger than {FILE_BYTES_MAX} bytes)"));
    }
    Ok(text)
}

/// The most passwords tried on a key (nginx has no limit).
const PASSWORDS_MAX: usize = 1000;

/// The lines of a password file.
pub fn passwords(b: &mut Build<'_>, statement: &Statement) -> Result<Arc<Vec<Vec<u8>>>, Refusal> {
    let text = read(b, statement.text(0))
        .map_err(|(path, error)| Refusal::whole(format!("open() \"{path}\" failed {error}")))?;
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).take(PASSWORDS_MAX).map(<[u8]>::to_vec).collect();
    Ok(Arc::new(lines))
}
