//! The edge of this machine that `weir why` watches, with the configuration that its process reads.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use weir_adopt::host::{Instance, instances};
use weir_conf::{Files, Tree};
use weir_edge::keeper::beacon;
use weir_lab::why::running::account::{self, SnapshotReader};
use weir_lab::why::running::settings::RunningEdge;
use weir_words::{Said, say};

use super::args::NowArgs;
use crate::doctor::source::{ask_process, flag_of};
use crate::edges::{self, Dashboard};
use crate::files::Disk;
use crate::{edge, flags, texts};

/// Most edges that are named in an error.
const NAMED_MAX: usize = 8;

/// An edge that runs.
struct Candidate {
    pid: u32,
    /// The address of its dashboard, if it is a weir that shows one.
    dashboard: Option<SocketAddr>,
    /// The nginx. `None`: it is a weir.
    nginx: Option<Instance>,
}

impl Candidate {
    fn name(&self) -> String {
        format!("{} {}", if self.nginx.is_some() { "nginx" } else { "weir" }, self.pid)
    }
}

/// The edges of this machine: weirs that show themselves, and master processes of nginx.
fn candidates() -> Vec<Candidate> {
    let weirs = beacon::edges().into_iter();
    let mut all: Vec<Candidate> =
        weirs.map(|edge| Candidate { pid: edge.pid, dashboard: edge.dashboard, nginx: None }).collect();
    for nginx in instances(Path::new("/")) {
        let Some(pid) = nginx.pid else { continue };
        // A weir with the name nginx shows itself as a weir; its server has a title of nginx's.
        let is_weirs = |pid: u32| all.iter().any(|known| known.nginx.is_none() && known.pid == pid);
        if !is_weirs(pid) && !parent_of(pid).is_some_and(is_weirs) {
            all.push(Candidate { pid, dashboard: None, nginx: Some(nginx) });
        }
    }
    all
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The edge that the flags name, or the only one of this machine.
pub(super) fn find(args: &NowArgs) -> Result<RunningEdge, Said> {
    let token = edges::token(args.token.as_deref())?;
    let mut all = candidates();
    let (candidate, dashboard) = match args.edge.as_deref().map(|text| (text, text.parse::<u32>())) {
        Some((_, Ok(pid))) => (of_pid(all, pid)?, None),
        Some((url, Err(_))) => {
            let dashboard = Dashboard::at(url, token.as_deref(), args.insecure);
            let pid = pid_of(&dashboard)?;
            (of_pid(all, pid).map_err(|_| say!(texts::NOW_EDGE_FAR, url, pid))?, Some(dashboard))
        }
        None => {
            let names: Vec<String> = all.iter().take(NAMED_MAX).map(Candidate::name).collect();
            let only = all.pop().filter(|_| all.is_empty());
            let none =
                || if names.is_empty() { say!(texts::NOW_NO_EDGE) } else { say!(texts::NOW_EDGES, names.join(", ")) };
            (only.ok_or_else(none)?, None)
        }
    };
    match &candidate.nginx {
        Some(nginx) => of_nginx(args, candidate.pid, nginx),
        None => of_weir(args, &candidate, dashboard, token.as_deref()),
    }
}

/// The edge that a process belongs to: the process, or a child of it.
fn of_pid(all: Vec<Candidate>, pid: u32) -> Result<Candidate, Said> {
    let parent = parent_of(pid);
    let found = all.into_iter().find(|known| known.pid == pid || Some(known.pid) == parent);
    found.ok_or_else(|| say!(texts::NOW_NO_EDGE_PID, pid))
}

/// The process that answers at a dashboard or an API.
fn pid_of(dashboard: &Dashboard) -> Result<u32, Said> {
    let snapshot = snapshot_of(dashboard)?;
    let pid = snapshot["nginx"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.ok_or_else(|| say!(texts::NOT_DASHBOARD_JSON, &dashboard.url))
}

/// The snapshot of a dashboard, or of a location with `api`.
fn snapshot_of(dashboard: &Dashboard) -> Result<Value, Said> {
    dashboard.fetch("snapshot.json").or_else(|why| dashboard.fetch("weir").map_err(|_| why))
}

fn of_nginx(args: &NowArgs, pid: u32, nginx: &Instance) -> Result<RunningEdge, Said> {
    let build = ask_process(pid);
    let of_build = |name: &str| {
        let arguments = build.iter().flat_map(|build| build.arguments.iter());
        arguments.filter_map(|argument| argument.strip_prefix(name)).map(PathBuf::from).next()
    };
    let built = of_build("--prefix=").unwrap_or_else(|| PathBuf::from("/usr/local/nginx"));
    let prefix = nginx.flags.prefix.as_ref().map_or(built, |prefix| nginx.directory.join(prefix));
    let conf = nginx.flags.conf.clone().map(PathBuf::from).or_else(|| of_build("--conf-path="));
    let conf = prefix.join(conf.unwrap_or_else(|| PathBuf::from("conf/nginx.conf")));
    let root = if nginx.is_elsewhere { PathBuf::from(format!("/proc/{pid}/root")) } else { PathBuf::new() };
    let of_log =
        |given: Option<PathBuf>, usual: &str| Some(below(&root, &prefix.join(given.unwrap_or_else(|| usual.into()))));
    let errors = nginx.flags.error_log.clone().map(PathBuf::from).or_else(|| of_build("--error-log-path="));
    let (conf, tree) = read(args, &root, conf)?;
    Ok(RunningEdge {
        pid,
        is_weir: false,
        program: nginx.shown.clone(),
        conf,
        tree,
        default_logs: (of_log(of_build("--http-log-path="), "logs/access.log"), of_log(errors, "logs/error.log")),
        prefix: below(&root, &prefix),
        ask: None,
        points: Value::Null,
    })
}

fn of_weir(
    args: &NowArgs,
    candidate: &Candidate,
    named: Option<Dashboard>,
    token: Option<&str>,
) -> Result<RunningEdge, Said> {
    let pid = candidate.pid;
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
    let absolute = |path: String| directory.join(path).display().to_string();
    let flags = flags::Flags {
        prefix: flag_of(pid, "-p").map(&absolute),
        file: flag_of(pid, "-c").map(&absolute),
        ..flags::Flags::default()
    };
    let origin = edge::origin(&flags);
    let (conf, tree) = read(args, Path::new(""), PathBuf::from(&origin.file))?;
    let shown =
        candidate.dashboard.map(|address| Dashboard::at(&edges::near(address).to_string(), token, args.insecure));
    let of_file = || {
        let (address, path) = account::place_of(&tree, "api")?;
        Some(Dashboard::at(&format!("{address}{path}"), token, args.insecure))
    };
    let dashboard = named.or(shown).or_else(of_file);
    let points = dashboard.as_ref().and_then(|dashboard| dashboard.fetch("doc.json").ok());
    let ask =
        dashboard.map(|dashboard| -> SnapshotReader { Arc::new(move || Ok(snapshot_of(&dashboard)?.to_string())) });
    Ok(RunningEdge {
        pid,
        is_weir: true,
        program: "weir".to_owned(),
        conf,
        tree,
        default_logs: (origin.paths.access_log.clone().map(PathBuf::from), Some(PathBuf::from(&origin.error_log))),
        prefix: PathBuf::from(&origin.paths.prefix),
        ask,
        points: points.map_or(Value::Null, |mut document| document["past"].take()),
    })
}

/// The file of the flags, or that of the process, with its tree. The error names the file.
fn read(args: &NowArgs, root: &Path, conf: PathBuf) -> Result<(PathBuf, Tree), Said> {
    let (root, conf) = match &args.conf {
        Some(own) => (Path::new(""), own.clone()),
        None => (root, conf),
    };
    let failed = |error: io::Error| say!(texts::NOW_CONF, conf.display().to_string(), error.to_string());
    let full = std::path::absolute(&conf).map_err(failed)?;
    fs::File::open(below(root, &full)).map_err(failed)?;
    let main = full.display().to_string();
    let directory = main.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let files = Rooted { root: root.to_owned() };
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    let (tree, _) = weir_conf::load(&files, &main, &format!("{directory}/"), &opaque);
    Ok((full, tree))
}

fn below(root: &Path, path: &Path) -> PathBuf {
    match root.as_os_str().is_empty() {
        true => path.to_owned(),
        false => root.join(path.strip_prefix("/").unwrap_or(path)),
    }
}

/// The files of a process with another root directory, as in a container.
struct Rooted {
    root: PathBuf,
}

impl Files for Rooted {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        Disk.read(&below(&self.root, Path::new(path)).display().to_string())
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let found = Disk.glob(&below(&self.root, Path::new(pattern)).display().to_string())?;
        let root = self.root.display().to_string();
        Ok(found.into_iter().map(|name| name.strip_prefix(&root).map_or(name.clone(), str::to_owned)).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_of_another_root_is_read_below_it() {
        assert_eq!(
            below(Path::new("/proc/7/root"), Path::new("/etc/nginx/nginx.conf")),
            Path::new("/proc/7/root/etc/nginx/nginx.conf")
        );
        assert_eq!(below(Path::new(""), Path::new("/etc/x")), Path::new("/etc/x"));
        let root = std::env::temp_dir().join(format!("weir-why-root-{}", std::process::id()));
        fs::create_dir_all(root.join("etc/d")).unwrap();
        fs::write(root.join("etc/n.conf"), "include /etc/d/*.conf;").unwrap();
        fs::write(root.join("etc/d/a.conf"), "events { }").unwrap();
        let (tree, problems) = weir_conf::load(&Rooted { root: root.clone() }, "/etc/n.conf", "/etc/", &|_| false);
        assert!(problems.is_empty() && tree.named("events").next().is_some(), "{problems:?}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_process_that_is_no_edge_is_named() {
        assert!(of_pid(Vec::new(), 1).is_err_and(|why| why.contains('1')));
        let weir = |pid| Candidate { pid, dashboard: None, nginx: None };
        assert_eq!(
            of_pid(vec![weir(7), weir(std::process::id())], std::process::id()).map(|one| one.pid),
            Ok(std::process::id())
        );
    }
}
