//! The limits of login sessions: limits.conf(5). `pam_limits` applies them to logins only.

use std::fs;
use std::path::Path;

/// One line of limits.conf or of a file in limits.d.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PamLimit {
    /// The path of the file on the examined machine.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// A user, `@group`, or `*`.
    pub domain: String,
    /// `soft`, `hard` or `-`.
    pub kind: String,
    /// `nofile` or `nproc`.
    pub item: String,
    /// The value as written.
    pub value: String,
}

/// Most lines that are kept from all files.
const LINES_MAX: usize = 1000;

/// The `nofile` and `nproc` lines, in the order in which pam_limits reads them.
pub fn pam_limits_under(root: &Path) -> Vec<PamLimit> {
    let mut names = vec!["etc/security/limits.conf".to_owned()];
    let directory = fs::read_dir(root.join("etc/security/limits.d")).into_iter().flatten().flatten();
    let mut more: Vec<String> = directory
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".conf"))
        .map(|name| format!("etc/security/limits.d/{name}"))
        .collect();
    more.sort();
    names.extend(more);
    let mut limits = Vec::new();
    for name in names {
        let text = fs::read_to_string(root.join(&name)).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_ascii_whitespace().collect();
            if let [domain, kind, item @ ("nofile" | "nproc"), value] = words.as_slice()
                && limits.len() < LINES_MAX
            {
                let [domain, kind, item, value] = [domain, kind, item, value].map(|word| (*word).to_owned());
                limits.push(PamLimit { file: format!("/{name}"), line: index + 1, domain, kind, item, value });
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn lines_are_read_in_order() {
        let root = tree::made_up(&[
            ("etc/security/limits.conf", "# *  soft nofile 1\nwww-data soft nofile 65535 # why\n* hard core 0\n"),
            ("etc/security/limits.d/b.conf", "* - nproc 8192\n"),
            ("etc/security/limits.d/a.conf", "@web hard nofile 1\n"),
            ("etc/security/limits.d/c.txt", "* - nofile 3\n"),
        ]);
        let limits = pam_limits_under(root.path());
        let shown: Vec<_> = limits.iter().map(|l| format!("{}:{} {} {}", l.file, l.line, l.domain, l.value)).collect();
        assert_eq!(
            shown,
            [
                "/etc/security/limits.conf:2 www-data 65535",
                "/etc/security/limits.d/a.conf:1 @web 1",
                "/etc/security/limits.d/b.conf:1 * 8192",
            ]
        );
        assert_eq!(pam_limits_under(Path::new("/nowhere")), []);
    }
}
