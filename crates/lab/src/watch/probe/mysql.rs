//! MariaDB and MySQL, through the client that is installed with them. It supports every kind of login, including
//! root's over a Unix socket. Each reading starts a process, which costs some milliseconds of CPU.

use std::process::{Command, Stdio};

use super::detail::{Detail, shown};
use super::program::Probe;
use super::sql::digest;
use super::ways::{Reading, url};
use crate::said::say;

/// The names of the variables, and their names here.
const STATUS: &[(&str, &str)] = &[
    ("Threads_running", "running"),
    ("Threads_connected", "connected"),
    ("Questions", "questions"),
    ("Slow_queries", "slow"),
    ("Innodb_row_lock_waits", "lock_waits"),
    ("Innodb_row_lock_time", "lock_ms"),
    ("Innodb_row_lock_current_waits", "locked"),
    ("Connection_errors_max_connections", "refused"),
    ("Handler_read_rnd_next", "scanned"),
    ("Select_scan", "scans"),
];
/// The group of queries: µs, count, rows read, rows sent and how often without an index, in all; at a moment, the running ones.
pub const QUERY: &str = "query";
/// The group of the states of running queries.
pub const STATE: &str = "state";
/// The group of waits for rows: table, statement of the holder and statement that waits, separated by [`BETWEEN`].
pub const LOCK: &str = "lock";
/// Between the parts of a text of [`LOCK`].
pub const BETWEEN: char = '\u{1f}';
/// Most rows of each table that are read.
const ROWS_MAX: usize = 100;
/// Most characters of a query that are read.
const QUERY_MAX: usize = 1000;

/// Each row begins with a word that says of which statement it is. `/*M! … */` is for MariaDB alone, and MariaDB leaves out
/// `/*!80000 … */`. <https://mariadb.com/kb/en/comment-syntax/>
fn queries() -> String {
    let names: Vec<String> = STATUS.iter().map(|(name, _)| format!("'{name}'")).collect();
    let waits = "information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
        JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id";
    let lock = |table: &str, holder: &str, waiter: &str| {
        format!("SELECT 'weir-lock', {table}, LEFT({holder}, {QUERY_MAX}), LEFT({waiter}, {QUERY_MAX}) FROM")
    };
    [
        format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(",")),
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('max_connections', 'performance_schema')".to_owned(),
        format!(
            "SELECT 'weir-run', STATE, LEFT(INFO, {QUERY_MAX}) FROM information_schema.PROCESSLIST \
            WHERE COMMAND IN ('Query', 'Execute') AND ID <> CONNECTION_ID() LIMIT {ROWS_MAX}"
        ),
        format!("/*M! {} {waits} LIMIT {ROWS_MAX} */", lock("l.lock_table", "b.trx_query", "r.trx_query")),
        format!(
            "/*!80000 {} sys.innodb_lock_waits LIMIT {ROWS_MAX} */",
            lock("locked_table", "blocking_query", "waiting_query")
        ),
        format!(
            "SELECT 'weir-digest', LEFT(DIGEST_TEXT, {QUERY_MAX}), SUM_TIMER_WAIT / 1000000, COUNT_STAR, SUM_ROWS_EXAMINED, SUM_ROWS_SENT, SUM_NO_INDEX_USED \
            FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT IS NOT NULL ORDER BY SUM_TIMER_WAIT DESC LIMIT {ROWS_MAX}"
        ),
    ]
    .join("; ")
}

/// Takes a reading. The place is the path of a socket, or `USER:PASSWORD@HOST:PORT`.
pub fn read(probe: &Probe, detail: &mut Detail) -> Result<Reading, String> {
    let (login, place) = probe.at.rsplit_once('@').unwrap_or(("", &probe.at));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut why = String::new();
    for client in ["mariadb", "mysql"] {
        let mut command = Command::new(client);
        // A statement that this server does not know must not end the others.
        command.args(["--no-defaults", "-N", "-B", "--force", "--connect-timeout=2"]);
        if place.starts_with('/') {
            command.arg(format!("--socket={place}"));
        } else {
            let (address, _) = url(place);
            let (host, port) = address.rsplit_once(':').unwrap_or((&address, "3306"));
            command.args(["--protocol=tcp", "-h", host, "-P", port]);
        }
        command.args(["-u", if user.is_empty() { "root" } else { user }]);
        if !password.is_empty() {
            // Not as an argument: every user may read the arguments of a process.
            command.env("MYSQL_PWD", password);
        }
        match command.arg("-e").arg(queries()).stdin(Stdio::null()).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                if let Some(found) = of(&text) {
                    detailed(&text, detail);
                    return Ok(found);
                }
                let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
                return Err(format!("{place}: {said} (--probe mysql=USER:PASSWORD@HOST:PORT, or its socket's path)"));
            }
            Err(error) => why = format!("{client}: {error} (apt-get install mariadb-client)"),
        }
    }
    Err(why)
}

/// The running queries, the waits for rows, and the times of all queries. The client writes tabs and line ends inside a value as `\t`
/// and `\n`.
fn detailed(text: &str, detail: &mut Detail) {
    let mut has_digests = false;
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match *fields.as_slice() {
            ["performance_schema", value] => has_digests = value == "ON",
            ["weir-run", state, query] => {
                detail.see(STATE, &shown(state));
                detail.see(QUERY, &digest(&unescaped(query)));
            }
            ["weir-lock", table, holder, waiter] => {
                let parts = [shown(&table.replace('`', "")), digest(&unescaped(holder)), digest(&unescaped(waiter))];
                detail.see(LOCK, &parts.join(&BETWEEN.to_string()));
            }
            ["weir-digest", query, ref numbers @ ..] => {
                let numbers: Vec<f64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
                detail.total(QUERY, &digest(&unescaped(query)), &numbers);
            }
            _ => {}
        }
    }
    if !has_digests {
        detail.lack(say!(MYSQL_LACKS_DIGESTS));
    }
}

fn unescaped(value: &str) -> String {
    value.replace("\\n", "\n").replace("\\t", " ")
}

fn of(text: &str) -> Option<Reading> {
    let mut found = Reading::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('\t') else { continue };
        let known = STATUS.iter().find(|(known, _)| *known == name).map(|(_, own)| *own);
        let own = known.or((name == "max_connections").then_some("connected_max"));
        if let (Some(own), Ok(value)) = (own, value.parse::<f64>()) {
            found.insert(own.to_owned(), value);
        }
    }
    // The connection of the reading is itself counted.
    for own in ["running", "connected"] {
        found.entry(own.to_owned()).and_modify(|value| *value = (*value - 1.0).max(0.0));
    }
    (found.len() >= 3).then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn queries_and_waits_are_read_without_their_literals() {
        let text = "performance_schema\tON\nweir-run\tStatistics\tSELECT a FROM t\\n WHERE b = 'secret'\n\
            weir-lock\t`shop`.`stock`\tNULL\tUPDATE stock SET n = n - 1 WHERE id = 42\n\
            weir-digest\tSELECT `a` FROM `t` WHERE `b` = ?\t900\t3\t60000\t2\t3\n";
        let mut detail = Detail::default();
        for _ in 0..2 {
            detail.begin();
            detailed(text, &mut detail);
        }
        detailed(&text.replace("\t900\t3", "\t1900\t5"), &mut detail);
        assert_eq!(
            detail.grew(QUERY),
            [("SELECT `a` FROM `t` WHERE `b` = ?".to_owned(), vec![1000.0, 2.0, 0.0, 0.0, 0.0])]
        );
        assert_eq!(detail.mean(QUERY)[0].0, "SELECT a FROM t WHERE b = ?");
        assert_eq!(detail.mean(LOCK)[0].0, "shop.stock\u{1f}NULL\u{1f}UPDATE stock SET n = n - ? WHERE id = ?");
        assert!(detail.lacks.is_empty(), "{:?}", detail.lacks);
        detailed("performance_schema\tOFF\n", &mut detail);
        assert!(detail.lacks[0].contains("performance_schema = ON"), "{:?}", detail.lacks);
    }

    #[test]
    fn a_status_is_read() {
        let text = "Innodb_row_lock_time\t1200\nQuestions\t77\nThreads_running\t9\nWsrep\toff\nmax_connections\t151\n";
        let found = of(text).unwrap();
        assert_eq!((found["running"], found["lock_ms"], found["connected_max"]), (8.0, 1200.0, 151.0));
        assert_eq!(of("ERROR 1045"), None);
    }

    mod mutate {
        use super::*;
        /// The lines of a client program: finite numbers after the probe's filter, or none.
        #[test]
        fn lines() {
            let seeds = ["Innodb_row_lock_time\t1200\nQuestions\t77\nThreads_running\t9\nmax_connections\t151\n"];
            weir_mutate::mutate(&seeds, &["\t", "\n", "-1", "1e999", "NaN", "Threads_connected", "\0", "é"], |bytes| {
                if let Some(found) = of(&String::from_utf8_lossy(bytes)) {
                    assert!(super::super::super::finite(found.clone()).len() <= STATUS.len() + 1, "{found:?}");
                }
                detailed(&String::from_utf8_lossy(bytes), &mut Detail::default());
            });
        }
    }
}
