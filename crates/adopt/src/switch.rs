//! The commands that put weir in nginx's place, and the commands that put nginx back.

use weir_edge::load::ConfOrigin;

use crate::host::{Instance, quoted};
use crate::nginx::Unit;

/// A way to switch, with its way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name, for JSON: `packages`, `unit`, `process`.
    pub name: &'static str,
    /// The commands.
    pub there: Vec<String>,
    /// The commands that undo them.
    pub back: Vec<String>,
}

/// Where the program goes. Under the name nginx, weir takes nginx's flags and paths.
const PROGRAM: &str = "/usr/local/lib/weir/nginx";
/// The name of the drop-in.
const DROP_IN: &str = "weir.conf";
/// The nginx that the package replaces, and the paths that weir shares with it.
const PACKAGED: &str = "/usr/sbin/nginx";
const PREFIX: &str = "/usr/share/nginx/";
const CONF: &str = "/etc/nginx/nginx.conf";

/// All ways that this nginx allows. `program` is the path of this weir, `origin` the files that nginx reads.
pub(crate) fn ways(instance: &Instance, unit: Option<&Unit>, origin: &ConfOrigin, program: &str) -> Vec<Switch> {
    let mut ways = Vec::new();
    // The package takes the place of the whole installation, with its one unit and its one configuration.
    let is_packaged = instance.shown == PACKAGED && instance.flags.prefix.is_none() && origin.file == CONF;
    if is_packaged {
        let version = env!("CARGO_PKG_VERSION");
        let there = vec![format!("apt install ./weir_{version}-1_amd64.deb ./weir-nginx_{version}-1_all.deb")];
        ways.push(Switch { name: "packages", there, back: vec!["apt remove weir-nginx".to_owned()] });
    }
    let command = instance.command();
    // weir's own defaults are Debian's; another nginx has its paths compiled in.
    let mut flags = command.strip_prefix(&instance.shown).unwrap_or_default().to_owned();
    if instance.flags.prefix.is_none() && origin.paths.prefix != PREFIX {
        flags += &format!(" -p {}", quoted(&origin.paths.prefix));
    }
    if instance.flags.conf.is_none() && origin.file != CONF {
        flags += &format!(" -c {}", quoted(&origin.file));
    }
    let install = format!("install -D -m 755 {} {PROGRAM}", quoted(program));
    ways.push(match unit {
        Some(unit) => by_unit(unit, install, &flags),
        None => by_process(instance, install, &command, &flags),
    });
    ways
}

/// weir has an image with the habits of nginx's; the definition of a container is its owner's.
pub(crate) fn by_image(nginx: &str) -> Switch {
    let version = env!("CARGO_PKG_VERSION");
    let again = "# then make the container again: docker compose up -d";
    let there = vec![
        format!("docker load < weir-{version}.oci.tar"),
        format!(
            "# in compose.yml or docker run: image weir:{version} in the place of nginx {nginx}, with the same volumes and ports"
        ),
        "# the image runs as user 101 and listens on 8080; a configuration that listens on 80 needs user: root"
            .to_owned(),
        again.to_owned(),
    ];
    Switch {
        name: "image",
        there,
        back: vec!["# in compose.yml or docker run: the image of nginx again".to_owned(), again.to_owned()],
    }
}

/// A drop-in changes the commands of the unit; the unit's own file stays.
fn by_unit(unit: &Unit, install: String, flags: &str) -> Switch {
    let folder = format!("/etc/systemd/system/{}.d", unit.name);
    let run = format!("{PROGRAM}{}", flags.replace('%', "%%").replace('$', "$$"));
    let lines =
        [format!("ExecStartPre={run} -t -q"), format!("ExecStart={run}"), format!("ExecReload={run} -s reload")];
    let [test, start, reload] = lines.map(|line| quoted(&line));
    let restart = format!("systemctl daemon-reload && systemctl restart {}", unit.name);
    let there = vec![
        install,
        format!("mkdir -p {folder}"),
        // An empty assignment removes the commands of the unit's own file.
        format!(
            "printf '%s\\n' '[Service]' ExecStartPre= {test} ExecStart= {start} ExecReload= {reload} > {folder}/{DROP_IN}"
        ),
        restart.clone(),
    ];
    Switch { name: "unit", there, back: vec![format!("rm {folder}/{DROP_IN}"), restart] }
}

/// Without a unit: nginx frees its addresses and finishes its requests, and weir starts.
fn by_process(instance: &Instance, install: String, nginx: &str, flags: &str) -> Switch {
    let weir = format!("{PROGRAM}{flags}");
    let (mut there, mut back) = (vec![install], vec![format!("{weir} -s quit")]);
    if instance.pid.is_some() {
        there.push(format!("{nginx} -s quit"));
        back.push(nginx.to_owned());
    }
    there.push(weir);
    Switch { name: "process", there, back }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn origin(file: &str, prefix: &str) -> ConfOrigin {
        let mut origin = ConfOrigin { file: file.to_owned(), ..ConfOrigin::default() };
        origin.paths.prefix = prefix.to_owned();
        origin
    }

    #[test]
    fn every_way_has_a_way_back() {
        let mut instance = Instance::installed(Path::new(PACKAGED));
        instance.pid = Some(7);
        instance.flags.globals = Some("daemon on; master_process on;".to_owned());
        let unit = Unit { name: "nginx.service".to_owned(), ..Unit::default() };
        let found = ways(&instance, Some(&unit), &origin(CONF, PREFIX), "/tmp/weir");
        assert_eq!(found.iter().map(|way| way.name).collect::<Vec<_>>(), ["packages", "unit"]);
        assert!(found.iter().all(|way| !way.back.is_empty()));
        let text = found.iter().flat_map(|way| way.there.clone()).collect::<Vec<_>>().join("\n");
        let line = r"'ExecStart=/usr/local/lib/weir/nginx -g '\''daemon on; master_process on;'\'''";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn another_nginx_has_its_own_paths() {
        let found =
            ways(&Instance::installed(Path::new("/opt/nginx")), None, &origin("/opt/n.conf", "/opt/"), "/tmp/weir");
        let there: Vec<&str> = found.iter().flat_map(|way| &way.there).map(String::as_str).collect();
        let start = "/usr/local/lib/weir/nginx -p /opt/ -c /opt/n.conf";
        assert_eq!(there, ["install -D -m 755 /tmp/weir /usr/local/lib/weir/nginx", start]);
    }
}
