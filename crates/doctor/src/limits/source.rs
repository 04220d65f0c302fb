//! The limit of open files of a running process, and the program or the line that set it.

use weir_conf::Tree;
use weir_host::Process;
use weir_words::{Said, say, texts};

use crate::explain::place;
use crate::facts::Facts;
use crate::view::View;

/// Names of control groups of containers.
const CONTAINERS: [&str; 5] = ["docker", "libpod", "kubepods", "containerd", "lxc"];

/// Returns the content of a file of the host.
pub type ReadFile<'r> = dyn Fn(&str) -> Option<Vec<u8>> + 'r;

/// The program that sets the limits of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setter {
    /// systemd, for this unit.
    Unit(String),
    /// The runtime of a container, by the word in its control group.
    Container(&'static str),
    /// PAM, for a login of this user.
    Login(String),
}

texts! {
    OF_FILE:
        "LimitNOFILE={0} in {1}",
        "{1}의 LimitNOFILE={0}";
    OF_DEFAULT:
        "systemd's default for {0}",
        "{0}의 systemd 기본값";
    OF_CONTAINER:
        "the runtime of the container ({0})",
        "컨테이너 런타임({0})";
    OF_PAM:
        "PAM at the login of {0}",
        "{0}의 로그인 때 PAM";
    LIMIT:
        "Max open files of process {0}: {1}, set by {2}",
        "프로세스 {0}의 최대 열린 파일 수: {1}, 설정한 곳: {2}";
    NOT_IN_FORCE:
        "Max open files of process {0}: {1}. {2} is not in force: systemd has not restarted the process since, the process changed its limit itself, or this machine allows no more",
        "프로세스 {0}의 최대 열린 파일 수: {1}. 적용되지 않은 값: {2}. 값을 바꾼 뒤 systemd가 프로세스를 재시작하지 않았거나, 프로세스가 한도를 스스로 바꿨거나, 이 머신이 더 큰 값을 허용하지 않습니다";
    OF_DIRECTIVE:
        "worker_rlimit_nofile in {0}",
        "{0}의 worker_rlimit_nofile";
    OF_LINE:
        "\"{0}\" in {1}, which PAM read at the login of {2}",
        "로그인할 때 PAM이 읽은 {1}의 \"{0}\" (사용자: {2})";
    OF_PARENT:
        "process {0} ({1}), from which it inherits the limit",
        "한도를 물려준 프로세스 {0}({1})";
    OF_ITSELF:
        "the process itself, or prlimit: process {0} ({1}), which started it, may open {2}",
        "프로세스 자신 또는 prlimit. 이 프로세스를 시작한 프로세스 {0}({1})의 한도는 {2}";
    OF_STARTER:
        "the process that started it and has ended since; it runs in no unit of systemd",
        "이 프로세스를 시작하고 먼저 끝난 프로세스. systemd 유닛에서 실행되지 않습니다";
}

/// The sentence about the limit of the examined process, of its worker with the lowest limit if it has workers.
/// `None`: no process was read, or its limit is unknown.
///
/// `tree` is the configuration that the process reads, `user` its user; `read` returns the content of a file of the host.
pub fn sentence(facts: &Facts, tree: Option<&Tree>, user: &str, read: &ReadFile<'_>) -> Option<Said> {
    let worker = worker(facts)?;
    let soft = worker.files?.soft;
    let by = by(facts, tree, user, read)?;
    let is_of_unit = matches!(setter(facts, facts.processes.first()?.id, user, read), Setter::Unit(_));
    let written = facts.unit.as_ref().and_then(|unit| unit.limit.as_ref()).filter(|_| is_of_unit);
    let differs = written.and_then(|(value, _)| number(value)).is_some_and(|value| value != soft);
    let text = if differs && directive(tree, soft).is_none() { NOT_IN_FORCE } else { LIMIT };
    Some(text.with(&[worker.id.to_string().into(), soft.to_string().into(), by]))
}

/// The program or the line that set the limit, as a noun.
pub(super) fn by(facts: &Facts, tree: Option<&Tree>, user: &str, read: &ReadFile<'_>) -> Option<Said> {
    let (first, worker) = (facts.processes.first()?, worker(facts)?);
    let soft = worker.files?.soft;
    if let Some(place) = directive(tree, soft) {
        return Some(say!(OF_DIRECTIVE, place));
    }
    let by = match (setter(facts, first.id, user, read), facts.unit.as_ref().and_then(|unit| unit.limit.as_ref())) {
        (Setter::Unit(_), Some((value, file))) => say!(OF_FILE, value.as_str(), file.as_str()),
        (Setter::Unit(unit), None) => say!(OF_DEFAULT, unit.as_str()),
        (Setter::Container(word), _) => say!(OF_CONTAINER, word),
        (Setter::Login(user), _) => {
            // A worker that has its master's limit has it from there.
            let is_masters = first.files.is_some_and(|files| files.soft == soft);
            of_login(facts, &user, soft, if is_masters { first } else { worker }, read)
        }
    };
    Some(by)
}

/// The source for a process outside of units and containers.
fn of_login(facts: &Facts, user: &str, soft: u64, process: &Process, read: &ReadFile<'_>) -> Said {
    // As pam_limits does it: a line for the user wins over `*`, which does not apply to root. Among equals the last wins.
    let of = |domain: &str| {
        let is_soft = |kind: &str| matches!(kind, "soft" | "-");
        let mut lines = facts.pam_limits.iter().filter(|line| line.item == "nofile" && is_soft(&line.kind));
        lines.rfind(|line| line.domain == domain)
    };
    let line = of(user).or_else(|| of("*").filter(|_| user != "root"));
    if let Some(line) = line.filter(|line| number(&line.value) == Some(soft)) {
        let words = format!("{} {} nofile {}", line.domain, line.kind, line.value);
        return say!(OF_LINE, words, format!("{}:{}", line.file, line.line), user);
    }
    let text = |name: String| read(&name).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let parent = process.parent;
    let theirs = text(format!("/proc/{parent}/limits")).and_then(|limits| {
        let rest = limits.lines().find_map(|line| line.strip_prefix("Max open files").map(str::to_owned))?;
        number(rest.split_whitespace().next()?)
    });
    let name = text(format!("/proc/{parent}/comm")).unwrap_or_default();
    let groups = text(format!("/proc/{}/cgroup", process.id)).unwrap_or_default();
    match theirs {
        Some(theirs) if theirs == soft => say!(OF_PARENT, parent.to_string(), name),
        // Process 1 adopts a process whose parent has ended, so its limit says nothing.
        Some(theirs) if parent > 1 => say!(OF_ITSELF, parent.to_string(), name, theirs.to_string()),
        _ if groups.contains("/session-") || groups.contains("/user@") => say!(OF_PAM, user),
        _ => say!(OF_STARTER),
    }
}

/// The process with the lowest limit. nginx's master serves no clients.
pub fn worker(facts: &Facts) -> Option<&Process> {
    let workers = facts.processes.iter().filter(|process| !process.command.contains("master process"));
    workers.filter(|process| process.files.is_some()).min_by_key(|process| process.files.map(|it| it.soft))
}

pub(super) fn setter(facts: &Facts, pid: u32, user: &str, read: &ReadFile<'_>) -> Setter {
    let groups = read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let groups = String::from_utf8_lossy(&groups);
    // A unit such as docker.service is not the setter of a process in one of its containers.
    let container = CONTAINERS.into_iter().find(|word| {
        groups.lines().any(|line| line.contains(&format!("/{word}-")) || line.contains(&format!("/{word}/")))
    });
    match (container, &facts.unit) {
        (Some(word), _) => Setter::Container(word),
        // `user@1000.service` is the manager of a login.
        (None, Some(unit)) if !unit.name.starts_with("user@") => Setter::Unit(unit.name.clone()),
        _ => Setter::Login(user.to_owned()),
    }
}

/// The place of `worker_rlimit_nofile`, if it is this limit.
fn directive(tree: Option<&Tree>, soft: u64) -> Option<String> {
    let tree = tree?;
    let view = View::new(tree);
    let spot = view.root().get("worker_rlimit_nofile")?;
    (spot.arg(0).parse() == Ok(soft)).then(|| place(tree, spot.at()))
}

/// A limit as systemd, PAM and the kernel write it: `65535`, `65535:524288`, `64K`. `None` for `infinity` and words.
fn number(text: &str) -> Option<u64> {
    let soft = text.split(':').next()?.trim();
    let unit = ["K", "M", "G"].iter().position(|unit| soft.ends_with(unit));
    let digits = soft.trim_end_matches(['K', 'M', 'G']);
    digits.parse::<u64>().ok()?.checked_mul(unit.map_or(Some(1), |at| 1024u64.checked_pow(at as u32 + 1))?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;
    use weir_host::{FileLimit, PamLimit, Unit};

    fn facts(unit: Option<(&str, Option<(&str, &str)>)>) -> Facts {
        let process = |id, parent, command: &str| {
            let files = Some(FileLimit { soft: 1024, hard: 4096 });
            Process { id, parent, command: command.to_owned(), files, ..Process::default() }
        };
        let unit = unit.map(|(name, limit)| {
            let limit = limit.map(|(value, file)| (value.to_owned(), file.to_owned()));
            Unit { name: name.to_owned(), limit, is_known: true }
        });
        let processes = vec![process(7, 5, "nginx: master process nginx"), process(8, 7, "nginx: worker process")];
        Facts { processes, unit, ..Facts::default() }
    }

    fn told(facts: &Facts, conf: &str, host: &[(&str, &str)]) -> Said {
        let host: BTreeMap<&str, &str> = host.iter().copied().collect();
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/n.conf", conf), "/n.conf", "/");
        sentence(facts, Some(&tree), "app", &|name| host.get(name).map(|text| text.as_bytes().to_vec())).unwrap()
    }

    const DROP_IN: &str = "/etc/systemd/system/app.service.d/files.conf";

    #[test]
    fn a_unit_s_limit_has_its_file_or_is_the_default() {
        let said = told(&facts(Some(("app.service", Some(("1K:4096", DROP_IN))))), "", &[]);
        assert_eq!(
            said.en(),
            "Max open files of process 8: 1024, set by LimitNOFILE=1K:4096 in /etc/systemd/system/app.service.d/files.conf"
        );
        let said = told(&facts(Some(("app.service", None))), "", &[]);
        assert!(said.en().ends_with("1024, set by systemd's default for app.service"), "{}", said.en());
        // The file was changed, and the process is still the old one.
        let said = told(&facts(Some(("app.service", Some(("65536", DROP_IN))))), "", &[]);
        assert!(said.en().contains("1024. LimitNOFILE=65536 in /etc/systemd"), "{}", said.en());
        assert!(said.en().contains("is not in force"), "{}", said.en());
        let said = told(&facts(Some(("app.service", Some(("infinity", DROP_IN))))), "", &[]);
        assert!(said.en().contains(", set by LimitNOFILE=infinity"), "{}", said.en());
    }

    #[test]
    fn the_directive_of_the_file_wins_over_the_unit() {
        let unit = || facts(Some(("app.service", Some(("65536", DROP_IN)))));
        let said = told(&unit(), "events { }\nworker_rlimit_nofile 1024;\n", &[]);
        assert!(said.en().ends_with(": 1024, set by worker_rlimit_nofile in /n.conf:2"), "{}", said.en());
        // A directive with another value is not in force.
        let said = told(&unit(), "worker_rlimit_nofile 4096;\n", &[]);
        assert!(!said.en().contains("worker_rlimit_nofile"), "{}", said.en());
    }

    #[test]
    fn a_login_has_its_line_and_others_inherit() {
        let parent = |soft: u64| format!("Max open files            {soft}                 4096               files\n");
        let (same, other) = (parent(1024), parent(20_000));
        let [same, other] =
            [&same, &other].map(|limits| [("/proc/5/limits", limits.as_str()), ("/proc/5/comm", "bash\n")]);
        let said = told(&facts(None), "", &same);
        assert!(said.en().ends_with("set by process 5 (bash), from which it inherits the limit"), "{}", said.en());
        let said = told(&facts(None), "", &other);
        assert!(said.en().ends_with("prlimit: process 5 (bash), which started it, may open 20000"), "{}", said.en());
        // Process 1 adopted it.
        let mut adopted = facts(None);
        adopted.processes[0].parent = 1;
        let first = parent(1_048_576);
        let host = [("/proc/1/limits", first.as_str()), ("/proc/1/comm", "systemd")];
        assert!(told(&adopted, "", &host).en().contains("has ended since"));
        let session = ("/proc/7/cgroup", "0::/user.slice/user-33.slice/session-1.scope\n");
        assert!(told(&adopted, "", &[host[0], session]).en().ends_with("set by PAM at the login of app"));
        // limits.conf: the user's own line wins over `*`.
        let line = |domain: &str, value: &str, line| {
            let [domain, item, kind, value] = [domain, "nofile", "soft", value].map(str::to_owned);
            PamLimit { file: "/etc/security/limits.conf".to_owned(), line, domain, kind, item, value }
        };
        let mut login = facts(None);
        login.pam_limits = vec![line("app", "1024", 3), line("*", "65535", 4)];
        assert!(
            told(&login, "", &same).en().ends_with(
                "\"app soft nofile 1024\" in /etc/security/limits.conf:3, which PAM read at the login of app"
            )
        );
        login.pam_limits = vec![line("*", "65535", 4)];
        assert!(told(&login, "", &same).en().contains("process 5 (bash)"), "the line is not in force");
    }

    #[test]
    fn a_container_s_limit_is_the_runtime_s() {
        let said = told(&facts(None), "", &[("/proc/7/cgroup", "0::/system.slice/docker-0123.scope\n")]);
        assert!(said.en().ends_with("the runtime of the container (docker)"), "{}", said.en());
        assert_eq!(sentence(&Facts::default(), None, "app", &|_| None), None);
    }

    #[test]
    fn the_texts_are_whole_in_both_languages() {
        assert_eq!(weir_words::check_texts(ALL), Vec::<String>::new());
    }
}
