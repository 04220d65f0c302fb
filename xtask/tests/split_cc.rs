//! `xtask/split-cc`, the linker of this checkout: which binaries lose their line tables to a file beside them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const LINES: &[u8] = b".debug_line";
const LINK: &[u8] = b".gnu_debuglink";

/// A folder as cargo's target, with a program in C and an empty library.
struct Target(PathBuf);

impl Target {
    fn new(name: &str) -> Target {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::remove_dir_all(&folder).ok();
        for profile in ["release", "ci"] {
            std::fs::create_dir_all(folder.join(profile).join("deps")).unwrap();
        }
        std::fs::write(folder.join("main.c"), "int main(void) { return 7; }\n").unwrap();
        std::fs::write(folder.join("libtest-1f.rlib"), "!<arch>\n").unwrap();
        Target(folder)
    }

    /// Links the program to this place, as rustc calls the linker.
    fn link(&self, source: &str, others: &[&str], place: &str) -> ExitStatus {
        let mut linker = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("split-cc"));
        linker.arg("-g").arg(self.0.join(source)).args(others.iter().map(|other| self.0.join(other)));
        linker.arg("-o").arg(self.0.join(place)).arg("-lc").status().unwrap()
    }

    fn has(&self, file: &str, section: &[u8]) -> bool {
        std::fs::read(self.0.join(file)).unwrap().windows(section.len()).any(|bytes| bytes == section)
    }
}

#[test]
fn the_release_binary_has_its_line_tables_beside_it() {
    let target = Target::new("split");
    // A second link must not leave a link to the file of the first.
    for _ in 0..2 {
        assert!(target.link("main.c", &[], "release/deps/weir-0123").success());
        assert!(!target.has("release/deps/weir-0123", LINES));
        assert!(target.has("release/deps/weir-0123", LINK));
        assert!(target.has("release/deps/weir-0123", b"weir-0123.debug"));
        assert!(target.has("release/weir-0123.debug", LINES));
        let run = Command::new(target.0.join("release/deps/weir-0123")).status().unwrap();
        assert_eq!(run.code(), Some(7));
    }
}

#[test]
fn other_binaries_stay_as_cc_links_them() {
    let target = Target::new("whole");
    for (others, place) in [
        (&[][..], "ci/deps/weir-0123"),
        (&[][..], "release/deps/bench-0123"),
        // A harness of unit tests.
        (&["libtest-1f.rlib"][..], "release/deps/weir-4567"),
    ] {
        assert!(target.link("main.c", others, place).success(), "{place}");
        assert!(target.has(place, LINES), "{place}");
        assert!(!target.has(place, LINK), "{place}");
    }
    assert!(!target.0.join("release/weir-4567.debug").exists());
}

#[test]
fn an_error_of_the_linker_is_an_error() {
    let target = Target::new("error");
    assert!(!target.link("missing.c", &[], "release/deps/weir-0123").success());
    assert!(!target.0.join("release/weir-0123.debug").exists());
}
