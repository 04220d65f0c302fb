//! The systemd unit of a process, and the limit on open files in its unit files.

use std::fs;
use std::path::Path;

use super::running::Process;

/// A unit of systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// `nginx.service`.
    pub name: String,
    /// `LimitNOFILE=` in force, with the file that sets it; `None`: systemd's default.
    pub limit: Option<(String, String)>,
    /// True if a file of the unit was found.
    pub is_known: bool,
}

/// Directories of unit files, the strongest first (systemd.unit(5)).
const DIRECTORIES: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

/// Most drop-in files of one unit that are read.
const DROP_INS_MAX: usize = 100;

/// The name of the service of systemd in which a process runs, from its control group: `nginx.service`.
pub fn service_under(root: &Path, pid: u32) -> Option<String> {
    let groups = fs::read_to_string(root.join("proc").join(pid.to_string()).join("cgroup")).ok()?;
    // Use systemd's own hierarchy, or the only one.
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.strip_prefix("name=systemd:").or_else(|| rest.strip_prefix(':')).filter(|path| path.contains(".service"))
    })?;
    path.split('/').rev().find(|part| part.ends_with(".service")).map(str::to_owned)
}

/// The unit of a process; `None` if it runs outside of a service.
pub fn unit_under(root: &Path, process: &Process) -> Option<Unit> {
    let name = service_under(root, process.id)?;
    let mut files: Vec<String> = Vec::new();
    // Only the first unit file found counts, then every drop-in, by name.
    let main = DIRECTORIES.iter().map(|directory| format!("{directory}/{name}"));
    files.extend(main.filter(|file| root.join(file).is_file()).take(1));
    let mut drop_ins: Vec<(String, String)> = Vec::new();
    for directory in DIRECTORIES {
        let below = format!("{directory}/{name}.d");
        let entries = fs::read_dir(root.join(&below)).into_iter().flatten().flatten().take(DROP_INS_MAX);
        for file in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            if file.ends_with(".conf") && !drop_ins.iter().any(|(name, _)| *name == file) {
                let path = format!("{below}/{file}");
                drop_ins.push((file, path));
            }
        }
    }
    drop_ins.sort();
    files.extend(drop_ins.into_iter().map(|(_, path)| path));
    let mut unit = Unit { name, limit: None, is_known: !files.is_empty() };
    for file in files {
        let text = fs::read_to_string(root.join(&file)).unwrap_or_default();
        for value in text.lines().filter_map(|line| line.trim().strip_prefix("LimitNOFILE=")) {
            unit.limit = (!value.is_empty()).then(|| (value.trim().to_owned(), format!("/{file}")));
        }
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(files: &[(&str, &str)]) -> Option<Unit> {
        let root = tree::made_up(files);
        unit_under(root.path(), &Process { id: 7, ..Process::default() })
    }

    const GROUP: (&str, &str) = ("proc/7/cgroup", "9:memory:/x\n1:name=systemd:/system.slice/nginx.service\n0::/\n");

    #[test]
    fn drop_ins_win_over_the_unit() {
        let unit = ("lib/systemd/system/nginx.service", "[Service]\nLimitNOFILE=1\n");
        let limit = |files: &[(&str, &str)]| found(files).and_then(|unit| unit.limit);
        assert_eq!(limit(&[GROUP, unit]), Some(("1".to_owned(), "/lib/systemd/system/nginx.service".to_owned())));
        let drop_in = ("etc/systemd/system/nginx.service.d/limits.conf", "[Service]\nLimitNOFILE=65535:65535\n");
        let expected = "/etc/systemd/system/nginx.service.d/limits.conf".to_owned();
        assert_eq!(limit(&[GROUP, unit, drop_in]), Some(("65535:65535".to_owned(), expected)));
    }

    #[test]
    fn outside_of_a_service_there_is_no_unit() {
        assert_eq!(found(&[("proc/7/cgroup", "0::/user.slice/session-1.scope\n")]), None);
        assert_eq!(found(&[]), None);
        let bare = found(&[("proc/7/cgroup", "0::/system.slice/a.service\n")]);
        assert_eq!(bare, Some(Unit { name: "a.service".to_owned(), limit: None, is_known: false }));
    }
}
