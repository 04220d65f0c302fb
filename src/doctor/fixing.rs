//! `--fix`: shows the changes, and writes them with `--write`.

use std::path::Path;

use weir_conf::Tree;
use weir_doctor::fixes::{self, Dropped, Judges, Whole};
use weir_doctor::mend::{self, Mended};
use weir_doctor::{Facts, Finding, FindingLevel, Target, diff, explain, rules};
use weir_words::{Language, Said, said, say};

use crate::files::Disk;
use crate::texts;

use super::nginx::{self, Nginx};
use super::owners;
use super::undo::Undo;

/// A configuration to fix.
pub(super) struct Fixing<'f> {
    pub tree: &'f Tree,
    pub target: Target,
    pub facts: &'f Facts,
    /// The rules that the user named. If there are none, every finding that is wrong or at risk is fixed.
    pub only: &'f [String],
    /// The nginx that will read the files, if there is one.
    pub nginx: Option<Nginx>,
    /// The folder that has the machine's files.
    pub root: &'f Path,
    pub write: bool,
    pub language: Language,
}

impl Fixing<'_> {
    /// Shows the fixes, and the reasons for those that are not made. Writes the files if the user asks. The exit code
    /// says if something is left: a change that was not written, a fix that is not made, or a line that the program
    /// refuses.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn run(&self) -> Result<u8, Said> {
        let program = self.target.name();
        let nginx = self.nginx.as_ref().filter(|nginx| self.accepts(nginx));
        let refuses = |files: &[Mended]| nginx.and_then(|nginx| self.refusal(nginx, &mend::with(self.tree, files)));
        let judges = Judges {
            is_wanted: &|finding| self.is_wanted(finding),
            forbids: &|tree, finding| self.forbidden(tree, finding),
            refuses: &refuses,
        };
        let whole = fixes::choose(self.tree, self.target, self.facts, &judges);
        whole.files.iter().for_each(|file| print!("{}", diff::diff(file)));
        self.tell_left(&whole);
        let refused = refused(self.tree, &self.examine(&mend::with(self.tree, &whole.files)));
        for one in &refused {
            self.tell(
                said!("{program} still refuses the file: ", "{program}가 여전히 이 파일을 거부합니다: ") + one.clone(),
            );
        }
        let left = u8::from(!refused.is_empty() || !whole.dropped.is_empty());
        if whole.files.is_empty() {
            self.tell(said!("the doctor can fix nothing automatically", "자동으로 고칠 수 있는 것이 없습니다"));
            return Ok(left);
        }
        if !self.write {
            eprintln!("{}", say!(texts::WROTE_NOTHING).say(self.language));
            return Ok(1);
        }
        self.write(&whole.files)?;
        if refused.is_empty() {
            let command = match self.target {
                Target::Nginx(_) => "nginx -t && nginx -s reload",
                Target::Weir => "weir edge -t && weir edge -s reload",
            };
            self.tell(said!("Apply it with: {command}", "적용하려면: {command}"));
        }
        Ok(left)
    }

    fn tell(&self, text: Said) {
        eprintln!("{}", text.say(self.language));
    }

    fn examine(&self, tree: &Tree) -> Vec<Finding> {
        weir_doctor::examine(tree, self.target, self.facts)
    }

    /// A note has no effect, so it is fixed only if the user names its rule.
    fn is_wanted(&self, finding: &Finding) -> bool {
        match self.only {
            [] => finding.level < FindingLevel::Note,
            only => only.iter().any(|name| name == finding.rule),
        }
    }

    /// Whether nginx accepts the configuration as it is. If it does not, it cannot judge a change.
    fn accepts(&self, nginx: &Nginx) -> bool {
        match nginx.refusal(self.tree) {
            Ok(None) => true,
            Ok(Some(why)) => {
                self.tell(
                    said!(
                        "nginx refuses the files as they are, so only weir's reader checks the changes: ",
                        "nginx가 지금 파일을 거부하므로 weir의 해석기로만 변경을 확인합니다: "
                    ) + why,
                );
                false
            }
            Err(error) => {
                self.tell(nginx::unread(&error));
                false
            }
        }
    }

    fn refusal(&self, nginx: &Nginx, tree: &Tree) -> Option<Said> {
        nginx.refusal(tree).unwrap_or_else(|error| Some(nginx::unread(&error)))
    }

    /// The reason why a finding's lines are not the user's to change.
    fn forbidden(&self, tree: &Tree, finding: &Finding) -> Option<Said> {
        let owned = finding.fix.iter().find_map(|edit| {
            let source = tree.files.get(edit.file as usize)?;
            let of_lines = || owners::of_lines(&source.bytes, edit).map(str::to_owned);
            let owner = owners::of_file(self.root, &source.name, &source.bytes).or_else(of_lines)?;
            Some((source.name.clone(), owner))
        });
        owned.map(|(file, owner)| {
            let korean = if owner == owners::GENERATOR { "이 파일을 만드는 프로그램" } else { &owner };
            said!(
                "{owner} owns this place in {file}, so the doctor does not change it",
                "{file}의 이 부분은 바꾸지 않습니다. 관리하는 곳: {korean}"
            )
        })
    }

    /// Says which fixes are not made, and why.
    fn tell_left(&self, whole: &Whole) {
        for Dropped { rule, place, why } in &whole.dropped {
            let place = if place.is_empty() { String::new() } else { format!("{place} ") };
            self.tell(said!("{place}[{rule}] is not fixed: ", "{place}[{rule}] 고치지 않습니다: ") + why.clone());
        }
        if whole.left > 0 {
            let left = whole.left;
            self.tell(said!(
                "the doctor did not try {left} more: run it again after you have written this change",
                "{left}건은 시도하지 않았습니다. 이 변경을 쓴 뒤 다시 실행하세요"
            ));
        }
        let mut notes: Vec<&str> =
            self.examine(self.tree).iter().filter(|one| self.is_note(one)).map(|one| one.rule).collect();
        notes.dedup();
        if !notes.is_empty() && self.only.is_empty() {
            let notes = notes.join(",");
            self.tell(said!(
                "notes are not fixed unless you name them: --only {notes}",
                "참고는 이름을 지정해야 고칩니다: --only {notes}"
            ));
        }
    }

    fn is_note(&self, finding: &Finding) -> bool {
        finding.level == FindingLevel::Note && !finding.fix.is_empty()
    }

    /// Writes the files, and reads the whole configuration again: it must be the one that was checked.
    fn write(&self, files: &[Mended]) -> Result<(), Said> {
        let undo = Undo::of(self.root)?;
        undo.write(files)?;
        if !self.is_as_checked(files) {
            undo.take_back()?;
            return Err(say!(texts::FIX_NOT_AS_CHECKED));
        }
        for file in files {
            let name = &file.name;
            let conffile = owners::conffile_of(self.root, name).map_or(Said::from(""), |package| {
                said!(
                    " (a configuration file of the package {package}: its next upgrade asks whether to keep it)",
                    " (패키지 {package}의 설정 파일입니다. 다음 업그레이드가 이 파일을 유지할지 묻습니다)"
                )
            });
            self.tell(said!("{name} written", "{name}에 썼습니다") + conffile);
        }
        eprintln!("{}", say!(texts::UNDO_WITH).say(self.language));
        Ok(())
    }

    /// Whether the files on the disk are those that were checked, with every `include`.
    fn is_as_checked(&self, files: &[Mended]) -> bool {
        let Some(main) = self.tree.files.iter().find(|source| !source.is_command_line) else { return true };
        let directory = main.name.rsplit_once('/').map_or("/", |(directory, _)| directory);
        let (now, _) = weir_doctor::load(&Disk, &main.name, &format!("{directory}/"));
        now.files == mend::with(self.tree, files).files
    }
}

/// The lines that the program refuses, with their places.
fn refused(tree: &Tree, findings: &[Finding]) -> Vec<Said> {
    let place = |finding: &Finding| {
        let place = finding.at.map(|at| explain::place(tree, at)).filter(|place| !place.is_empty());
        place.map_or(String::new(), |place| format!(" ({place})"))
    };
    let refused = findings.iter().filter(|finding| rules::refuses(finding));
    refused.map(|finding| finding.what.clone() + Said::from(place(finding))).collect()
}
