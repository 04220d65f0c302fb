//! The sessions that clients may resume: in tickets, which weir seals with rotating keys, and in a store for clients
//! without tickets.
//!
//! Both are shared by all workers and outlive a reload. Each session is bound to a *context*, a digest of the
//! server's certificates and its trusted authorities. So a session of one server cannot be resumed at another server
//! with stricter checks (CVE-2025-23419). weir enforces the lifetimes; rustls does it only by rotating keys.

use crate::clock::unix_seconds;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::rand;
use rustls::server::{ProducesTickets, StoresServerSessions};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The digest that a session is bound to.
pub type Context = [u8; 32];

/// The context of a server that these parts identify.
pub fn context_of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Context {
    let mut sum = digest::Context::new(&SHA256);
    for part in parts {
        sum.update(&(part.len() as u64).to_be_bytes());
        sum.update(part);
    }
    let mut context = [0; 32];
    context.copy_from_slice(sum.finish().as_ref());
    context
}

/// The name of a key, at the beginning of a ticket.
const NAME_BYTES: usize = 16;
/// After the name comes the nonce. Sealed, and before the session, come the time it was made and the length of the
/// session.
const TIME_BYTES: usize = 8;
const LENGTH_BYTES: usize = 2;
/// The sealed bytes are padded to a multiple of this, so that the length of a ticket reveals little about its content.
const STEP_BYTES: usize = 64;

/// Keys that seal tickets.
pub struct TicketKeys {
    /// How long a ticket is valid; seconds.
    lifetime_s: u64,
    keys: Mutex<Keys>,
}

struct Keys {
    /// The first key seals tickets; all keys open them.
    row: VecDeque<Key>,
    /// When a new key takes the first place; `None` for given keys.
    rolls_at: Option<u64>,
}

struct Key {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKeys({} s)", self.lifetime_s)
    }
}

impl TicketKeys {
    /// Random keys: each seals tickets for `lifetime_s` seconds, and opens them for as long again.
    pub fn rolling(lifetime_s: u64) -> TicketKeys {
        TicketKeys { lifetime_s, keys: Mutex::new(Keys { row: VecDeque::new(), rolls_at: Some(0) }) }
    }

    /// Keys from files of 48 or 80 bytes; the first one seals. `None` if a file has another size.
    pub fn given(files: &[Vec<u8>], lifetime_s: u64) -> Option<TicketKeys> {
        let row = files.iter().map(|file| Key::of_file(file)).collect::<Option<VecDeque<Key>>>()?;
        (!row.is_empty()).then(|| TicketKeys { lifetime_s, keys: Mutex::new(Keys { row, rolls_at: None }) })
    }

    fn seal(&self, context: &Context, session: &[u8]) -> Option<Vec<u8>> {
        let now = unix_seconds();
        let mut keys = lock(&self.keys);
        if keys.rolls_at.is_some_and(|at| now >= at) {
            keys.row.push_front(Key::by_chance()?);
            keys.row.truncate(2);
            keys.rolls_at = Some(now.saturating_add(self.lifetime_s.max(1)));
        }
        let Key { name, key } = keys.row.front()?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut sealed = now.to_be_bytes().to_vec();
        sealed.extend_from_slice(&u16::try_from(session.len()).ok()?.to_be_bytes());
        sealed.extend_from_slice(session);
        sealed.resize(sealed.len().next_multiple_of(STEP_BYTES), 0);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed).ok()?;
        Some([&name[..], &nonce, &sealed].concat())
    }

    fn open(&self, context: &Context, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let keys = lock(&self.keys);
        let Key { key, .. } = keys.row.iter().find(|key| key.name == name)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = key.open_in_place(nonce, Aad::from(context), &mut sealed).ok()?;
        let (made, rest) = plain.split_at_checked(TIME_BYTES)?;
        let (length, rest) = rest.split_at_checked(LENGTH_BYTES)?;
        let session = rest.get(..usize::from(u16::from_be_bytes(length.try_into().ok()?)))?;
        let made = u64::from_be_bytes(made.try_into().ok()?);
        (unix_seconds() <= made.saturating_add(self.lifetime_s)).then(|| session.to_vec())
    }
}

impl Key {
    fn by_chance() -> Option<Key> {
        let (mut name, mut bytes) = ([0; NAME_BYTES], [0; 32]);
        rand::fill(&mut name).ok()?;
        rand::fill(&mut bytes).ok()?;
        Some(Key { name, key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?) })
    }

    /// nginx's files hold a name, a key for HMAC and one for AES; the key here is a digest of both.
    fn of_file(file: &[u8]) -> Option<Key> {
        if !matches!(file.len(), 48 | 80) {
            return None;
        }
        let (name, secret) = file.split_at_checked(NAME_BYTES)?;
        let key = digest::digest(&SHA256, secret);
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_ref()).ok()?);
        Some(Key { name: name.try_into().ok()?, key })
    }
}

/// A server's access to the keys.
#[derive(Debug)]
pub(super) struct Tickets {
    pub(super) keys: Arc<TicketKeys>,
    pub(super) context: Context,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.keys.lifetime_s).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal(&self.context, plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(&self.context, cipher)
    }
}

/// A store of sessions: in memory, bounded in bytes; the oldest sessions are removed first.
pub struct SessionCache {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<Vec<u8>, Entry>,
    /// In the order of arrival; an entry without its key is skipped.
    order: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    next: u64,
}

struct Entry {
    number: u64,
    until: u64,
    session: Vec<u8>,
}

/// Bytes of an entry besides key and session.
const ENTRY_BYTES: usize = 160;

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionCache({} bytes)", self.bytes_max)
    }
}

impl SessionCache {
    /// An empty store that takes at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> SessionCache {
        SessionCache { bytes_max, kept: Mutex::default() }
    }

    /// Its limit in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    fn put(&self, key: Vec<u8>, session: Vec<u8>, lifetime_s: u64) -> bool {
        let takes = cost(&key, &session);
        if takes > self.bytes_max {
            return false;
        }
        let mut kept = lock(&self.kept);
        kept.remove(&key);
        while kept.bytes + takes > self.bytes_max {
            let Some((number, oldest)) = kept.order.pop_front() else { break };
            if kept.by_key.get(&oldest).is_some_and(|entry| entry.number == number) {
                kept.remove(&oldest);
            }
        }
        // Keys that were taken out leave an entry in the order; it is cleaned up when half of it are such entries.
        if kept.order.len() > 64 + 2 * kept.by_key.len() {
            let Kept { order, by_key, .. } = &mut *kept;
            order.retain(|(number, key)| by_key.get(key).is_some_and(|entry| entry.number == *number));
        }
        kept.next += 1;
        let number = kept.next;
        kept.bytes += takes;
        kept.order.push_back((number, key.clone()));
        let until = unix_seconds().saturating_add(lifetime_s);
        kept.by_key.insert(key, Entry { number, until, session });
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let kept = lock(&self.kept);
        kept.by_key.get(key).filter(|entry| unix_seconds() <= entry.until).map(|entry| entry.session.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let entry = lock(&self.kept).remove(key)?;
        (unix_seconds() <= entry.until).then_some(entry.session)
    }
}

impl Kept {
    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.by_key.remove(key)?;
        self.bytes = self.bytes.saturating_sub(cost(key, &entry.session));
        Some(entry)
    }
}

fn cost(key: &[u8], session: &[u8]) -> usize {
    2 * key.len() + session.len() + ENTRY_BYTES
}

/// A server's access to a store.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) cache: Arc<SessionCache>,
    pub(super) context: Context,
    pub(super) lifetime_s: u64,
}

impl Stored {
    fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.context[..], key].concat()
    }
}

impl StoresServerSessions for Stored {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.cache.put(self.key(&key), value, self.lifetime_s)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(&self.key(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(&self.key(key))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// A panic elsewhere does not damage these tables.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_ticket_opens_for_its_context_alone() {
        let keys = TicketKeys::rolling(300);
        let ticket = keys.seal(&[1; 32], b"session").unwrap();
        assert_eq!(keys.open(&[1; 32], &ticket).unwrap(), b"session");
        assert!(keys.open(&[2; 32], &ticket).is_none());
        assert!(TicketKeys::rolling(300).open(&[1; 32], &ticket).is_none());
        for cut in 0..ticket.len() {
            assert!(keys.open(&[1; 32], &ticket[..cut]).is_none());
        }
    }

    mod mutate {
        use super::*;

        /// Only a ticket that weir sealed opens, and it holds the session that weir sealed.
        #[test]
        fn tickets() {
            let keys = TicketKeys::given(&[vec![7; 48]], 300).unwrap();
            let sealed = keys.seal(&[0; 32], b"session").unwrap();
            let seeds = [sealed.clone(), Vec::new(), vec![7; 16]];
            weir_mutate::mutate(&seeds, &[&[7; 16][..], &[0; 12]], |bytes| {
                let opened = keys.open(&[0; 32], bytes);
                assert_eq!(opened.is_some(), bytes == sealed);
                let again = keys.seal(&[1; 32], bytes).unwrap();
                assert!(again.len() <= bytes.len() + 16 + 12 + 16 + TIME_BYTES + LENGTH_BYTES + STEP_BYTES);
                assert_eq!(keys.open(&[1; 32], &again).as_deref(), Some(bytes));
            });
        }
    }

    #[test]
    fn keys_of_files_are_the_same_everywhere() {
        let files = [vec![7; 80], vec![8; 48]];
        let old = TicketKeys::given(&files[1..], 300).unwrap();
        let new = TicketKeys::given(&files, 300).unwrap();
        let ticket = old.seal(&[0; 32], b"session").unwrap();
        assert_eq!(ticket[..16], [8; 16]);
        assert_eq!(new.open(&[0; 32], &ticket).unwrap(), b"session");
        assert!(TicketKeys::given(&[vec![7; 47]], 300).is_none() && TicketKeys::given(&[], 300).is_none());
    }

    #[test]
    fn keys_roll() {
        let keys = TicketKeys::rolling(300);
        let first = keys.seal(&[0; 32], b"a").unwrap();
        assert_eq!(keys.seal(&[0; 32], b"b").unwrap()[..16], first[..16]);
        for still_opens in [true, false] {
            lock(&keys.keys).rolls_at = Some(0);
            assert_ne!(keys.seal(&[0; 32], b"c").unwrap()[..16], first[..16]);
            assert_eq!(keys.open(&[0; 32], &first).is_some(), still_opens);
        }
    }

    #[test]
    fn a_store_keeps_within_its_bytes_and_times() {
        let cache = SessionCache::new(4_000);
        for n in 0..100u8 {
            assert!(cache.put(vec![n; 32], vec![n; 100], 300));
        }
        assert!(cache.get(&[99; 32]).is_some() && cache.get(&[0; 32]).is_none());
        let kept = lock(&cache.kept).bytes;
        assert!((3_000..=4_000).contains(&kept), "{kept}");
        assert!(cache.take(&[99; 32]).is_some() && cache.take(&[99; 32]).is_none());
        assert!(!cache.put(vec![0; 32], vec![0; 5_000], 300));
        for _ in 0..1_000 {
            cache.put(vec![1; 32], vec![1; 8], 300);
            cache.take(&[1; 32]);
        }
        assert!(lock(&cache.kept).order.len() < 200);
    }
}
