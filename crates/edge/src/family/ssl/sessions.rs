//! The caches of sessions, and the keys that seal tickets. They belong to the process, so that workers share them and
//! they survive a reload.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use weir_conf::Statement;
use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::tls::{SessionCache, TicketKeys};

/// The number of sessions in nginx's `builtin` cache without a size.
const BUILTIN_SESSIONS: u64 = 20_480;
/// The approximate size of a session.
const SESSION_BYTES: u64 = 512;
/// nginx's eight pages.
const SHARED_BYTES_MIN: u64 = 32 << 10;

/// The caches of the configuration in force: a reload uses the same ones.
static CACHES: Mutex<Option<HashMap<String, Weak<SessionCache>>>> = Mutex::new(None);
static KEYS: Mutex<Option<HashMap<u64, Weak<TicketKeys>>>> = Mutex::new(None);

/// `ssl_session_cache`.
pub(super) fn cache(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut chosen = None;
    for word in &statement.args {
        let word = word.text.as_str();
        let bad = || Refusal::whole(format!("invalid session cache \"{word}\""));
        match word.split(':').collect::<Vec<_>>()[..] {
            ["off" | "none"] => chosen = None,
            ["builtin"] => chosen = chosen.or_else(|| Some(builtin(BUILTIN_SESSIONS))),
            ["builtin", count] => {
                let count = value::number(count).filter(|count| *count > 0).ok_or_else(bad)?;
                chosen = chosen.or_else(|| Some(builtin(count)));
            }
            ["shared", name, size] if !name.is_empty() => {
                let bytes = value::size_of(size).ok_or_else(bad)?;
                if bytes < SHARED_BYTES_MIN {
                    return Err(Refusal::whole(format!("session cache \"{word}\" is too small")));
                }
                let known = *crate::declaring(b).ssl.caches.entry(name.to_owned()).or_insert(bytes);
                if known != bytes {
                    return Err(Refusal::whole(format!(
                        "the size {bytes} of shared memory zone \"{name}\" conflicts with already declared size {known}"
                    )));
                }
                chosen = Some(shared(name, bytes as usize));
            }
            _ => return Err(bad()),
        }
    }
    crate::settings(b).ssl.cache = Some(chosen);
    Ok(())
}

fn builtin(sessions: u64) -> Arc<SessionCache> {
    Arc::new(SessionCache::new(sessions.saturating_mul(SESSION_BYTES) as usize))
}

/// The cache of this name; another size makes another cache.
fn shared(name: &str, bytes: usize) -> Arc<SessionCache> {
    let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let caches = caches.get_or_insert_default();
    caches.retain(|_, cache| cache.strong_count() > 0);
    if let Some(cache) = caches.get(name).and_then(Weak::upgrade).filter(|cache| cache.bytes_max() == bytes) {
        return cache;
    }
    let cache = Arc::new(SessionCache::new(bytes));
    caches.insert(name.to_owned(), Arc::downgrade(&cache));
    cache
}

/// The cache of servers that accept early data and set no cache.
pub(super) fn for_early_data() -> Arc<SessionCache> {
    shared("\0early", 1 << 20)
}

/// `ssl_session_ticket_key`.
pub(super) fn ticket_key(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = certificates::read(b, statement.text(0))
        .map_err(|(path, error)| Refusal::whole(format!("open() \"{path}\" failed {error}")))?;
    if !matches!(text.len(), 48 | 80) {
        let path = certificates::full_name(b, statement.text(0));
        return Err(
            Refusal::whole(format!("\"{path}\" must be 48 or 80 bytes")).todo("make the file with: openssl rand 80")
        );
    }
    crate::settings(b).ssl.ticket_keys.get_or_insert_default().push(text.to_vec());
    Ok(())
}

/// Keys that rotate with this lifetime; all servers with the same lifetime share them.
pub(super) fn rolling(lifetime_s: u64) -> Arc<TicketKeys> {
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let keys = keys.get_or_insert_default();
    keys.retain(|_, keys| keys.strong_count() > 0);
    if let Some(known) = keys.get(&lifetime_s).and_then(Weak::upgrade) {
        return known;
    }
    let made = Arc::new(TicketKeys::rolling(lifetime_s));
    keys.insert(lifetime_s, Arc::downgrade(&made));
    made
}
