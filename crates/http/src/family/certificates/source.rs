//! Certificates by name: fixed ones, ones whose names depend on the client, and ones that are reloaded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_conf::Statement;
use weir_net::tls::{KeyError, KeyPair};
use weir_net::{Instant, clock};

use super::{Stamp, absolute, text};
use crate::read::build::Build;
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

/// The source of a certificate or a key.
#[derive(Clone)]
pub struct CertificateSource {
    /// As written.
    pub shown: String,
    template: Template,
}

impl CertificateSource {
    /// Reads a directive's argument.
    pub fn read(b: &mut Build<'_>, text: &str) -> Result<CertificateSource, Refusal> {
        if text.is_empty() {
            return Err(Refusal::directive("is empty"));
        }
        if text.starts_with("engine:") {
            return Err(Refusal::whole("weir cannot load keys from OpenSSL engines")
                .weirs_own()
                .todo("name a file with the key"));
        }
        if let Some(uri) = text.strip_prefix("store:")
            && !uri.starts_with("file:")
        {
            return Err(Refusal::whole(format!("weir cannot load keys from the store \"{uri}\""))
                .weirs_own()
                .todo("name a file with the key"));
        }
        // A PEM text never contains a "$": base64 has none.
        let template = b.template(text)?;
        reach(b, text, &template);
        Ok(CertificateSource { shown: text.to_owned(), template })
    }

    /// The name, if it does not depend on the client.
    pub fn fixed(&self) -> Option<&str> {
        self.template.literal().map(|_| self.shown.as_str())
    }

    /// The name as a template: the text as written, with variables.
    pub fn template(&self) -> &Template {
        &self.template
    }
}

/// Notes the files that such a name of a certificate or key may be: a client's name may choose the file, and a fixed one may be
/// read again.
pub fn reach(b: &mut Build<'_>, text: &str, template: &Template) {
    let variable = text.strip_prefix('$').map(|name| name.trim_matches(['{', '}']).to_ascii_lowercase());
    let is_pem = variable.and_then(|name| b.known.variable(&name)).is_some_and(|variable| variable.is_pem);
    let is_text = is_pem || matches!(Named::of(text), Named::Text(_));
    if !is_text && b.reach.read_named(template.beginning(), &b.paths.conf_prefix) {
        b.opens_all("reading");
    }
}

/// The target of a name.
pub enum Named<'n> {
    /// The PEM text itself.
    Text(&'n [u8]),
    /// A file.
    File(&'n str),
}

impl<'n> Named<'n> {
    /// Distinguishes a text from a file.
    pub fn of(name: &'n str) -> Named<'n> {
        match name.strip_prefix("data:") {
            Some(text) => Named::Text(text.as_bytes()),
            None => Named::File(name.strip_prefix("store:file:").unwrap_or(name)),
        }
    }

    /// The text, read once for the whole configuration; the error is nginx's.
    pub fn fixed_text(&self, b: &mut Build<'_>) -> Result<Arc<Vec<u8>>, (String, String)> {
        match self {
            Named::Text(text) => Ok(Arc::new(text.to_vec())),
            Named::File(name) => super::read(b, name),
        }
    }

    /// The text, read at this moment; the error is nginx's.
    pub fn text(&self, directory: &str) -> Result<Vec<u8>, String> {
        match self {
            Named::Text(text) => Ok(text.to_vec()),
            Named::File(name) => text(&absolute(directory, name)),
        }
    }
}

/// Combines certificate and key; the error is a sentence like nginx's.
pub fn pair(names: (&str, &str), texts: (&[u8], &[u8]), passwords: &[Vec<u8>]) -> Result<KeyPair, (Half, String)> {
    let shown = |name: &str| if name.starts_with("data:") { "data:...".to_owned() } else { name.to_owned() };
    KeyPair::read(texts.0, texts.1, passwords).map_err(|error| match error {
        KeyError::Certificate(why) => (
            Half::Certificate,
            format!("cannot load certificate \"{}\": PEM_read_bio_X509_AUX() failed ({why})", shown(names.0)),
        ),
        KeyError::Key(why) => (
            Half::Key,
            format!("cannot load certificate key \"{}\": PEM_read_bio_PrivateKey() failed ({why})", shown(names.1)),
        ),
        KeyError::Mismatch => (
            Half::Key,
            format!(
                "SSL_CTX_use_PrivateKey(\"{}\") failed (key values mismatch with certificate \"{}\")",
                shown(names.1),
                shown(names.0)
            ),
        ),
    })
}

/// A half of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The certificate.
    Certificate,
    /// Its key.
    Key,
}

impl Half {
    /// nginx's words for the half.
    pub fn words(self) -> &'static str {
        match self {
            Half::Certificate => "certificate",
            Half::Key => "certificate key",
        }
    }

    /// The directive that sets the half.
    pub fn directive(self) -> &'static str {
        match self {
            Half::Certificate => "ssl_certificate",
            Half::Key => "ssl_certificate_key",
        }
    }
}

/// Reads certificate and key by name, each file once for the whole configuration.
pub fn load_once(b: &mut Build<'_>, names: (&str, &str), passwords: &[Vec<u8>]) -> Result<KeyPair, (Half, String)> {
    let mut read = |half: Half, name: &str| {
        let cannot =
            |(path, error)| (half, format!("cannot load {} \"{path}\": BIO_new_file() failed {error}", half.words()));
        Named::of(name).fixed_text(b).map_err(cannot)
    };
    let texts = (read(Half::Certificate, names.0)?, read(Half::Key, names.1)?);
    pair(names, (&texts.0, &texts.1), passwords)
}

/// Reads certificate and key by name, at this moment.
pub fn load(directory: &str, names: (&str, &str), passwords: &[Vec<u8>]) -> Result<KeyPair, String> {
    read(directory, names, passwords).map(|(pair, _)| pair)
}

/// Like [`load`], and also returns whether the key was encrypted.
fn read(directory: &str, names: (&str, &str), passwords: &[Vec<u8>]) -> Result<(KeyPair, bool), String> {
    let read = |what: &str, name: &str| {
        Named::of(name).text(directory).map_err(|error| {
            format!("cannot load {what} \"{}\": BIO_new_file() failed {error}", absolute(directory, name))
        })
    };
    let texts = (read("certificate", names.0)?, read("certificate key", names.1)?);
    // PKCS #8 has the word in its label, the older format in its header.
    let is_encrypted = texts.1.windows(9).any(|window| window == b"ENCRYPTED");
    Ok((pair(names, (&texts.0, &texts.1), passwords).map_err(|(_, words)| words)?, is_encrypted))
}

/// `ssl_certificate_cache`: pairs by their names, shared by workers. A full cache drops the pair with the oldest use.
/// As in nginx, an encrypted key is never cached: a server without its password must not get it from here.
pub struct CertificateCache {
    pairs_max: usize,
    inactive: Duration,
    valid: Duration,
    kept: Mutex<HashMap<(String, String), Kept>>,
}

struct Kept {
    pair: KeyPair,
    read: Instant,
    used: Instant,
}

impl CertificateCache {
    /// An empty cache; `max` counts certificates and keys separately, as in nginx.
    pub fn new(max: usize, inactive: Duration, valid: Duration) -> CertificateCache {
        CertificateCache { pairs_max: max.div_ceil(2).max(1), inactive, valid, kept: Mutex::default() }
    }

    /// The pair of these names; reads it if needed.
    pub fn load(&self, directory: &str, names: (&str, &str), passwords: &[Vec<u8>]) -> Result<KeyPair, String> {
        let now = clock::now();
        let key = (names.0.to_owned(), names.1.to_owned());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, pair| now.saturating_duration_since(pair.used) <= self.inactive);
        if let Some(known) = kept.get_mut(&key)
            && now.saturating_duration_since(known.read) <= self.valid
        {
            known.used = now;
            return Ok(known.pair.clone());
        }
        kept.remove(&key);
        // Others wait for the lock meanwhile: they would read the same files.
        let (pair, was_encrypted) = read(directory, names, passwords)?;
        if was_encrypted {
            return Ok(pair);
        }
        while kept.len() >= self.pairs_max {
            let Some(oldest) = kept.iter().min_by_key(|(_, pair)| pair.used).map(|(key, _)| key.clone()) else { break };
            kept.remove(&oldest);
        }
        kept.insert(key, Kept { pair: pair.clone(), read: now, used: now });
        Ok(pair)
    }
}

/// Watches the files of fixed certificates (`ssl_certificate_refresh`).
pub struct Watch {
    every: Duration,
    next: Instant,
    stamps: Vec<Option<Stamp>>,
}

impl Watch {
    /// Starts to watch.
    pub fn new(every: Duration, paths: &[String]) -> Watch {
        Watch { every, next: clock::now() + every, stamps: stamps(paths) }
    }

    /// The change, if it is time to look and the files have changed. Files that are being written are checked again
    /// later: a change counts once certificate and key match.
    pub fn finds_change(&mut self, paths: &[String]) -> Option<Changed> {
        let now = clock::now();
        if now < self.next {
            return None;
        }
        self.next = now + self.every;
        let stamps = stamps(paths);
        (stamps != self.stamps).then_some(Changed(stamps))
    }

    /// Marks the change as handled.
    pub fn settle(&mut self, changed: Changed) {
        self.stamps = changed.0;
    }
}

/// The state of the files when a change was seen.
pub struct Changed(Vec<Option<Stamp>>);

fn stamps(paths: &[String]) -> Vec<Option<Stamp>> {
    paths.iter().map(|path| Stamp::of(path)).collect()
}

/// The full name of each source that is a file.
pub fn paths(directory: &str, sources: &[(CertificateSource, CertificateSource)]) -> Vec<String> {
    let names = sources.iter().flat_map(|(certificate, key)| [certificate, key]);
    let files = names.filter_map(|source| match Named::of(source.fixed()?) {
        Named::File(name) => Some(absolute(directory, name)),
        Named::Text(_) => None,
    });
    files.collect()
}

/// Loads the current certificates.
pub fn load_all(
    directory: &str,
    sources: &[(CertificateSource, CertificateSource)],
    passwords: &Arc<Vec<Vec<u8>>>,
) -> Result<Vec<KeyPair>, String> {
    sources.iter().map(|(certificate, key)| load(directory, (&certificate.shown, &key.shown), passwords)).collect()
}

/// `off`, or `max=N [inactive=TIME] [valid=TIME]`.
pub fn cache(statement: &Statement) -> Result<Option<Arc<CertificateCache>>, Refusal> {
    let words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
    let bad = |word: &str| Refusal::whole(format!("invalid parameter \"{word}\""));
    let (mut max, mut inactive, mut valid) = (None, Duration::from_secs(10), Duration::from_secs(60));
    for word in &words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "off" if words.len() == 1 => return Ok(None),
            "max" => max = Some(value::number(value).filter(|max| *max > 0).ok_or_else(|| bad(word))?),
            "inactive" => inactive = value::whole_seconds_of(value).ok_or_else(|| bad(word))?,
            "valid" => valid = value::whole_seconds_of(value).ok_or_else(|| bad(word))?,
            _ => return Err(bad(word)),
        }
    }
    let Some(max) = max else {
        return Err(Refusal::whole(format!("\"{}\" must have the \"max\" parameter", statement.name.text)));
    };
    Ok(Some(Arc::new(CertificateCache::new(max as usize, inactive, valid))))
}
