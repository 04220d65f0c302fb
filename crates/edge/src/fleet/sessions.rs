//! Sessions of `sticky learn` that edges share: a stream to which each edge adds its own.

use std::sync::Arc;
use std::time::Duration;

use weir_net::timer;
use weir_proxy::family::sticky::{SessionWord, SharedSessions};
use weir_redis::{Commands, NoReply, Value, pairs};

use crate::fleet::shared::{FleetShared, PATIENCE};

/// The time between two looks: a client comes to another edge after it has got its answer, and that takes longer.
const EVERY: Duration = Duration::from_millis(20);

/// The time between two looks while no zone is shared.
const IDLE: Duration = Duration::from_secs(1);

/// Sessions in one entry of the stream, at most.
const ENTRY_MAX: usize = 500;

/// Entries of one look, at most.
const READ_MAX: usize = 100;

/// About how many entries the stream keeps.
const STREAM_MAX: usize = 20_000;

/// Looks in one round, at most.
const LOOKS_MAX: usize = 50;

/// Bytes of a peer's name, at most; a longer one of another edge is not taken.
const PEER_BYTES_MAX: usize = 1024;

/// Tells and hears again and again, as long as the thread runs.
pub(super) async fn follow(shared: Arc<FleetShared>) {
    let mut after: Option<String> = None;
    loop {
        let zones = shared.sessions();
        if zones.is_empty() {
            timer::sleep(IDLE).await;
            continue;
        }
        // Reports say that Redis is away. What was missed is read when it is back.
        let _ = round(&shared, &zones, &mut after).await;
        timer::sleep(EVERY).await;
    }
}

async fn round(shared: &FleetShared, zones: &[Arc<SharedSessions>], after: &mut Option<String>) -> Result<(), NoReply> {
    let key = shared.keys.sessions();
    for zone in zones {
        let mut news = zone.news();
        while !news.is_empty() {
            let rest = news.split_off(news.len().min(ENTRY_MAX));
            let most = STREAM_MAX.to_string();
            let (edge, text) = (shared.settings.edge.as_str(), written(&news));
            let words = ["XADD", key, "MAXLEN", "~", &most, "*", "e", edge, "z", &zone.name, "s", &text];
            if let Err(failed) = shared.settings.server.ask(Commands::one(&words), PATIENCE).await {
                news.extend(rest);
                zone.put_back(news);
                return Err(failed);
            }
            news = rest;
        }
    }
    for _ in 0..LOOKS_MAX {
        let from = match after.as_deref() {
            Some(id) => next_id(id).ok_or(NoReply::Unexpected)?,
            // From the oldest session that may still live.
            None => {
                let longest = zones.iter().map(|zone| zone.timeout()).max().unwrap_or_default();
                let now = shared.redis_ms().ok_or(NoReply::Late)?;
                format!("{}-0", now.saturating_sub(i64::try_from(longest.as_millis()).unwrap_or(i64::MAX)).max(0))
            }
        };
        let count = READ_MAX.to_string();
        let commands = Commands::one(&["XRANGE", key, &from, "+", "COUNT", &count]);
        let replies = shared.settings.server.ask(commands, PATIENCE).await?;
        let entries = replies.first().map(Value::list).unwrap_or_default();
        let now = shared.redis_ms().ok_or(NoReply::Late)?;
        for entry in entries {
            let id = entry.list().first().and_then(Value::text).ok_or(NoReply::Unexpected)?;
            hear(shared, zones, id, entry.list().get(1).map(Value::list).unwrap_or_default(), now);
            *after = Some(id.to_owned());
        }
        if after.is_none() {
            *after = Some(from);
        }
        if entries.len() < READ_MAX {
            break;
        }
    }
    Ok(())
}

fn hear(shared: &FleetShared, zones: &[Arc<SharedSessions>], id: &str, fields: &[Value], now_ms: i64) {
    let field = |name: &[u8]| pairs(fields).find(|(known, _)| *known == name).map(|(_, value)| value);
    let (Some(edge), Some(zone), Some(text)) = (field(b"e"), field(b"z"), field(b"s")) else { return };
    if edge == shared.settings.edge.as_bytes() {
        return;
    }
    let Some(zone) = zones.iter().find(|known| known.name.as_bytes() == zone) else { return };
    let told_ms = id.split('-').next().and_then(|ms| ms.parse::<i64>().ok()).unwrap_or(now_ms);
    let ago = Duration::from_millis(u64::try_from(now_ms - told_ms).unwrap_or(0));
    read(text).for_each(|word| zone.take(&word, ago));
}

/// The id that follows an id of a stream.
fn next_id(id: &str) -> Option<String> {
    let (ms, number) = id.split_once('-')?;
    Some(format!("{}-{}", ms.parse::<u64>().ok()?, number.parse::<u64>().ok()?.checked_add(1)?))
}

/// One session a line: the key in hexadecimal digits, and the peer.
fn written(words: &[SessionWord]) -> String {
    let line = |word: &SessionWord| {
        let key: String = word.key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{key} {}\n", word.peer)
    };
    words.iter().map(line).collect()
}

/// The sessions of a text; lines that are none are left out.
fn read(text: &[u8]) -> impl Iterator<Item = SessionWord> {
    text.split(|byte| *byte == b'\n').take(ENTRY_MAX).filter_map(|line| {
        let (key, peer) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        if key.len() != 32 || peer.is_empty() || peer.len() > PEER_BYTES_MAX {
            return None;
        }
        let key = u128::from_str_radix(key, 16).ok()?.to_be_bytes();
        Some(SessionWord { key, peer: peer.into() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_written_and_read() {
        let words = [1, 0xab].map(|byte| SessionWord { key: [byte; 16], peer: format!("10.0.0.1:{byte}").into() });
        assert_eq!(read(written(&words).as_bytes()).collect::<Vec<_>>(), words);
        let strange = b"\nabc p\n0102030405060708090a0b0c0d0e0f1g p\n0102030405060708090a0b0c0d0e0f10 \n\xff\n+102030405060708090a0b0c0d0e0f10 p";
        assert_eq!(read(strange).count(), 1, "a sign is a digit for the parser, and does no harm");
    }

    #[test]
    fn ids_of_streams_go_on() {
        assert_eq!(next_id("5-9").as_deref(), Some("5-10"));
        assert_eq!((next_id("5"), next_id("x-1"), next_id("5-18446744073709551615")), (None, None, None));
    }
}
