//! Where the threads of a process are, for a process that does not answer.

use std::fs;
use std::path::Path;

use super::thread::THREADS_MAX;

/// Frames of the kernel's stack that are shown.
const FRAMES_MAX: usize = 12;

/// The name of each thread of a process, and its place: its state, the call that it is in, and the functions of the
/// kernel, if this process may see them (root).
pub fn places_of(pid: u32) -> Vec<(String, String)> {
    places_under(Path::new("/"), pid)
}

/// As [`places_of`], reading `proc/` below `root`.
pub fn places_under(root: &Path, pid: u32) -> Vec<(String, String)> {
    let Ok(tasks) = fs::read_dir(root.join(format!("proc/{pid}/task"))) else { return Vec::new() };
    tasks.flatten().take(THREADS_MAX).map(|task| place(&task.path())).collect()
}

fn place(task: &Path) -> (String, String) {
    let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
    let (status, call, stack) = (read("status"), read("syscall"), read("stack"));
    let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or("unknown").trim();
    // NUMBER ARGUMENTS… STACK-POINTER PROGRAM-COUNTER, or "running".
    let call = call.split_whitespace().next().unwrap_or("unknown");
    // `[<0>] do_epoll_wait+0x5d/0x80`
    let frames = stack.lines().filter_map(|line| line.split_once("] ")).map(|(_, frame)| frame);
    let frames: Vec<&str> = frames.filter_map(|frame| frame.split('+').next()).take(FRAMES_MAX).collect();
    let kernel = if frames.is_empty() { String::new() } else { format!(", in the kernel: {}", frames.join(" < ")) };
    (read("comm").trim().to_owned(), format!("state {state}, system call {call}{kernel}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_thread_is_named_with_its_call_and_the_kernel_s_functions() {
        let root = std::env::temp_dir().join(format!("weir-place-{}", std::process::id()));
        let task = root.join("proc/7/task/8");
        fs::create_dir_all(&task).unwrap();
        for (name, text) in [
            ("comm", "worker 0\n"),
            ("status", "Name:\tworker 0\nState:\tD (disk sleep)\n"),
            ("syscall", "0 0x5 0x7f 0x1000 0x0 0x0 0x0 0x7ffd 0x7fcc\n"),
            ("stack", "[<0>] rpc_wait_bit_killable+0x1f/0xa0\n[<0>] nfs_file_read+0x6f/0xc0\n"),
        ] {
            fs::write(task.join(name), text).unwrap();
        }
        let place = "state D (disk sleep), system call 0, in the kernel: rpc_wait_bit_killable < nfs_file_read";
        assert_eq!(places_under(&root, 7), [("worker 0".to_owned(), place.to_owned())]);
        assert!(places_under(&root, 9).is_empty());
        fs::remove_dir_all(root).unwrap();
        let own = places_of(std::process::id());
        // The kernel gives the call of a thread that reads its own file, or says that it runs.
        assert!(own.iter().any(|(_, place)| place.starts_with("state R (running), system call ")), "{own:?}");
    }
}
