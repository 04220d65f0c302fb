//! MariaDB and MySQL, through the client that is installed with them. It supports every kind of login, including
//! root's over a Unix socket. Each reading starts a process, which costs some milliseconds of CPU.

use std::process::{Command, Stdio};

use super::program::Probe;
use super::ways::{Reading, url};

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
];

/// Takes a reading. The place is the path of a socket, or `USER:PASSWORD@HOST:PORT`.
pub fn read(probe: &Probe) -> Result<Reading, String> {
    let names: Vec<String> = STATUS.iter().map(|(name, _)| format!("'{name}'")).collect();
    let query = format!(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ({}); SHOW GLOBAL VARIABLES LIKE 'max_connections'",
        names.join(",")
    );
    let (login, place) = probe.at.rsplit_once('@').unwrap_or(("", &probe.at));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut why = String::new();
    for client in ["mariadb", "mysql"] {
        let mut command = Command::new(client);
        command.args(["--no-defaults", "-N", "-B", "--connect-timeout=2"]);
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
        let output = command.arg("-e").arg(&query).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => {
                return of(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| format!("{place}: no status"));
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
                return Err(format!("{place}: {said} (--probe mysql=USER:PASSWORD@HOST:PORT, or its socket's path)"));
            }
            Err(error) => why = format!("{client}: {error} (apt-get install mariadb-client)"),
        }
    }
    Err(why)
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
            });
        }
    }
}
