//! Pools of worker processes of application servers, as their own files configure them: PHP-FPM's and uWSGI's.

use std::fs;
use std::path::{Path, PathBuf};

/// A pool of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// `PHP-FPM` or `uWSGI`.
    pub program: &'static str,
    /// The setting that limits its workers.
    pub setting: &'static str,
    /// Where it listens: `unix:PATH`, or `HOST:PORT`, with an empty host for all addresses.
    pub listen: String,
    /// Requests that it answers at the same time.
    pub workers: u64,
    /// The path of the file on the examined machine.
    pub file: String,
}

/// Most files that are read, and most bytes of each.
const FILES_MAX: usize = 64;
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Directories in which distributions and images keep the files: the parts of a path (`*` is any name), and the ending.
const PHP_FPM: [(&[&str], &str); 3] = [
    (&["etc", "php", "*", "fpm", "pool.d"], ".conf"),
    (&["etc", "php-fpm.d"], ".conf"),
    (&["usr", "local", "etc", "php-fpm.d"], ".conf"),
];
const UWSGI: [(&[&str], &str); 3] = [
    (&["etc", "uwsgi", "apps-enabled"], ".ini"),
    (&["etc", "uwsgi", "vassals"], ".ini"),
    (&["etc", "uwsgi.d"], ".ini"),
];

/// The pools of the machine whose files are below `root`.
pub fn pools_under(root: &Path) -> Vec<Pool> {
    let mut pools = Vec::new();
    for file in files(root, &PHP_FPM) {
        pools.extend(php_fpm(&read(&file)).into_iter().map(|pool| Pool { file: shown(root, &file), ..pool }));
    }
    for file in files(root, &UWSGI) {
        pools.extend(uwsgi(&read(&file)).map(|pool| Pool { file: shown(root, &file), ..pool }));
    }
    pools
}

fn files(root: &Path, places: &[(&[&str], &str)]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (parts, ending) in places {
        let mut directories = vec![root.to_path_buf()];
        for part in *parts {
            directories = match *part {
                "*" => directories.iter().flat_map(|directory| entries(directory)).collect(),
                part => directories.iter().map(|directory| directory.join(part)).collect(),
            };
        }
        let found = directories.iter().flat_map(|directory| entries(directory));
        files.extend(found.filter(|file| file.to_string_lossy().ends_with(ending)));
    }
    files.truncate(FILES_MAX);
    files
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

fn read(file: &Path) -> String {
    match fs::metadata(file) {
        Ok(known) if known.is_file() && known.len() <= FILE_BYTES_MAX => fs::read_to_string(file).unwrap_or_default(),
        _ => String::new(),
    }
}

fn shown(root: &Path, file: &Path) -> String {
    format!("/{}", file.strip_prefix(root).unwrap_or(file).display())
}

/// The statements of a file in INI form: the section, the name and the value of each.
fn statements(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut section = "";
    text.lines().filter_map(move |line| {
        let line = line.split(';').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            return None;
        }
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        Some((section, name.trim(), value.trim().trim_matches('"')))
    })
}

fn php_fpm(text: &str) -> Vec<Pool> {
    let mut pools: Vec<(&str, Pool)> = Vec::new();
    for (section, name, value) in statements(text) {
        if !pools.iter().any(|(known, _)| *known == section) {
            let pool = Pool { program: "PHP-FPM", setting: "pm.max_children", ..Pool::default() };
            pools.push((section, pool));
        }
        let Some((_, pool)) = pools.iter_mut().find(|(known, _)| *known == section) else { continue };
        match name {
            "listen" => pool.listen = address(value),
            "pm.max_children" => pool.workers = value.parse().unwrap_or_default(),
            _ => {}
        }
    }
    pools.into_iter().map(|(_, pool)| pool).filter(is_known).collect()
}

fn uwsgi(text: &str) -> Option<Pool> {
    let mut pool = Pool { program: "uWSGI", setting: "processes", ..Pool::default() };
    let (mut processes, mut threads) = (1, 1);
    for (_, name, value) in statements(text) {
        match name {
            "socket" | "uwsgi-socket" => pool.listen = address(value),
            "processes" | "workers" => processes = value.parse().unwrap_or_default(),
            "threads" => threads = value.parse::<u64>().unwrap_or(1).max(1),
            _ => {}
        }
    }
    pool.workers = processes * threads;
    Some(pool).filter(is_known)
}

fn is_known(pool: &Pool) -> bool {
    !pool.listen.is_empty() && pool.workers > 0
}

/// An address as nginx writes it.
fn address(text: &str) -> String {
    if text.starts_with('/') {
        return format!("unix:{text}");
    }
    match text.parse::<u16>() {
        Ok(port) => format!(":{port}"),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn pools_are_read_from_the_places_of_distributions() {
        let root = tree::made_up(&[
            (
                "etc/php/8.2/fpm/pool.d/www.conf",
                "; a comment\n[www]\nuser = www-data\nlisten = /run/php/php8.2-fpm.sock ; here\npm = dynamic\n\
                 pm.max_children = 5\n[shop]\nlisten = 127.0.0.1:9000\npm.max_children = 40\n[half]\nlisten = 9001\n",
            ),
            ("usr/local/etc/php-fpm.d/zz.conf", "[www]\nlisten = 9002\npm.max_children = 7\n"),
            ("etc/php/8.2/fpm/pool.d/old.conf.bak", "[old]\nlisten = 9003\npm.max_children = 7\n"),
            (
                "etc/uwsgi/apps-enabled/app.ini",
                "[uwsgi]\nsocket = \"/run/app.sock\"\nworkers = 4\nthreads = 2\n#processes = 9\n",
            ),
            ("etc/uwsgi.d/plain.ini", "[uwsgi]\nhttp = :80\n"),
        ]);
        let pools = pools_under(root.path());
        let shown: Vec<_> =
            pools.iter().map(|pool| format!("{} {} {}", pool.program, pool.listen, pool.workers)).collect();
        assert_eq!(
            shown,
            [
                "PHP-FPM unix:/run/php/php8.2-fpm.sock 5",
                "PHP-FPM 127.0.0.1:9000 40",
                "PHP-FPM :9002 7",
                "uWSGI unix:/run/app.sock 8",
            ]
        );
        assert_eq!(pools.first().map(|pool| pool.file.as_str()), Some("/etc/php/8.2/fpm/pool.d/www.conf"));
    }
}
