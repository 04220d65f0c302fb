//! Evidence from inside PHP-FPM, MariaDB, MySQL and Redis: the script, the query or the command that takes the time.

use crate::metric::digits;
use crate::said::{Said, say};
use crate::watch::probe::mysql::{BETWEEN, LOCK, QUERY};
use crate::watch::probe::php_fpm::{PLACE, REQUEST, SCRIPT};
use crate::watch::probe::redis::COMMAND;
use crate::why::rule::percent;
use crate::why::signals::{ProgramFigures, ProgramText};

/// Least share of the time that is worth a sentence. With less, no single query is the cause.
const WORTH: f64 = 0.2;
/// From this share of Redis's time on, one command is the cause: Redis runs one at a time.
const HOLDS: f64 = 0.5;
/// From this many rows read for each row sent on, an index is missing: a query with one reads about the rows that it sends, and a join a
/// few more.
const ROWS_PER_ROW: f64 = 50.0;
/// Commands that read all keys or all of a value.
const READS_ALL: [&str; 9] = ["lrange", "smembers", "hgetall", "zrange", "sort", "sunion", "sinter", "sdiff", "hvals"];
/// Commands that run a script.
const SCRIPTS: [&str; 5] = ["eval", "evalsha", "fcall", "eval_ro", "fcall_ro"];
/// A call that takes this long holds back all others, ms: a usual command takes some µs.
const LONG_MS: f64 = 1.0;

fn number(part: &ProgramText, at: usize) -> f64 {
    part.numbers.get(at).copied().unwrap_or(0.0)
}

/// The sum of the first numbers of a group.
fn whole(parts: &[ProgramText]) -> f64 {
    parts.iter().map(|part| number(part, 0)).sum()
}

/// The command that takes most of Redis's time.
pub struct SlowCommand {
    /// Its name, in lower case.
    name: String,
    /// Its share of the time, 0 to 1.
    pub share: f64,
    /// The figures in a sentence.
    pub line: Said,
    ms: f64,
}

/// The command of Redis with most time, if it is worth a sentence.
pub fn command(told: &ProgramFigures) -> Option<SlowCommand> {
    let top = told.totals.get(COMMAND)?.first()?;
    let (usec, calls) = (number(top, 0), number(top, 1).max(1.0));
    // Not a share of all commands: those that a script calls count twice.
    let share = (usec / 1e6 / told.seconds.max(1e-9)).min(1.0);
    let ms = usec / 1000.0 / calls;
    let upper = top.text.to_uppercase();
    let line = match top.most {
        Some(most) => {
            say!(COMMAND_TOOK_AT_MOST, upper, percent(share), digits(calls), digits(ms), digits(most / 1000.0))
        }
        None => say!(COMMAND_TOOK, upper, percent(share), digits(calls), digits(ms)),
    };
    (share >= WORTH).then_some(SlowCommand { name: top.text.clone(), share, line, ms })
}

impl SlowCommand {
    /// The remedy for a command that is slow itself. `None`: its calls are short, and there are many.
    pub fn remedy(&self, told: &ProgramFigures) -> Option<Said> {
        let name = self.name.as_str();
        if self.ms < LONG_MS || self.share < HOLDS {
            return None;
        }
        Some(match name {
            "keys" => say!(SCAN_INSTEAD_OF_KEYS, digits(told.most("keys").unwrap_or(0.0))),
            _ if SCRIPTS.contains(&name) => say!(SHORTER_SCRIPT),
            _ if READS_ALL.contains(&name) => say!(READ_LESS_AT_ONCE, name.to_uppercase()),
            _ => say!(CHEAPER_COMMAND, name.to_uppercase()),
        })
    }
}

/// Whether one command of Redis takes so much of its time that others wait for it.
pub fn is_held(told: &ProgramFigures) -> bool {
    command(told).is_some_and(|command| command.share >= HOLDS && command.ms >= LONG_MS)
}

/// The query that takes most of a database's time: a sentence, and the remedy if it reads many rows for each that it sends.
pub fn query(told: &ProgramFigures) -> Option<(Said, Option<Said>)> {
    if let Some(all) = told.totals.get(QUERY).filter(|all| whole(all) > 0.0) {
        let top = all.first()?;
        let share = number(top, 0) / whole(all);
        if share < WORTH {
            return None;
        }
        let (count, examined, sent) = (number(top, 1).max(1.0), number(top, 2), number(top, 3));
        let ms = digits(number(top, 0) / 1000.0 / count);
        let per_row = examined / sent.max(1.0);
        if per_row < ROWS_PER_ROW {
            return Some((say!(QUERY_TOOK, &top.text, percent(share), digits(count), ms), None));
        }
        let line = say!(QUERY_TOOK_ROWS, &top.text, percent(share), digits(count), ms, digits(per_row));
        return Some((line, Some(say!(INDEX_FOR_THE_QUERY, digits(per_row)))));
    }
    let all = told.seen.get(QUERY)?;
    let top = all.first()?;
    let share = number(top, 0) / whole(all).max(1e-9);
    let line = say!(QUERY_SEEN, &top.text, percent(share), digits(whole(all)));
    // Without the times of queries, the database still counts the rows that it reads one after the other.
    let scanned = told.rate("scanned") / told.rate("scans").max(1e-9);
    let remedy = (told.rate("scans") > 0.0 && scanned >= ROWS_PER_ROW).then(|| say!(INDEX_FOR_SCANS, digits(scanned)));
    (share >= WORTH).then_some((line, remedy))
}

/// The rows that most waits are for: the table, the statement of the holder and the statement that waits.
pub fn lock(told: &ProgramFigures) -> Option<Said> {
    let all = told.seen.get(LOCK)?;
    let top = all.first()?;
    let mut parts = top.text.split(BETWEEN);
    let (table, holder, waiter) = (parts.next()?, parts.next()?, parts.next()?);
    let count = digits(whole(all));
    // A transaction that sends no statement at the moment holds its rows.
    Some(match holder {
        "NULL" | "" => say!(ROWS_HELD_IDLE, table, count, waiter),
        _ => say!(ROWS_HELD_BY, table, count, waiter, holder),
    })
}

/// The script that holds most workers of PHP-FPM, and the place at which its slow log found most.
pub fn script(told: &ProgramFigures) -> Option<(Said, Said)> {
    let all = told.seen.get(SCRIPT)?;
    let top = all.first()?;
    let share = number(top, 0) / whole(all).max(1e-9);
    if share < WORTH {
        return None;
    }
    let request = told.seen.get(REQUEST).and_then(|all| all.first()).map_or("", |part| part.text.as_str());
    let most = digits(top.most.unwrap_or(0.0) / 1000.0);
    let line = say!(SCRIPT_HOLDS, &top.text, percent(share), digits(number(top, 0)), most, request);
    let place = told.totals.get(PLACE).and_then(|all| all.first());
    Some((line, place.map_or_else(Said::default, |place| say!(SLOW_LOG_PLACE, &place.text, digits(number(place, 0))))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn told(kind: &str, totals: &[(&str, &str, &[f64])], seen: &[(&str, &str, f64)]) -> ProgramFigures {
        let part =
            |text: &str, numbers: &[f64]| ProgramText { text: text.to_owned(), numbers: numbers.to_vec(), most: None };
        let mut found = ProgramFigures { kind: kind.to_owned(), seconds: 10.0, ..ProgramFigures::default() };
        totals.iter().for_each(|(group, text, numbers)| {
            found.totals.entry((*group).to_owned()).or_default().push(part(text, numbers));
        });
        seen.iter().for_each(|(group, text, mean)| {
            found.seen.entry((*group).to_owned()).or_default().push(part(text, &[*mean]));
        });
        found
    }

    #[test]
    fn a_slow_command_has_a_remedy_and_many_short_ones_have_not() {
        let mut redis =
            told("redis", &[(COMMAND, "keys", &[9_200_000.0, 1150.0]), (COMMAND, "get", &[1000.0, 90.0])], &[]);
        redis.level.insert("keys".into(), (100_000.0, 100_000.0));
        let slow = command(&redis).unwrap();
        assert_eq!(slow.line, "KEYS took 92 % of Redis's time: 1150 calls, 8.00 ms each");
        assert!(
            slow.remedy(&redis).unwrap().starts_with("use SCAN, or a set of your own, instead of KEYS"),
            "{:?}",
            slow.remedy(&redis)
        );
        assert!(is_held(&redis));
        let short = told("redis", &[(COMMAND, "get", &[9_200_000.0, 4_000_000.0])], &[]);
        assert!(command(&short).unwrap().remedy(&short).is_none() && !is_held(&short));
        let script = told("redis", &[(COMMAND, "eval", &[9_200_000.0, 400.0])], &[]);
        assert!(command(&script).unwrap().remedy(&script).unwrap().contains("script"));
        let idle = told("redis", &[(COMMAND, "keys", &[92_000.0, 12.0])], &[]);
        assert!(command(&idle).is_none());
    }

    #[test]
    fn a_query_that_reads_many_rows_needs_an_index() {
        let scan: &[f64] = &[7_100_000.0, 1000.0, 5_000_000.0, 1000.0, 1000.0];
        let other: &[f64] = &[2_900_000.0, 1000.0, 1000.0, 1000.0, 0.0];
        let text = "SELECT … FROM wp_options WHERE autoload = ?";
        let (line, remedy) = query(&told("mysql", &[(QUERY, text, scan), (QUERY, "SELECT ?", other)], &[])).unwrap();
        assert_eq!(
            line,
            "SELECT … FROM wp_options WHERE autoload = ? took 71 % of the time of all queries: 1000 times, 7.10 ms each; it read 5000 rows for each row that it sent"
        );
        assert!(remedy.unwrap().contains("index"));
        let (_, remedy) = query(&told("mysql", &[(QUERY, "SELECT ?", other)], &[])).unwrap();
        assert_eq!(remedy, None);
        // Without the times of queries.
        let mut seen = told("mysql", &[], &[(QUERY, text, 3.0), (QUERY, "SELECT ?", 1.0)]);
        seen.grew = [("scanned".to_owned(), 50_000.0), ("scans".to_owned(), 100.0)].into();
        let (line, remedy) = query(&seen).unwrap();
        assert!(line.contains("75 % of the 4.00 running statements") && remedy.unwrap().contains("500 rows"), "{line}");
    }

    #[test]
    fn the_holder_of_rows_and_the_script_of_workers_are_named() {
        let text = |holder: &str| format!("shop.stock\u{1f}{holder}\u{1f}UPDATE stock SET n = n - ?");
        let held = |holder: &str| lock(&told("mysql", &[], &[(LOCK, &text(holder), 6.0)])).unwrap();
        assert!(held("SELECT SLEEP(?)").contains("the holder runs SELECT SLEEP(?)"), "{}", held("SELECT SLEEP(?)"));
        assert!(held("NULL").contains("runs no statement"), "{}", held("NULL"));
        let fpm = told(
            "php-fpm",
            &[(PLACE, "usleep() /srv/x.php:3", &[40.0])],
            &[(SCRIPT, "/srv/x.php", 1.9), (SCRIPT, "/srv/y.php", 0.1), (REQUEST, "GET /x.php", 1.9)],
        );
        let (line, place) = script(&fpm).unwrap();
        assert!(line.starts_with("/srv/x.php holds 95 % of the busy workers"), "{line}");
        assert!(place.contains("usleep() /srv/x.php:3"), "{place}");
    }
}
