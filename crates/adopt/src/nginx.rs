//! Asks an nginx and systemd: `-V`, `-T`, `systemctl show`. Makes of them the files that weir reads in nginx's place.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use weir_doctor::Build;
use weir_edge::load::{ConfOrigin, Dashboard};
use weir_http::hold::paths::Paths;
use weir_swap::side::{self, ask};

use crate::host::Instance;

/// Most lines that are kept of a program's messages.
const LINES_MAX: usize = 40;

/// The output of `-V`.
pub(crate) fn build(instance: &Instance) -> Result<Build, String> {
    side::build(&instance.program, &instance.shown)
}

/// The answer of `nginx -T`: whether nginx accepts its files, their number, and its messages.
pub(crate) struct Test {
    pub(crate) is_accepted: bool,
    pub(crate) files: usize,
    pub(crate) said: Vec<String>,
}

/// Asks `-T` with the flags of the running process.
pub(crate) fn test(instance: &Instance) -> Result<Test, String> {
    let mut command = Command::new(&instance.program);
    command.arg0("nginx").arg("-T").current_dir(&instance.directory);
    let flags = &instance.flags;
    for (flag, value) in [("-p", &flags.prefix), ("-c", &flags.conf), ("-e", &flags.error_log), ("-g", &flags.globals)]
    {
        if let Some(value) = value {
            command.args([flag, value]);
        }
    }
    let output = ask(command)?;
    let dump = String::from_utf8_lossy(&output.stdout);
    let files = dump.lines().filter(|line| line.starts_with("# configuration file ")).count();
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().filter(|line| !line.ends_with("syntax is ok") && !line.ends_with("is successful"));
    Ok(Test { is_accepted: output.status.success(), files, said: said.take(LINES_MAX).map(str::to_owned).collect() })
}

/// A systemd unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) drop_ins: Vec<String>,
    /// `forking`, `notify` and so on.
    pub(crate) kind: String,
}

/// Asks systemd about a unit. `None`: systemd does not answer here.
pub(crate) fn unit(name: &str) -> Option<Unit> {
    let mut command = Command::new("systemctl");
    command.args(["show", "-p", "FragmentPath", "-p", "DropInPaths", "-p", "Type", "--", name]);
    let output = ask(command).ok().filter(|output| output.status.success())?;
    let unit = read_unit(name, &String::from_utf8_lossy(&output.stdout));
    (!unit.file.is_empty()).then_some(unit)
}

fn read_unit(name: &str, text: &str) -> Unit {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().to_owned()
    };
    let drop_ins = value("DropInPaths").split_whitespace().map(str::to_owned).collect();
    Unit { name: name.to_owned(), file: value("FragmentPath"), drop_ins, kind: value("Type") }
}

/// The value of a `configure` argument.
fn argument<'b>(build: &'b Build, name: &str) -> Option<&'b str> {
    build.arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
}

/// The files that this nginx reads, for weir.
pub(crate) fn origin(instance: &Instance, build: &Build, conf: Option<&Path>) -> ConfOrigin {
    let slashed = |mut path: String| {
        if !path.ends_with('/') {
            path.push('/');
        }
        path
    };
    let absolute = |path: &str, below: &Path| below.join(path).display().to_string();
    let prefix = instance.flags.prefix.as_deref().or(argument(build, "--prefix")).unwrap_or("/usr/local/nginx");
    let prefix = slashed(absolute(prefix, &instance.directory));
    let below = |path: &str| absolute(path, Path::new(&prefix));
    let named = instance.flags.conf.as_deref().or(build.conf_path()).unwrap_or("conf/nginx.conf");
    let file = match conf {
        Some(conf) => conf.display().to_string(),
        None => below(named),
    };
    let conf_prefix = slashed(file.rsplit_once('/').map_or("/", |(directory, _)| directory).to_owned());
    let pid = below(argument(build, "--pid-path").unwrap_or("logs/nginx.pid"));
    let error_log = match instance.flags.error_log.as_deref().or(argument(build, "--error-log-path")) {
        Some("stderr") => "stderr".to_owned(),
        path => below(path.unwrap_or("logs/error.log")),
    };
    let access_log = Some(below(argument(build, "--http-log-path").unwrap_or("logs/access.log")));
    ConfOrigin {
        file,
        globals: instance.flags.globals.clone().unwrap_or_default(),
        paths: Paths { prefix, conf_prefix, access_log, temporary: None },
        pid,
        error_log,
        dashboard: Dashboard::default(),
    }
}

/// nginx's optional modules in this binary, by the names of `configure`: linked in, and loadable.
pub(crate) fn modules(build: &Build) -> (Vec<String>, Vec<String>) {
    let (mut linked, mut loadable) = (Vec::new(), Vec::new());
    for argument in &build.arguments {
        let own = argument.strip_prefix("--with-").filter(|name| {
            name.ends_with("_module")
                || name.contains("_module=")
                || name.starts_with("mail")
                || name.starts_with("stream")
        });
        let added = argument.strip_prefix("--add-module=").map(last);
        let dynamic = argument.strip_prefix("--add-dynamic-module=").map(last);
        match (own, added, dynamic) {
            (Some(name), ..) => match name.strip_suffix("=dynamic") {
                Some(name) => loadable.push(name.to_owned()),
                None => linked.push(name.to_owned()),
            },
            (_, Some(name), _) => linked.push(name),
            (_, _, Some(name)) => loadable.push(name),
            (None, None, None) => {}
        }
    }
    (linked, loadable)
}

fn last(path: &str) -> String {
    path.trim_matches('\'').trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

/// The modules in these lists that weir does not have.
pub(crate) fn lacking(names: &[String]) -> Vec<String> {
    let ours = weir_edge::modules::configure_arguments();
    let has = |name: &String| {
        ours.split_whitespace()
            .any(|word| word.strip_prefix("--with-") == Some(name) || word.strip_prefix("--add-module=") == Some(name))
    };
    names.iter().filter(|name| !has(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DEBIAN: &str = "nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf --http-log-path=/var/log/nginx/access.log --error-log-path=stderr --pid-path=/run/nginx.pid --with-http_ssl_module --with-http_geoip_module=dynamic --with-stream=dynamic --add-dynamic-module=/build/modules/http-echo";

    #[test]
    fn files_are_found_as_nginx_finds_them() {
        let build = Build::read(DEBIAN).unwrap();
        let mut instance = Instance::installed(Path::new("/usr/sbin/nginx"));
        let found = origin(&instance, &build, None);
        assert_eq!((found.file.as_str(), found.pid.as_str()), ("/etc/nginx/nginx.conf", "/run/nginx.pid"));
        assert_eq!(
            (found.paths.prefix.as_str(), found.paths.conf_prefix.as_str()),
            ("/usr/share/nginx/", "/etc/nginx/")
        );
        instance.directory = "/srv".into();
        instance.flags.prefix = Some("site".to_owned());
        instance.flags.conf = Some("a/b.conf".to_owned());
        let found = origin(&instance, &build, None);
        assert_eq!((found.file.as_str(), found.paths.conf_prefix.as_str()), ("/srv/site/a/b.conf", "/srv/site/a/"));
    }

    #[test]
    fn modules_are_told_apart() {
        let (linked, loadable) = modules(&Build::read(DEBIAN).unwrap());
        assert_eq!(linked, ["http_ssl_module"]);
        assert_eq!(loadable, ["http_geoip_module", "stream", "http-echo"]);
        assert_eq!(lacking(&linked), [""; 0]);
        assert_eq!(lacking(&loadable), ["http_geoip_module", "http-echo"]);
    }

    #[test]
    fn a_unit_is_read() {
        let unit = read_unit(
            "nginx.service",
            "FragmentPath=/lib/systemd/system/nginx.service\nDropInPaths=/etc/a.conf /etc/b.conf\nType=forking\n",
        );
        assert_eq!(
            (unit.file.as_str(), unit.kind.as_str(), unit.drop_ins.len()),
            ("/lib/systemd/system/nginx.service", "forking", 2)
        );
        assert_eq!(read_unit("x", "").drop_ins.len(), 0);
    }
}
