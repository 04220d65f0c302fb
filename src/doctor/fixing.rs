//! `--fix`: shows the changes, and writes them with `--write`.

use std::fs;
use std::io;
use std::path::Path;

use weir_conf::said::Said as Sentence;
use weir_conf::{At, Files, Tree, say};
use weir_doctor::mend::{self, Mended};
use weir_doctor::rule::same;
use weir_doctor::{Finding, Language, Said, Target, explain, rules, said};

use crate::files::Disk;
use crate::texts;

/// Largest number of undo diffs beside a file.
const UNDOS_MAX: usize = 99;

/// The two ways to look at a tree.
pub(super) struct Looks<'l> {
    /// The findings that the user asked for.
    pub look: &'l dyn Fn(&Tree) -> Vec<Finding>,
    /// All findings.
    pub examine: &'l dyn Fn(&Tree) -> Vec<Finding>,
}

/// Shows the fixes; repeats the examination until nothing more can be fixed. Writes the files if `write` is set. The
/// exit code says if something is left: a change that was not written, or a line that the program refuses.
///
/// # Errors
/// A file cannot be written, or the program would refuse a line of the changed files that it did not refuse before.
pub(super) fn fix(
    tree: &Tree,
    looks: &Looks<'_>,
    target: Target,
    write: bool,
    language: Language,
) -> Result<u8, Sentence> {
    let tell = |text: Said| eprintln!("{}", text.say(language));
    let whole = mend::mend_whole(tree, looks.look);
    let (program, known) = (target.name(), refused(tree, looks));
    let (new, old) = by_age(refused(&mend::with(tree, &whole.files), looks), &known);
    let say_old = || {
        for one in &old {
            let what = said!("{program} still refuses the file: ", "{program}가 여전히 이 파일을 거부합니다: ");
            tell(what + one.said());
        }
        u8::from(!old.is_empty())
    };
    for file in &whole.files {
        print!("{}", mend::diff(file));
    }
    if whole.left > 0 {
        let left = whole.left;
        tell(said!(
            "the doctor can fix {left} more, but not together with these: run it again after you have written this change",
            "{left}건은 함께 고칠 수 없습니다. 이 변경을 쓴 뒤 다시 실행하세요"
        ));
    }
    if whole.files.is_empty() {
        tell(said!("the doctor can fix nothing automatically", "자동으로 고칠 수 있는 것이 없습니다"));
        return Ok(say_old());
    }
    let would_refuse =
        said!("{program} would refuse the file after these changes: ", "변경하면 {program}가 이 파일을 거부합니다: ");
    if !write {
        say_old();
        for one in &new {
            tell(would_refuse.clone() + one.said());
        }
        tell(said!(
            "the doctor wrote nothing; --fix --write writes the changes",
            "아무것도 쓰지 않았습니다. 쓰려면 --fix --write를 지정하세요"
        ));
        return Ok(1);
    }
    still_reads(tree, &whole.files).map_err(sentence)?;
    if let Some(one) = new.first() {
        let nothing = said!("; the doctor wrote nothing", ". 아무것도 쓰지 않았습니다");
        return Err(sentence(would_refuse + one.said() + nothing));
    }
    write_all(&whole.files, language)?;
    let left = say_old();
    if left == 0 {
        let command = match target {
            Target::Nginx(_) => "nginx -t && nginx -s reload",
            Target::Weir => "weir edge -t && weir edge -s reload",
        };
        tell(said!("Apply it with: {command}", "적용하려면: {command}"));
    }
    Ok(left)
}

/// Writes each file, and before it an undo diff beside it.
///
/// # Errors
/// A file cannot be written, is not UTF-8, or has too many undo diffs. In the last two cases no file is written.
fn write_all(files: &[Mended], language: Language) -> Result<(), Sentence> {
    let mut undos = Vec::new();
    for file in files {
        if std::str::from_utf8(&file.before).is_err() {
            let said = said!(
                "{} is not UTF-8, so a diff could not restore it: the doctor wrote nothing",
                "{}은(는) UTF-8이 아니어서 diff로 되돌릴 수 없습니다. 아무것도 쓰지 않았습니다",
                file.name
            );
            return Err(sentence(said));
        }
        undos.push(free_undo(&file.name).map_err(sentence)?);
    }
    for (file, undo) in files.iter().zip(&undos) {
        fs::write(undo, mend::undo(file)).map_err(|error| say!(texts::OF_FILE, undo, error.to_string()))?;
        fs::write(&file.name, &file.after).map_err(|error| say!(texts::OF_FILE, &file.name, error.to_string()))?;
        let name = &file.name;
        let said = said!(
            "{name} written; to undo this: patch -d / -p1 < {undo}",
            "{name}에 썼습니다. 되돌리려면: patch -d / -p1 < {undo}"
        );
        eprintln!("{}", said.say(language));
    }
    Ok(())
}

/// A line that the program refuses.
#[derive(Clone)]
struct Refused {
    message: Said,
    place: Option<String>,
}

impl Refused {
    /// The message and the place.
    fn said(&self) -> Said {
        let place = self.place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
        self.message.clone() + same(place)
    }
}

/// The lines that the program refuses.
fn refused(tree: &Tree, looks: &Looks<'_>) -> Vec<Refused> {
    let place = |at: Option<At>| at.map(|at| explain::place(tree, at)).filter(|place| !place.is_empty());
    let all = (looks.examine)(tree).into_iter().filter(rules::refuses);
    all.map(|finding| Refused { place: place(finding.at), message: finding.what }).collect()
}

/// The new refusals, and those that were there before. A change moves lines, so a refusal is new if its message occurs
/// more often than before.
fn by_age(after: Vec<Refused>, before: &[Refused]) -> (Vec<Refused>, Vec<Refused>) {
    let count = |all: &[Refused], one: &Refused| all.iter().filter(|other| other.message == one.message).count();
    let all = after.clone();
    after.into_iter().partition(|one| count(&all, one) > count(before, one))
}

/// A sentence of the doctor as the other verbs have them.
fn sentence(said: Said) -> Sentence {
    Sentence::of_both(said.en, said.ko)
}

/// A free name for an undo diff. Earlier undo diffs stay; the latest has the largest number.
pub(super) fn free_undo(file: &str) -> Result<String, Said> {
    let names =
        std::iter::once(format!("{file}.undo.diff")).chain((2..=UNDOS_MAX).map(|n| format!("{file}.undo.{n}.diff")));
    let mut free = names.skip_while(|name| Path::new(name).exists());
    free.next().ok_or_else(|| {
        said!(
            "there are already {UNDOS_MAX} undo diffs of {file}: remove some of them; the doctor wrote nothing",
            "{file}에는 되돌릴 수 있는 변경이 이미 {UNDOS_MAX}건 있습니다. 그 diff를 몇 개 지우세요. 아무것도 쓰지 않았습니다"
        )
    })
}

/// The files with their changes, used to check that the configuration can still be read.
struct Changed<'m>(&'m [Mended]);

impl Files for Changed<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.0.iter().find(|file| file.name == path) {
            Some(file) => Ok(file.after.clone()),
            None => Disk.read(path),
        }
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        Disk.glob(pattern)
    }
}

fn still_reads(tree: &Tree, mended: &[Mended]) -> Result<(), Said> {
    let Some(main) = tree.files.first() else { return Ok(()) };
    let directory = main.name.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let directory = format!("{directory}/");
    let (_, before) = weir_doctor::load(&Disk, &main.name, &directory);
    let (changed, after) = weir_doctor::load(&Changed(mended), &main.name, &directory);
    match after.iter().find(|problem| !before.iter().any(|old| old.what == problem.what)) {
        Some(problem) => {
            let problem = problem.sentence(&changed);
            Err(said!(
                "the changes would make the configuration invalid ({problem}): the doctor wrote nothing",
                "변경하면 설정을 읽을 수 없게 됩니다({problem}). 아무것도 쓰지 않았습니다"
            ))
        }
        None => Ok(()),
    }
}
