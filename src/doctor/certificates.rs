//! The certificates that a configuration names, read for their times.

use std::path::Path;

use weir_conf::{Statement, Tree};
use weir_doctor::facts::Certificate;
use weir_net::tls::{self, CertificateFacts};
use weir_net::whole_file;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Files that are read at most.
const FILES_MAX: usize = 2000;

/// The certificates of `ssl_certificate` without variables, and of each `acme_issuer`'s directory. A file that cannot be
/// read is left out: the program that reads the configuration reports it.
pub fn of(tree: &Tree) -> Vec<Certificate> {
    let mut all = Vec::new();
    let main = tree.files.first().map_or("", |file| file.name.as_str());
    let directory = main.rsplit_once('/').map_or("/", |(directory, _)| directory);
    walk(&tree.root, &mut |statement| {
        let source = statement.text(0);
        match statement.name.text.as_str() {
            "ssl_certificate" if !source.contains('$') && !source.starts_with("data:") => {
                all.push((source.to_owned(), Path::new(directory).join(source)));
            }
            "acme_issuer" => {
                let state = statement.named("state_path").next().map_or("", |path| path.text(0));
                let state = if state.is_empty() { format!("acme_{source}") } else { state.to_owned() };
                let entries = std::fs::read_dir(Path::new(directory).join(state)).into_iter().flatten().flatten();
                let chains =
                    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "crt"));
                all.extend(chains.map(|path| (source.to_owned(), path)));
            }
            _ => {}
        }
    });
    all.sort();
    all.dedup();
    all.truncate(FILES_MAX);
    all.into_iter().filter_map(|(source, path)| read(source, &path)).collect()
}

fn walk(statements: &[Statement], see: &mut dyn FnMut(&Statement)) {
    for statement in statements {
        see(statement);
        walk(statement.block.as_deref().unwrap_or_default(), see);
    }
}

fn read(source: String, path: &Path) -> Option<Certificate> {
    let text = whole_file::read(path, FILE_BYTES_MAX).ok()?;
    let first = tls::certificates(&text).ok()?.into_iter().next()?;
    let facts = CertificateFacts::read(&first).ok()?;
    Some(Certificate { source, file: path.display().to_string(), begins: facts.begins, ends: facts.ends })
}
