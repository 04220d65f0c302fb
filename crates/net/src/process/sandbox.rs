//! The system calls of a server: those that serving needs, and no others (seccomp(2)).
//!
//! A call that is not in the list fails with `EPERM`; a program that the list cannot foresee gets an error, not a signal.
//! No call starts a program, traces or signals another process (also not by a descriptor that the kernel signals for), mounts, loads code into the kernel, or makes a socket of
//! another family. Which files a server may open is decided elsewhere.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// Calls with any arguments.
const FREE: &[c_long] = &[
    // Bytes.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_copy_file_range,
    libc::SYS_lseek,
    // Descriptors.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_flock,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_memfd_create,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_signalfd4,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    // Files.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_umask,
    libc::SYS_flistxattr,
    libc::SYS_fgetxattr,
    libc::SYS_fsetxattr,
    // They only take away.
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Sockets.
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    // Waits.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    // Threads and signals of this process.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    // What it may know of itself and of the machine.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_getcpu,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
];

/// Older forms, which the C library uses on this machine.
#[cfg(target_arch = "x86_64")]
const FREE_HERE: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_pipe,
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_create,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_getdents,
    libc::SYS_time,
    libc::SYS_arch_prctl,
    libc::SYS_getrlimit,
    libc::SYS_getpgrp,
    libc::SYS_pause,
    libc::SYS_eventfd,
    libc::SYS_futimesat,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const FREE_HERE: &[c_long] = &[libc::SYS_getrlimit];

/// Calls that are allowed if an argument has one of these values: the call, the argument's place, the values.
fn bound() -> [(c_long, u8, Vec<u64>); 7] {
    let own = u64::from(std::process::id());
    let number = |value: i32| u64::from(value.cast_unsigned());
    [
        (libc::SYS_socket, 0, [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(number).to_vec()),
        (libc::SYS_kill, 0, vec![own]),
        (libc::SYS_tgkill, 0, vec![own]),
        // Its own limits only; 0 is this process.
        (libc::SYS_prlimit64, 0, vec![0, own]),
        (
            libc::SYS_prctl,
            0,
            [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA, libc::PR_SET_TIMERSLACK].map(number).to_vec(),
        ),
        (libc::SYS_getpriority, 0, vec![0]),
        (
            libc::SYS_ioctl,
            1,
            [libc::FIONBIO, libc::FIONREAD, libc::FIOCLEX, libc::TCGETS, libc::TIOCGWINSZ, libc::TIOCOUTQ].to_vec(),
        ),
    ]
}

/// What `fcntl` may do. Not among it: the owner of a descriptor and its signal, which would signal other processes.
const FCNTL: &[libc::c_int] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETPIPE_SZ,
    libc::F_SETPIPE_SZ,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];

/// Restricts this thread, and all threads that it starts, to the calls of a server; for good.
///
/// Call before any thread is started, and after `no_new_privs` is set.
///
/// # Errors
/// The kernel has no seccomp, or weir has no list for this machine's architecture.
pub fn restrict_calls() -> io::Result<()> {
    let other = |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::Unsupported, error.to_string());
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|error: seccompiler::BackendError| other(&error))?;
    let eperm = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    // The arguments of clone3 are in memory, where a filter cannot see them: the C library then takes clone.
    let old_clone = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let first = SeccompFilter::new(old_clone, SeccompAction::Allow, enosys, arch);
    let second = SeccompFilter::new(rules().map_err(|error| other(&error))?, eperm, SeccompAction::Allow, arch);
    for filter in [first, second] {
        let program: BpfProgram =
            filter.and_then(TryInto::try_into).map_err(|error: seccompiler::BackendError| other(&error))?;
        apply_filter(&program).map_err(|error| other(&error))?;
    }
    Ok(())
}

fn rules() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        FREE.iter().chain(FREE_HERE).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone3, Vec::new());
    let when = |place, how, value| SeccompCondition::new(place, SeccompCmpArgLen::Dword, how, value);
    for (call, place, values) in bound() {
        let each = values.into_iter().map(|value| SeccompRule::new(vec![when(place, SeccompCmpOp::Eq, value)?]));
        rules.insert(call, each.collect::<Result<_, _>>()?);
    }
    let number = |value: libc::c_int| u64::from(value.cast_unsigned());
    let mut fcntl = Vec::new();
    for command in FCNTL {
        fcntl.push(SeccompRule::new(vec![when(1, SeccompCmpOp::Eq, number(*command))?])?);
    }
    // Flags, but no signals when the descriptor is ready.
    let quiet = when(2, SeccompCmpOp::MaskedEq(number(libc::O_ASYNC)), 0)?;
    fcntl.push(SeccompRule::new(vec![when(1, SeccompCmpOp::Eq, number(libc::F_SETFL))?, quiet])?);
    rules.insert(libc::SYS_fcntl, fcntl);
    // A new thread, but no new process.
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let clone = SeccompRule::new(vec![when(0, SeccompCmpOp::MaskedEq(thread), thread)?])?;
    rules.insert(libc::SYS_clone, vec![clone]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketType, socket};
    use std::net::ToSocketAddrs;
    use std::process::Command;

    /// Marks the process that restricts itself: a restriction is for good, so it is not the process of the other tests.
    const ENV_RESTRICTED: &str = "WEIR_TEST_RESTRICTED";

    #[test]
    fn a_restricted_process_serves_and_reaches_nothing_else() {
        if std::env::var_os(ENV_RESTRICTED).is_none() {
            let name = "process::sandbox::tests::a_restricted_process_serves_and_reaches_nothing_else";
            let mut own = Command::new(std::env::current_exe().unwrap());
            let ended =
                own.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ENV_RESTRICTED, "1").output();
            let ended = ended.unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
            return;
        }
        rustix::thread::set_no_new_privs(true).unwrap();
        let parent = rustix::process::getppid().unwrap();
        restrict_calls().unwrap();
        // Serving.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = std::thread::spawn(move || std::net::TcpStream::connect(address).is_ok());
        listener.accept().unwrap();
        assert!(client.join().unwrap(), "threads and sockets");
        let path = std::env::temp_dir().join(format!("weir-sandbox-{}", std::process::id()));
        std::fs::write(&path, "x").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(("localhost", 0).to_socket_addrs().is_ok(), "names");
        // Nothing else.
        let refused = |what: &str, error: Errno| assert_eq!(error, Errno::PERM, "{what}");
        let started = Command::new("/bin/true").status().unwrap_err();
        assert_eq!(started.kind(), io::ErrorKind::PermissionDenied, "a program");
        refused("a signal", rustix::process::kill_process(parent, rustix::process::Signal::CONT).unwrap_err());
        refused("a probe", rustix::process::test_kill_process(parent).unwrap_err());
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(one.set_nonblocking(true).is_ok() && one.try_clone().is_ok(), "flags and copies of a descriptor");
        let asynchronous = rustix::fs::OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned());
        let flags = rustix::fs::fcntl_getfl(&one).unwrap();
        refused("a signal by a descriptor", rustix::fs::fcntl_setfl(&one, flags | asynchronous).unwrap_err());
        // <linux/fcntl.h>: F_SETSIG and F_SETOWN_EX.
        for command in [libc::F_SETOWN, 10, 15, libc::F_SETLEASE, libc::F_NOTIFY] {
            let allowed = crate::sys::fcntl_of_test(&one, command);
            assert_eq!(allowed.unwrap_err().raw_os_error(), Some(libc::EPERM), "fcntl {command}");
        }
        refused("packets", socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap_err());
        refused("a session", rustix::process::setsid().unwrap_err());
        refused("a directory to work in", rustix::process::chdir("/").unwrap_err());
        refused("a root", rustix::process::chroot("/").unwrap_err());
        refused("a user", rustix::thread::set_thread_uid(rustix::process::getuid()).unwrap_err());
        refused("privileges", rustix::thread::set_no_new_privs(true).unwrap_err());
        refused(
            "a limit of another",
            rustix::process::prlimit(
                Some(parent),
                rustix::process::Resource::Core,
                rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
            )
            .unwrap_err(),
        );
    }
}
