//! Limits of running processes: where they come from, and the file that raises them.

use super::*;

#[test]
fn a_process_is_asked_for_its_limits() {
    let folder = Folder::new();
    let path = folder.file("nginx.conf", "events { worker_connections 4000000000; }\n");
    // A process without children; this one has those of other tests.
    let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeping.id().to_string();
    let output = doctor(&["--json", "--pid", &pid, "--only", "fd_limit_running", path.to_str().unwrap()]);
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let value = json(&output);
    let what = value["findings"][0]["what"].as_str().unwrap();
    assert!(what.contains(&format!("worker {pid} may open")) && what.contains("Limit set by"), "{what}");
    let none = doctor(&["--pid", "999999999", path.to_str().unwrap()]);
    assert_eq!((none.status.code(), said(&none).contains("no process 999999999")), (Some(2), true));
}

/// A machine in a folder: a process of a unit, with the limit that systemd gave it.
fn machine(limit: u64, group: &str) -> Folder {
    let folder = Folder::new();
    let limits = format!("Max open files            {limit}                 524288               files\n");
    for (file, text) in [
        ("proc/7/stat", "7 (app) S 1 7 7 0".to_owned()),
        ("proc/7/cmdline", "app\0".to_owned()),
        ("proc/7/status", "Name: app\nUid:\t33\t33\t33\t33\n".to_owned()),
        ("proc/7/limits", limits),
        ("proc/7/cgroup", format!("0::{group}\n")),
        ("proc/sys/fs/nr_open", "1048576\n".to_owned()),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n".to_owned()),
        ("etc/pam.d/common-session", "session required pam_unix.so\n".to_owned()),
        ("etc/systemd/system/app.service", "[Service]\nExecStart=/bin/app\n".to_owned()),
    ] {
        let path = folder.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_limit_is_raised_where_it_is_set_and_checked_afterwards() {
    let folder = machine(1024, "/system.slice/app.service");
    let root = &folder.0;
    let place = root.to_str().unwrap().to_owned();
    let flags = ["--pid", "7", "--fix", "--host", "--files", "10000", "--root", &place];
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let drop_in = root.join("etc/systemd/system/app.service.d/weir-limits.conf");
    let shown = doctor(&flags);
    assert!(said(&shown).contains("systemd sets this limit for app.service") && !drop_in.exists());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("+LimitNOFILE=65536"));
    let written = doctor(&[&flags[..], &["--write"]].concat());
    assert!(written.status.success() && said(&written).contains("systemctl daemon-reload"), "{}", said(&written));
    assert_eq!(std::fs::read_to_string(&drop_in).unwrap(), "[Service]\nLimitNOFILE=65536\n");
    // The restarted process has the limit.
    std::fs::write(
        root.join("proc/7/limits"),
        "Max open files            65536                65536                files\n",
    )
    .unwrap();
    let holds = said(&doctor(&flags));
    assert!(holds.contains("Max open files of process 7: 65536, set by LimitNOFILE=65536 in /etc/systemd"), "{holds}");
}

#[test]
fn a_login_gets_its_line_and_pam_reads_it_with_an_undo() {
    let folder = machine(1024, "/user.slice/user-33.slice/session-1.scope");
    let root = &folder.0;
    let place = root.to_str().unwrap().to_owned();
    let output = doctor(&["--pid", "7", "--fix", "--host", "--write", "--files", "10000", "--root", &place]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert!(read("etc/security/limits.d/90-weir-limits.conf").contains("www-data soft nofile 65536\n"));
    assert!(read("etc/pam.d/common-session").ends_with("session required        pam_limits.so\n"));
    assert!(!root.join("etc/pam.d/common-session.undo.diff").exists());
    assert!(doctor(&["--undo", "--root", &place]).status.success());
    assert_eq!(read("etc/pam.d/common-session"), "session required pam_unix.so\n");
    assert!(!root.join("etc/security/limits.d/90-weir-limits.conf").exists());
    let none = doctor(&["--fix", "--host", "--root", &place]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("--host needs --pid"));
}

#[test]
fn the_limit_of_a_process_and_its_source_are_named_without_a_finding() {
    let folder = machine(65_536, "/system.slice/app.service");
    let root = &folder.0;
    let (place, conf) = (root.to_str().unwrap().to_owned(), folder.file("quiet.conf", QUIET));
    let flags = ["--pid", "7", "--root", &place, "--nginx-version", "1.22.1", conf.to_str().unwrap()];
    let shown = String::from_utf8_lossy(&doctor(&flags).stdout).into_owned();
    assert!(
        shown.contains("Max open files of process 7: 65536, set by systemd's default for app.service\n"),
        "{shown}"
    );
    let drop_in = root.join("etc/systemd/system/app.service.d/files.conf");
    std::fs::create_dir_all(drop_in.parent().unwrap()).unwrap();
    std::fs::write(&drop_in, "[Service]\nLimitNOFILE=65536\n").unwrap();
    let only = [&flags[..], &["--only", "fd_limit_running"]].concat();
    let shown = String::from_utf8_lossy(&doctor(&only).stdout).into_owned();
    let line = "set by LimitNOFILE=65536 in /etc/systemd/system/app.service.d/files.conf\n";
    assert!(shown.contains(line) && shown.contains("0 wrong, 0 at risk, 0 notes"), "{shown}");
    let korean = String::from_utf8_lossy(&doctor(&[&only[..], &["--lang", "ko"]].concat()).stdout).into_owned();
    assert!(korean.contains("프로세스 7의 최대 열린 파일 수: 65536, 설정한 곳: "), "{korean}");
    let told = json(&doctor(&[&only[..], &["--json"]].concat()))["open_files"].clone();
    assert_eq!(
        (told["pid"].as_u64(), told["soft"].as_u64(), told["hard"].as_u64()),
        (Some(7), Some(65_536), Some(524_288))
    );
    // The program is no nginx: without a file, its limit is all that there is to say.
    let alone = doctor(&["--pid", "7", "--root", &place]);
    let shown = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(alone.status.success() && shown.contains(line) && !shown.contains("at risk"), "{shown}");
    assert_eq!(json(&doctor(&["--pid", "7", "--root", &place, "--json"]))["open_files"], told);
    // The file is changed, and the process is the old one.
    std::fs::write(&drop_in, "[Service]\nLimitNOFILE=100000\n").unwrap();
    let shown = String::from_utf8_lossy(&doctor(&only).stdout).into_owned();
    assert!(shown.contains("65536. LimitNOFILE=100000 in") && shown.contains("is not in force"), "{shown}");
}

/// The file of this machine's nginx says nothing about another program.
#[test]
fn a_program_that_reads_no_nginx_conf_needs_files_by_number() {
    let folder = machine(1024, "/system.slice/app.service");
    let place = folder.0.to_str().unwrap();
    let ask = |flags: &[&str]| doctor(&[&["--pid", "7", "--root", place], flags].concat());
    let limits = ask(&["--fix", "--host"]);
    assert_eq!(limits.status.code(), Some(2));
    assert!(
        said(&limits).contains("process 7 reads no nginx.conf") && said(&limits).contains("--files N"),
        "{}",
        said(&limits)
    );
    for flags in [&["--fix"][..], &["--explain"]] {
        let other = ask(flags);
        assert_eq!(other.status.code(), Some(2), "{flags:?}");
        assert!(said(&other).contains("process 7 reads no nginx.conf: name the file"), "{}", said(&other));
    }
}

/// A shell that lowers its limit, and a program that the shell starts.
#[test]
fn a_process_outside_of_units_inherits_its_limit() {
    let folder = Folder::new();
    let conf = folder.file("quiet.conf", QUIET);
    let mut shell = Command::new("sh")
        .args(["-c", "ulimit -n 300; sleep 60 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (parent, child) = (shell.id().to_string(), line.trim().to_owned());
    let told = |pid: &str| {
        let flags = ["--pid", pid, "--nginx-version", "1.22.1", "--only", "use_epoll", conf.to_str().unwrap()];
        String::from_utf8_lossy(&doctor(&flags).stdout).into_owned()
    };
    let (of_parent, of_child) = (told(&parent), told(&child));
    Command::new("kill").arg(&child).status().unwrap();
    shell.wait().unwrap();
    assert!(of_child.contains(&format!("Max open files of process {child}: 300")), "{of_child}");
    assert!(of_parent.contains(&format!("Max open files of process {parent}: 300")), "{of_parent}");
    // A test that a service or a container runs has their limits.
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    if !["service", "docker", "libpod", "kubepods", "containerd", "lxc"].iter().any(|word| groups.contains(word)) {
        let inherits = format!(", set by process {parent} (sh), from which it inherits the limit");
        assert!(of_child.contains(&inherits), "{of_child}");
        assert!(of_parent.contains(", set by the process itself, or prlimit: process "), "{of_parent}");
    }
}
