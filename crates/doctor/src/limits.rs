//! The limit of open files of a running process: its source (`weir doctor --pid PID`), and the files of the host that
//! raise it (`--fix --host`).
//!
//! The place depends on the program that set the limit: systemd for a unit, PAM for a login, the runtime for a container.
//! This module reads through a function and writes nothing; the caller shows the changes, and writes them on demand.

use weir_words::{Said, Text, say, texts};

use crate::facts::Facts;
use crate::mend::Mended;

mod source;

pub use source::{ReadFile, Setter, sentence, worker};

use source::setter;

/// PAM's files for sessions on Debian: logins, and sessions without a terminal such as cron's.
const SESSIONS: [&str; 2] = ["/etc/pam.d/common-session", "/etc/pam.d/common-session-noninteractive"];
/// The line that makes PAM read limits.conf and limits.d.
const PAM_LINE: &str = "session required        pam_limits.so\n";
/// The drop-in; systemd reads drop-ins in the order of their names.
const DROP_IN: &str = "weir-limits.conf";
/// The least limit that is written.
const FILES_MIN: u64 = 65_536;

/// The changes, and the steps that put them into force.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitPlan {
    /// The program that sets the limit.
    pub setter: Setter,
    /// Files with their present and their new content.
    pub files: Vec<Mended>,
    /// Commands for the user, in this order.
    pub commands: Vec<String>,
    /// Sentences about the limit and its source.
    pub notes: Vec<Said>,
}

texts! {
    BY_UNIT:
        "Process {0} may open {1} files. systemd sets this limit for {2}. limits.conf applies to logins and cannot reach it.",
        "프로세스 {0}은(는) 파일을 {1}개까지 열 수 있습니다. 이 한도는 systemd가 {2}에 정합니다. limits.conf는 로그인에만 적용되어 이 서비스에는 적용되지 않습니다.";
    BY_CONTAINER:
        "Process {0} may open {1} files. It runs in a container ({2}), whose runtime sets this limit. No file of this host changes it.",
        "프로세스 {0}은(는) 파일을 {1}개까지 열 수 있습니다. 컨테이너({2})에서 실행되며 한도는 런타임이 정합니다. 이 호스트의 파일로는 바꿀 수 없습니다.";
    BY_LOGIN:
        "Process {0} may open {1} files. It belongs to a session of {2}. PAM sets the limits of a session when it begins, from limits.conf and limits.d.",
        "프로세스 {0}은(는) 파일을 {1}개까지 열 수 있습니다. {2}의 세션에 속합니다. 세션의 한도는 시작할 때 PAM이 limits.conf와 limits.d에서 읽어 정합니다.";
    LATER:
        "{0} sets LimitNOFILE={1}, and systemd reads it after the new drop-in: the doctor raises the value there.",
        "{0}에 LimitNOFILE={1}이 있고 systemd가 새 드롭인보다 나중에 읽습니다. 그래서 그 파일의 값을 올립니다.";
    NR_OPEN:
        "The kernel allows at most {0} (fs.nr_open). systemd and PAM refuse a larger limit, so the doctor raises it too.",
        "커널은 최대 {0}(fs.nr_open)을 허용합니다. systemd와 PAM은 더 큰 한도를 거부하므로 이 값도 올립니다.";
    HOLDS:
        "Max open files of process {0}: {1}, set by {2}. Its connections need {3}: there is nothing to change.",
        "프로세스 {0}의 최대 열린 파일 수: {1}, 설정한 곳: {2}. 연결에는 {3}개가 필요합니다. 바꿀 것이 없습니다.";
    THEN:
        "To put it into force:",
        "적용하려면:";
    NO_PROCESS:
        "--host needs --pid: the process shows its limits and the program that set them",
        "--host에는 --pid가 필요합니다. 한도와 그것을 정한 프로그램은 프로세스에서 알 수 있습니다";
}

/// The changes with which the process may open so many files. `None`: no process was read, or its limit is unknown.
///
/// `user` is the user of the process; `read` returns the content of a file of the host.
pub fn plan(facts: &Facts, user: &str, need: u64, read: &ReadFile<'_>) -> Option<LimitPlan> {
    let worker = worker(facts)?;
    let soft = worker.files?.soft;
    let first = facts.processes.first()?;
    let setter = setter(facts, first.id, user, read);
    let mut plan = LimitPlan { setter, files: Vec::new(), commands: Vec::new(), notes: Vec::new() };
    let tell = |text: Text, who: &str| say!(text, worker.id.to_string(), soft.to_string(), who);
    if soft >= need {
        let by = source::by(facts, None, user, read)?;
        plan.notes.push(say!(HOLDS, worker.id.to_string(), soft.to_string(), by, need.to_string()));
        return Some(plan);
    }
    // A round number with room: the files of logs and of the program itself come on top.
    let need = need.next_power_of_two().max(FILES_MIN);
    match plan.setter.clone() {
        Setter::Unit(unit) => {
            plan.notes.push(tell(BY_UNIT, &unit));
            plan.kernel(need, read);
            plan.unit(facts, &unit, need, read);
        }
        Setter::Container(word) => {
            plan.notes.push(tell(BY_CONTAINER, word));
            plan.commands.push(format!("docker run --ulimit nofile={need}:{need} …"));
            plan.commands.push(format!("# compose.yml: ulimits: {{ nofile: {{ soft: {need}, hard: {need} }} }}"));
        }
        Setter::Login(user) => {
            plan.notes.push(tell(BY_LOGIN, &user));
            plan.kernel(need, read);
            plan.login(&user, need, read);
        }
    }
    Some(plan)
}

impl LimitPlan {
    fn put(&mut self, name: &str, before: Option<Vec<u8>>, after: String) {
        let before = before.unwrap_or_default();
        if before != after.as_bytes() {
            self.files.push(Mended { name: name.to_owned(), before, after: after.into_bytes() });
        }
    }

    fn kernel(&mut self, need: u64, read: &ReadFile<'_>) {
        let most =
            read("/proc/sys/fs/nr_open").and_then(|text| String::from_utf8(text).ok()?.trim().parse::<u64>().ok());
        if let Some(most) = most.filter(|most| *most < need) {
            self.notes.push(say!(NR_OPEN, most.to_string()));
            let name = "/etc/sysctl.d/90-weir-limits.conf";
            self.put(name, read(name), format!("fs.nr_open = {need}\n"));
            self.commands.push("sysctl --system".to_owned());
        }
    }

    fn unit(&mut self, facts: &Facts, unit: &str, need: u64, read: &ReadFile<'_>) {
        let own = format!("/etc/systemd/system/{unit}.d/{DROP_IN}");
        let later = facts.unit.as_ref().and_then(|unit| unit.limit.as_ref()).filter(|(_, file)| {
            let is_drop_in = file.contains(".service.d/") && *file != own;
            is_drop_in && file.rsplit('/').next().is_some_and(|name| name > DROP_IN)
        });
        match later {
            Some((value, file)) => {
                self.notes.push(say!(LATER, file.as_str(), value.as_str()));
                let before = read(file).unwrap_or_default();
                let text = String::from_utf8_lossy(&before).into_owned();
                let lines = text.lines().map(|line| match line.trim().starts_with("LimitNOFILE=") {
                    true => format!("LimitNOFILE={need}\n"),
                    false => format!("{line}\n"),
                });
                self.put(file, Some(before), lines.collect());
            }
            None => self.put(&own, read(&own), format!("[Service]\nLimitNOFILE={need}\n")),
        }
        self.commands.extend([
            "systemctl daemon-reload".to_owned(),
            format!("systemctl restart {unit}"),
            format!("weir doctor --pid $(systemctl show -p MainPID --value {unit})"),
        ]);
    }

    fn login(&mut self, user: &str, need: u64, read: &ReadFile<'_>) {
        let name = "/etc/security/limits.d/90-weir-limits.conf";
        // The user by name: `*` does not apply to root.
        self.put(name, read(name), format!("{user} soft nofile {need}\n{user} hard nofile {need}\n"));
        for file in SESSIONS {
            let Some(before) = read(file) else { continue };
            let text = String::from_utf8_lossy(&before).into_owned();
            let reads = |line: &str| !line.trim_start().starts_with('#') && line.contains("pam_limits.so");
            if !text.lines().any(reads) {
                let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
                self.put(file, Some(before), format!("{text}{end}{PAM_LINE}"));
            }
        }
        self.commands.push(format!("# log in again as {user}, start the program, then: weir doctor --pid PID"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;
    use weir_host::{FileLimit, Process, Unit};

    fn facts(unit: Option<Unit>) -> Facts {
        let files = Some(FileLimit { soft: 1024, hard: 4096 });
        let process = Process { id: 7, command: "node app".to_owned(), files, ..Process::default() };
        Facts { processes: vec![process], unit, ..Facts::default() }
    }

    fn made(unit: Option<Unit>, need: u64, host: &[(&str, &str)]) -> LimitPlan {
        let host: BTreeMap<&str, &str> = host.iter().copied().collect();
        plan(&facts(unit), "app", need, &|name| host.get(name).map(|text| text.as_bytes().to_vec())).unwrap()
    }

    fn files(plan: &LimitPlan) -> Vec<(&str, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        plan.files.iter().map(|file| (file.name.as_str(), text(&file.after))).collect()
    }

    fn unit(name: &str, limit: Option<(&str, &str)>) -> Option<Unit> {
        let limit = limit.map(|(value, file)| (value.to_owned(), file.to_owned()));
        Some(Unit { name: name.to_owned(), limit, is_known: true })
    }

    #[test]
    fn a_unit_gets_a_drop_in_that_counts() {
        let plan = made(unit("app.service", None), 65_536, &[("/proc/sys/fs/nr_open", "1048576\n")]);
        assert_eq!(
            files(&plan),
            [("/etc/systemd/system/app.service.d/weir-limits.conf", "[Service]\nLimitNOFILE=65536\n".to_owned())]
        );
        assert_eq!(plan.commands[..2], ["systemctl daemon-reload", "systemctl restart app.service"]);
        assert!(plan.notes[0].en().contains("limits.conf applies to logins and cannot reach it"));
        // A drop-in that systemd reads later would win.
        let later = "/etc/systemd/system/app.service.d/zz.conf";
        let host = [(later, "[Service]\nLimitNOFILE=2048\nNice=1\n"), ("/proc/sys/fs/nr_open", "1000")];
        let plan = made(unit("app.service", Some(("2048", later))), 65_536, &host);
        assert_eq!(
            files(&plan),
            [
                ("/etc/sysctl.d/90-weir-limits.conf", "fs.nr_open = 65536\n".to_owned()),
                (later, "[Service]\nLimitNOFILE=65536\nNice=1\n".to_owned())
            ]
        );
    }

    #[test]
    fn a_login_gets_limits_d_and_the_line_of_pam_where_it_lacks() {
        let [first, second] = SESSIONS;
        let host =
            [(first, "session required pam_unix.so\n"), (second, "# pam_limits.so\nsession required pam_limits.so\n")];
        for session in [None, unit("user@1000.service", None)] {
            let plan = made(session, 65_536, &host);
            assert_eq!(plan.setter, Setter::Login("app".to_owned()));
            assert_eq!(
                files(&plan),
                [
                    (
                        "/etc/security/limits.d/90-weir-limits.conf",
                        "app soft nofile 65536\napp hard nofile 65536\n".to_owned()
                    ),
                    (first, format!("session required pam_unix.so\n{PAM_LINE}"))
                ]
            );
        }
    }

    #[test]
    fn a_container_and_a_sufficient_limit_change_nothing() {
        let host = [("/proc/7/cgroup", "0::/system.slice/docker-0123.scope\n")];
        let plan = made(unit("docker.service", None), 65_536, &host);
        assert_eq!((plan.setter, plan.files.len()), (Setter::Container("docker"), 0));
        assert_eq!(plan.commands[0], "docker run --ulimit nofile=65536:65536 …");
        let own = unit("app.service", Some(("1024", "/etc/systemd/system/app.service.d/weir-limits.conf")));
        let plan = made(own, 1000, &[]);
        assert_eq!(
            plan.notes[0].en(),
            "Max open files of process 7: 1024, set by LimitNOFILE=1024 in \
             /etc/systemd/system/app.service.d/weir-limits.conf. Its connections need 1000: there is nothing to change."
        );
        let plan = made(None, 1024, &[]);
        assert!(plan.files.is_empty() && plan.commands.is_empty() && plan.notes[0].en().contains("nothing to change"));
        assert!(super::plan(&Facts::default(), "app", 1, &|_| None).is_none());
    }

    #[test]
    fn the_texts_are_whole_in_both_languages() {
        assert_eq!(weir_words::check_texts(ALL), Vec::<String>::new());
    }
}
