//! Apache's workers, from the machine-readable page of mod_status.

use super::program::Probe;
use super::ways::{Reading, get, url};

/// Reads `/server-status?auto`, or the path that the user gave.
pub fn read(probe: &Probe) -> Result<Reading, String> {
    let (at, path) = url(&probe.at);
    let page = get(&at, path.as_deref().unwrap_or("/server-status?auto"));
    let page = page.map_err(|why| format!("{why} (mod_status: <Location /server-status> SetHandler server-status)"))?;
    of(&page).ok_or_else(|| format!("http://{at}: no mod_status page: --probe apache=URL, with ?auto"))
}

/// Parses `BusyWorkers: 5` and the scoreboard. A dot in the scoreboard is a slot without a process.
fn of(page: &str) -> Option<Reading> {
    let number = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse::<f64>().ok()
    };
    let (busy, idle) = (number("BusyWorkers")?, number("IdleWorkers")?);
    let board = page.lines().find_map(|line| line.strip_prefix("Scoreboard: ")).unwrap_or_default();
    let of = |kind: char| board.chars().filter(|slot| *slot == kind).count() as f64;
    let named = [("busy", busy), ("idle", idle), ("slots", board.trim().len() as f64), ("keepalive", of('K'))];
    let mut found: Reading = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    found.extend(number("Total Accesses").map(|count| ("accesses".to_owned(), count)));
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_page_for_machines_is_read() {
        let page = "127.0.0.1\nServerVersion: Apache/2.4\nTotal Accesses: 44\nBusyWorkers: 4\nIdleWorkers: 1\nScoreboard: WWKW_...\n";
        let found = of(page).unwrap();
        assert_eq!((found["busy"], found["idle"], found["slots"], found["keepalive"]), (4.0, 1.0, 8.0, 1.0));
        assert_eq!(found["accesses"], 44.0);
        assert_eq!(of("<html>It works</html>"), None);
    }
}
