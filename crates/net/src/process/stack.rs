//! The stack of another thread of this process, for a worker that does not answer.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sys;

/// How long the other thread may take to note its stack: a thread that waits in the kernel without an end never does.
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);

/// One thread is asked at a time: there is one place for the addresses.
static ASKED: Mutex<()> = Mutex::new(());

/// The stack of the thread with this name, the innermost function first: each address as `FILE+OFFSET`, which
/// `addr2line -Cfe FILE OFFSET` names. `None` if there is no such thread, or it does not run.
pub fn stack_of(thread: &str) -> Option<Vec<String>> {
    let _turn = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    sys::ask_for_stack(number_of(thread)?).ok()?;
    let until = Instant::now() + PATIENCE;
    let frames = loop {
        if let Some(frames) = sys::noted_stack() {
            break frames;
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK);
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    Some(frames.into_iter().filter(|address| *address != 0).map(|address| place(&maps, address)).collect())
}

fn number_of(thread: &str) -> Option<i32> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).find(|number: &i32| {
        fs::read_to_string(format!("/proc/self/task/{number}/comm")).is_ok_and(|name| name.trim_end() == thread)
    })
}

/// The file that an address belongs to, and the offset from the file's first byte in memory.
fn place(maps: &str, address: usize) -> String {
    // FROM-TO RIGHTS OFFSET DEVICE INODE PATH
    let parse = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let path = rest.split_whitespace().nth(4)?.to_owned();
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?, path))
    };
    let all: Vec<_> = maps.lines().filter_map(parse).collect();
    let found = all.iter().find(|(from, to, _)| (*from..*to).contains(&address));
    let Some((_, _, path)) = found else { return format!("{address:#x}") };
    let begin = all.iter().filter(|(_, _, other)| other == path).map(|(from, _, _)| *from).min().unwrap_or(0);
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{name}+{:#x}", address - begin)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_that_waits_shows_its_stack_and_goes_on() {
        let (send, wait) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::Builder::new().name("stack test".to_owned());
        let waits = thread
            .spawn(move || {
                begin.send(()).unwrap();
                wait.recv().unwrap();
                true
            })
            .unwrap();
        begun.recv().unwrap();
        let stack = stack_of("stack test").unwrap();
        let own = std::env::current_exe().unwrap();
        let own = format!("{}+0x", own.file_name().unwrap().to_str().unwrap());
        assert!(stack.iter().filter(|frame| frame.starts_with(&own)).count() >= 3, "{stack:?}");
        assert_eq!(stack_of("no such thread"), None);
        send.send(()).unwrap();
        assert!(waits.join().unwrap());
    }

    #[test]
    fn an_address_is_named_by_its_file() {
        let maps = "1000-2000 r--p 00000000 00:00 1 /usr/bin/weir\n3000-5000 r-xp 00002000 00:00 1 /usr/bin/weir\n\
                    9000-a000 rw-p 00000000 00:00 0\n";
        assert_eq!(place(maps, 0x3010), "weir+0x2010");
        assert_eq!(place(maps, 0x9010), "0x9010");
        assert_eq!(place(maps, 0xb000), "0xb000");
    }
}
