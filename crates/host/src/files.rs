//! Small files of the kernel: each is read with few system calls, and once for all that need it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Room for a file at first: more than any file of the kernel that weir reads on a machine with 100 CPUs.
const ROOM_BYTES: usize = 16 << 10;
/// Most bytes of a file; a longer file counts as unreadable. `/proc/stat` has 100 bytes for each CPU.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The kernel gives out a table in pieces of at most a page, each of them whole lines. So a piece that is shorter than
/// half a page is the last one.
const PIECE_BYTES: usize = 2 << 10;

/// The files of one moment below a root directory. Whoever asks for the same file later gets the same text.
pub struct Files {
    root: PathBuf,
    room: RefCell<Vec<u8>>,
    texts: RefCell<BTreeMap<String, Option<Rc<str>>>>,
}

impl Files {
    /// The files below `root`, as they are now.
    pub fn under(root: &Path) -> Files {
        Files { root: root.to_path_buf(), room: RefCell::default(), texts: RefCell::default() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The text of a file; `None` if it is absent, unreadable, too long or no text.
    pub(super) fn text(&self, path: &str) -> Option<Rc<str>> {
        if let Some(text) = self.texts.borrow().get(path) {
            return text.clone();
        }
        let text = read(&self.root.join(path), &mut self.room.borrow_mut()).map(Rc::from);
        self.texts.borrow_mut().insert(path.to_owned(), text.clone());
        text
    }

    /// The number that is all the text of a file.
    pub(super) fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.trim().parse().ok()
    }
}

/// Reads a file into `room`. The kernel does not know the size of these files, so this does not ask for it.
pub(super) fn read<'a>(path: &Path, room: &'a mut Vec<u8>) -> Option<&'a str> {
    let mut file = File::open(path).ok()?;
    let mut length = 0;
    loop {
        if room.len() < length + PIECE_BYTES {
            room.resize((2 * room.len()).max(ROOM_BYTES), 0);
        }
        match file.read(room.get_mut(length..)?) {
            Ok(piece) => {
                length += piece;
                if length > FILE_BYTES_MAX {
                    return None;
                }
                if piece < PIECE_BYTES {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    std::str::from_utf8(room.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn files_of_any_length_are_read_up_to_the_limit() {
        for length in [0, 5, PIECE_BYTES - 1, PIECE_BYTES, ROOM_BYTES - 1, ROOM_BYTES, 5 * ROOM_BYTES] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let root = tree::made_up(&[("file", &text)]);
            assert!(read(&root.path().join("file"), &mut Vec::new()) == Some(&text), "{length}");
        }
        let root = tree::made_up(&[("long", &"x".repeat(FILE_BYTES_MAX + 1)), ("short", "abc")]);
        let mut room = Vec::new();
        assert_eq!(read(&root.path().join("long"), &mut room), None);
        assert!(room.len() <= 2 * FILE_BYTES_MAX);
        // The room still has bytes of the longer file.
        assert_eq!(read(&root.path().join("short"), &mut room), Some("abc"));
    }

    #[test]
    fn what_is_no_text_and_what_is_absent_is_nothing() {
        let root = tree::made_up(&[("folder/file", "7\n")]);
        std::fs::write(root.path().join("bytes"), [b'a', 0xff]).unwrap();
        let files = Files::under(root.path());
        for name in ["absent", "folder", "bytes"] {
            assert_eq!(files.text(name), None, "{name}");
        }
        assert_eq!((files.number("folder/file"), files.number::<u64>("absent")), (Some(7_u64), None));
    }

    #[test]
    fn a_file_is_read_once_in_a_moment() {
        let root = tree::made_up(&[("file", "then")]);
        let files = Files::under(root.path());
        assert_eq!(files.text("file").as_deref(), Some("then"));
        std::fs::write(root.path().join("file"), "now").unwrap();
        assert_eq!(files.text("file").as_deref(), Some("then"));
        assert_eq!(Files::under(root.path()).text("file").as_deref(), Some("now"));
    }

    #[test]
    fn tables_of_the_kernel_are_whole() {
        // Many lines in pieces of a page; lines that are longer than a page together; one number.
        for name in ["/proc/vmstat", "/proc/mounts", "/proc/net/netstat", "/proc/sys/kernel/pid_max"] {
            let Ok(whole) = std::fs::read_to_string(name) else { continue };
            let mut room = Vec::new();
            let found = read(Path::new(name), &mut room).map(|text| text.lines().count());
            assert_eq!(found, Some(whole.lines().count()), "{name}");
        }
    }
}
