//! The folder of the experiments: `--labs`, `./labs`, or the folder of the installation.

use std::path::{Path, PathBuf};

use weir_lab::experiment::{FILE, LABS_MAX};
use weir_lab::texts;
use weir_words::{Said, say};

/// Below the working directory.
const HERE: &str = "labs";
/// Below the prefix of an installation: the program is in `bin/` there.
const SHARED: &str = "share/weir/labs";
/// The folder of the Debian package, for a program that somebody copied elsewhere.
const PACKAGED: &str = "/usr/share/weir/labs";

/// The folder that the user named, or the first usual folder that has experiments. The error names all places.
pub(super) fn folder(named: Option<&Path>) -> Result<PathBuf, Said> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    find(named, program.as_deref())
}

fn find(named: Option<&Path>, program: Option<&Path>) -> Result<PathBuf, Said> {
    let places = match named {
        Some(named) => vec![named.to_owned()],
        None => usual(program),
    };
    if let Some(place) = places.iter().find(|place| has_experiments(place)) {
        return Ok(place.clone());
    }
    let shown = |place: &PathBuf| std::path::absolute(place).unwrap_or_else(|_| place.clone()).display().to_string();
    let shown: Vec<String> = places.iter().map(shown).collect();
    Err(say!(texts::ERR_NO_LABS, FILE, shown.join(", ")))
}

fn usual(program: Option<&Path>) -> Vec<PathBuf> {
    // PREFIX/bin/weir
    let prefix = program.and_then(Path::parent).and_then(Path::parent);
    let mut places: Vec<PathBuf> = [Some(PathBuf::from(HERE)), prefix.map(|prefix| prefix.join(SHARED))]
        .into_iter()
        .flatten()
        .chain([PathBuf::from(PACKAGED)])
        .collect();
    places.dedup();
    places
}

fn has_experiments(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(LABS_MAX);
    entries.into_iter().any(|entry| entry.path().join(FILE).is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_first_folder_with_experiments_is_taken_and_all_are_named() {
        let prefix = std::env::temp_dir().join(format!("weir-labs-{}", std::process::id()));
        let (program, shared) = (prefix.join("bin/weir"), prefix.join(SHARED));
        std::fs::create_dir_all(shared.join("one")).unwrap();
        let said = find(Some(&shared), Some(&program)).unwrap_err();
        assert!(said.contains(&shared.display().to_string()) && !said.contains(PACKAGED), "{said}");
        std::fs::write(shared.join("one").join(FILE), "").unwrap();
        assert_eq!(find(Some(&shared), None), Ok(shared.clone()));
        // The tests' working directory is the package's: its own labs come first.
        assert_eq!(find(None, Some(&program)), Ok(PathBuf::from(HERE)));
        assert_eq!(usual(Some(&program)), [PathBuf::from(HERE), shared, PathBuf::from(PACKAGED)],);
        assert_eq!(usual(Some(Path::new("/usr/bin/weir"))), [HERE, PACKAGED].map(PathBuf::from));
        std::fs::remove_dir_all(prefix).unwrap();
    }
}
