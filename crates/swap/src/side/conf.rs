//! A configuration as one side runs it.

use std::path::Path;

use weir_conf::{Files, MemoryFiles, Problem, Tree};
use weir_edge::load::{self, ConfOrigin, Dashboard, Loaded};
use weir_http::exchange::conf::Conf;
use weir_http::hold::paths::Paths;
use weir_words::{Said, said};

use super::edits;
use super::program::SideProgram;

/// The prefix of this weir without `--prefix`.
const PREFIX: &str = "/usr/share/nginx/";
/// Most problems that a refusal shows.
const SHOWN_MAX: usize = 20;

/// A configuration, and the program that runs it.
pub struct SideConf {
    /// Its file, and the directories of relative names.
    pub origin: ConfOrigin,
    /// The files as they were read.
    pub tree: Tree,
    /// The configuration as weir compiled it. `None`: weir refuses it.
    pub conf: Option<Conf>,
    /// The problems that weir found in it.
    pub problems: Vec<Problem>,
    /// The program.
    pub program: SideProgram,
}

impl SideConf {
    /// Reads a configuration from its files. `prefix` is the directory of relative names, as with `-p`.
    ///
    /// # Errors
    /// A sentence for the user: nothing can be read, or the program is this weir and refuses the configuration.
    pub fn read(file: &Path, program: SideProgram, prefix: Option<&str>, files: &dyn Files) -> Result<SideConf, Said> {
        let shown = file.display().to_string();
        let of_program = program.other.as_ref().and_then(|other| other.build.prefix());
        let slashed = |path: &str| if path.ends_with('/') { path.to_owned() } else { format!("{path}/") };
        let prefix = slashed(prefix.or(of_program).unwrap_or(PREFIX));
        let conf_prefix = slashed(shown.rsplit_once('/').map_or("/", |(directory, _)| directory));
        let origin = ConfOrigin {
            file: shown,
            paths: Paths { prefix, conf_prefix, access_log: None, temporary: None },
            dashboard: Dashboard::Decided(None),
            ..ConfOrigin::default()
        };
        SideConf::of(origin, program, files)
    }

    /// Reads a configuration from its origin.
    ///
    /// # Errors
    /// As [`SideConf::read`].
    pub fn of(origin: ConfOrigin, program: SideProgram, files: &dyn Files) -> Result<SideConf, Said> {
        let Loaded { tree, problems, conf } = load::load(&origin, files, 1);
        let side = SideConf { origin, tree, conf, problems, program };
        if side.tree.root.is_empty() || (side.program.other.is_none() && side.conf.is_none()) {
            return Err(side.refusal());
        }
        if side.program.is_weir()
            && let Some(why) = edits::obstacle(&side.tree)
        {
            let cannot = said!(
                "weir cannot stand in with this configuration: ",
                "이 설정으로는 weir를 따로 실행할 수 없습니다: "
            );
            return Err(cannot + why);
        }
        Ok(side)
    }

    /// The same side with another text in the place of its files. The text has no includes.
    ///
    /// # Errors
    /// As [`SideConf::read`].
    pub fn with_text(&self, text: &str) -> Result<SideConf, Said> {
        let files = MemoryFiles::new().with(&self.origin.file, text);
        SideConf::of(self.origin.clone(), self.program.clone(), &files)
    }

    fn refusal(&self) -> Said {
        let all = self.problems.iter().take(SHOWN_MAX).map(|problem| problem.sentence(&self.tree));
        let all: Vec<String> = all.collect();
        let (file, all) = (&self.origin.file, all.join("; "));
        said!("weir refuses {file}: {all}", "weir가 설정을 거부합니다: {file}: {all}")
    }
}
