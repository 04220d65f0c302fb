//! The features on whole files, on broken ones, and beside each other.
//!
//! `WEIR_CORPUS` names a folder of configurations for the tests on real files; they run on those of the repository, too.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod mutate;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_conf::{Files, LineEnd, LineTable, MemoryFiles, PieceKind, Tree, pieces};
use weir_doctor::{NEWEST, Target};
use weir_words::Language;

use crate::complete::complete;
use crate::find::{definitions, references, rename};
use crate::hover::hover;
use crate::layout::layout;
use crate::look::Look;
use crate::mentions::Mentions;
use crate::outline::{folds, symbols};
use crate::place::FilePlace;
use crate::under::is_opaque;

/// Largest file of a corpus that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files below a folder that stands for the root, or as they are.
struct Disk {
    root: Option<PathBuf>,
}

impl Disk {
    fn place(&self, path: &str) -> PathBuf {
        match &self.root {
            Some(root) if !Path::new(path).starts_with(root) => root.join(path.trim_start_matches('/')),
            _ => PathBuf::from(path),
        }
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.place(path))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let list = |folder: &str| {
            let entries = std::fs::read_dir(self.place(folder))?;
            Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        };
        Ok(weir_conf::glob::expand(pattern, &list, &|path| self.place(path).exists()))
    }
}

/// Every file of these folders that may be a configuration.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            files_below(&path, found);
        } else if kind.is_file() && kind.len() <= FILE_BYTES_MAX {
            let text = path.to_string_lossy();
            if [".conf", "nginx", ".types", "_params"].iter().any(|part| text.contains(part)) && !text.contains(".vtc")
            {
                found.push(path);
            }
        }
    }
}

/// The trees of the repository and of the corpus.
fn trees() -> Vec<(PathBuf, Tree)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["examples", "bench/conf", "crates/doctor/testdata", "labs"] {
        files_below(&repository.join(folder), &mut found);
    }
    if let Some(corpus) = std::env::var_os("WEIR_CORPUS") {
        files_below(Path::new(&corpus), &mut found);
    }
    let tree = |path: PathBuf| {
        let root = path.ancestors().find(|folder| folder.ends_with("root")).map(Path::to_path_buf);
        let name = path.to_string_lossy().into_owned();
        let prefix = path.parent().unwrap().to_string_lossy().into_owned();
        let (tree, _) = weir_conf::load(&Disk { root }, &name, &prefix, &is_opaque);
        (path, tree)
    };
    found.into_iter().map(tree).collect()
}

fn look(tree: &Tree, target: Target) -> Look<'_> {
    Look::new(tree, target, Language::English)
}

/// Each use of a name leads to a definition that counts the use among its own, and a renaming leaves the same names.
#[test]
fn definitions_and_references_of_real_files_agree() {
    let (mut words, mut linked, mut hovered) = (0_u64, 0_u64, 0_u64);
    for (path, tree) in trees() {
        let look = look(&tree, Target::Weir);
        for (file, source) in (0..).zip(&tree.files) {
            let found = pieces(&source.bytes, &is_opaque);
            for word in found.all.iter().filter(|piece| piece.kind == PieceKind::Word) {
                words += 1;
                let middle = word.span.start + (word.span.end - word.span.start) / 2;
                for offset in [word.span.start, middle, word.span.end] {
                    let defined = definitions(&look, file, offset);
                    let all = references(&look, file, offset, true);
                    let uses = references(&look, file, offset, false);
                    assert!(uses.iter().all(|place| all.contains(place)), "{}", path.display());
                    for place in &all {
                        let back = definitions(&look, place.file, place.span.start);
                        let agree = defined.is_empty() || back.iter().any(|one| defined.contains(one));
                        assert!(agree, "{} {}: {place:?}", path.display(), source.name);
                    }
                    for place in defined.iter().filter(|place| place.span.end > 0) {
                        linked += 1;
                        assert!(all.contains(place), "{} {}: {place:?}", path.display(), source.name);
                    }
                }
            }
        }
        let mentions = look.mentions();
        let mut places: Vec<FilePlace> = mentions.all.iter().map(|one| one.place).collect();
        places.sort_by_key(FilePlace::order);
        places.dedup();
        for place in places.iter().take(200) {
            let found = hover(&look, place.file, place.span.start);
            let is_defined =
                mentions.at(place.file, place.span.start).iter().any(|one| mentions.is_defined(&one.key()));
            assert!(found.is_some() || !is_defined, "{}: {place:?}", path.display());
            hovered += u64::from(found.is_some());
        }
    }
    println!("{words} words, {linked} links to a definition, {hovered} names with an answer");
    assert!(words > 0 && linked > 0 && hovered > 0);
}

/// A renaming and its undo give the same files; in between, nothing has the old name.
#[test]
fn a_renaming_of_real_files_can_be_undone() {
    let mut renamed = 0;
    for (path, tree) in trees() {
        let look = look(&tree, Target::Weir);
        let mentions = look.mentions();
        let defined = mentions.all.iter().filter(|one| one.role != crate::names::MentionRole::Uses);
        for one in defined.take(40) {
            let new = "quite_another_name";
            let Ok(edits) = rename(&look, one.place.file, one.place.span.start, new) else { continue };
            renamed += 1;
            let changed = edited(&tree, &edits);
            let again = reloaded(&tree, &changed);
            let after = Mentions::new(&again);
            let key = (one.kind, one.scope, new.to_owned());
            let count = |mentions: &Mentions, key: &crate::mentions::NameKey| {
                mentions.of(key).map(|one| one.place).collect::<HashSet<FilePlace>>().len()
            };
            assert_eq!(count(&after, &key), count(mentions, &one.key()), "{} {}", path.display(), one.name);
            assert_eq!(after.of(&one.key()).count(), 0, "{} {}", path.display(), one.name);
            let place = after.definitions(&key).first().map(|one| one.place).expect("it is still defined");
            let written = String::from_utf8(one.place.span.of(look.bytes(one.place.file)).to_vec()).unwrap();
            let look = self::look(&again, Target::Weir);
            let back = rename(&look, place.file, place.span.start, &written).expect("the old name is free");
            // Uses that spelled the name with other letters have the definition's spelling.
            let original: Vec<Vec<u8>> = tree.files.iter().map(|file| file.bytes.to_ascii_lowercase()).collect();
            let undone: Vec<Vec<u8>> = edited(&again, &back).iter().map(|bytes| bytes.to_ascii_lowercase()).collect();
            assert_eq!(undone, original, "{} {}", path.display(), one.name);
        }
    }
    println!("{renamed} names");
    assert!(renamed > 0);
}

/// The bytes of all files after some edits.
fn edited(tree: &Tree, edits: &[weir_conf::edit::Edit]) -> Vec<Vec<u8>> {
    let of_file = |(index, file): (u32, &weir_conf::Source)| {
        let own: Vec<&weir_conf::edit::Edit> = edits.iter().filter(|edit| edit.file == index).collect();
        weir_conf::edit::apply(&file.bytes, &own).unwrap()
    };
    (0..).zip(&tree.files).map(of_file).collect()
}

/// The tree of these files with other bytes.
fn reloaded(tree: &Tree, bytes: &[Vec<u8>]) -> Tree {
    let names: Vec<String> = tree.files.iter().map(|file| file.name.clone()).collect();
    let memory = names.iter().zip(bytes).fold(MemoryFiles::new(), |memory, (name, bytes)| memory.with(name, bytes));
    let main = names.first().cloned().unwrap_or_default();
    let prefix = main.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned();
    weir_conf::load(&memory, &main, &prefix, &is_opaque).0
}

#[test]
fn real_files_have_a_layout_with_the_same_content() {
    let (mut laid_out, mut unchanged) = (0, 0);
    for (path, tree) in trees() {
        for source in &tree.files {
            for indent in ["    ", "\t"] {
                let Some(out) = layout(&source.bytes, indent) else { continue };
                laid_out += 1;
                unchanged += usize::from(out == source.bytes);
                let (before, after) = (content(&source.bytes), content(&out));
                assert_eq!(before, after, "{} {}", path.display(), source.name);
                assert_eq!(layout(&out, indent).as_ref(), Some(&out), "{} {}", path.display(), source.name);
            }
        }
    }
    println!("{laid_out} layouts, {unchanged} without a change");
    assert!(laid_out > 0);
}

/// The pieces of a text, without its layout.
fn content(bytes: &[u8]) -> Vec<(PieceKind, Vec<u8>)> {
    pieces(bytes, &is_opaque).all.iter().map(|piece| (piece.kind, piece.span.of(bytes).to_vec())).collect()
}

/// A configuration of `lines` lines or a few more.
fn long_file(lines: usize) -> String {
    use std::fmt::Write;
    let mut text =
        String::from("events { }\nhttp {\n    map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n");
    for number in 0..lines / 17 {
        write!(
            text,
            "    upstream app{number} {{\n        server 10.0.0.1:{number} weight=2;\n        keepalive 8;\n    }}\n\
             \x20   limit_req_zone $binary_remote_addr zone=zone{number}:10m rate=10r/s;\n\
             \x20   server {{\n        listen 80;\n        server_name host{number}.example.com;\n        error_page 502 @down;\n\
             \x20       location / {{\n            limit_req zone=zone{number} burst=5;\n            proxy_set_header Connection $connection_upgrade;\n\
             \x20           proxy_pass http://app{number};\n            proxy_read_timeout 60s;\n        }}\n        location @down {{ return 503 \"$uri\"; }}\n    }}\n"
        )
        .unwrap();
    }
    text.push_str("}\n");
    text
}

/// Prints the time of each kind of request on a file of 2,000 lines; `--nocapture` shows it.
#[test]
fn a_long_file_is_answered() {
    let text = long_file(2_000);
    let bytes = text.as_bytes();
    let (tree, problems) = weir_conf::load(&MemoryFiles::new().with("/n", &text), "/n", "/", &is_opaque);
    assert_eq!(problems, []);
    let offsets: Vec<u32> = (1..40).map(|part| u32::try_from(bytes.len() * part / 40).unwrap()).collect();
    let look = look(&tree, Target::Nginx(NEWEST));
    let words: Vec<u32> = ["$connection_upgrade;", "app50;", "zone50 ", "@down {", "proxy_read"]
        .iter()
        .map(|word| u32::try_from(text.find(word).unwrap() + 2).unwrap())
        .collect();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut timed = |name: &'static str, run: &mut dyn FnMut()| {
        let began = Instant::now();
        run();
        times.push((name, began.elapsed()));
    };
    for offset in offsets.iter().chain(&words).copied() {
        timed("hover", &mut || drop(hover(&look, 0, offset)));
        timed("complete", &mut || drop(complete(&look, 0, offset, &|_| Vec::new())));
        timed("definition", &mut || drop(definitions(&look, 0, offset)));
        timed("references", &mut || drop(references(&look, 0, offset, true)));
        timed("rename", &mut || drop(rename(&look, 0, offset, "other")));
    }
    timed("symbols", &mut || drop(symbols(&tree, 0)));
    timed("folds", &mut || drop(folds(bytes, &LineTable::of(bytes, LineEnd::Any))));
    timed("layout", &mut || assert!(layout(bytes, "    ").is_some()));
    for kind in ["hover", "complete", "definition", "references", "rename", "symbols", "folds", "layout"] {
        let most = times.iter().filter(|(name, _)| *name == kind).map(|(_, time)| *time).max().unwrap_or_default();
        println!("{kind}: at most {:.2} ms", most.as_secs_f64() * 1e3);
    }
    assert_eq!(references(&look, 0, words[0], false).len(), 2_000 / 17);
}
