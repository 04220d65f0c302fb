//! Definitions and uses of names, and their renaming over all files.

use std::collections::HashSet;

use weir_conf::edit::Edit;
use weir_conf::{Span, Tree};
use weir_words::{Said, said};

use crate::look::Look;
use crate::mentions::{Mention, Mentions, NameKey, NameScope};
use crate::names::{NamedKind, ZONES, is_variable_byte};
use crate::place::FilePlace;
use crate::under::under;
use crate::variables;

/// Most bytes of a new name.
const NAME_BYTES_MAX: usize = 256;

/// Most rounds in which names that share a place are collected for a renaming. Each round but the last adds a name.
const ROUNDS_MAX: usize = 1_000;

/// The places that define the name at this offset; for an `include`, the beginnings of its files.
pub fn definitions(look: &Look<'_>, file: u32, offset: u32) -> Vec<FilePlace> {
    let mentions = look.mentions();
    let hits = mentions.at(file, offset);
    if hits.is_empty() {
        return included(look, file, offset);
    }
    let defined = hits.iter().flat_map(|hit| mentions.definitions(&hit.key()));
    in_order(defined.map(|one| one.place))
}

/// The files of the `include` at this offset.
fn included(look: &Look<'_>, file: u32, offset: u32) -> Vec<FilePlace> {
    let is_here = |span: &Span| span.start <= offset && offset <= span.end;
    let includes = look.tree.includes.iter().filter(|include| include.at.file == file && is_here(&include.at.span));
    in_order(includes.flat_map(|include| &include.files).map(|file| FilePlace { file: *file, span: Span::default() }))
}

/// The places that use the name at this offset, and with `with_definition` those that define it, too.
pub fn references(look: &Look<'_>, file: u32, offset: u32, with_definition: bool) -> Vec<FilePlace> {
    let mentions = look.mentions();
    let mut places = Vec::new();
    for hit in mentions.at(file, offset) {
        let key = hit.key();
        let definitions: HashSet<FilePlace> = mentions.definitions(&key).iter().map(|one| one.place).collect();
        let all = mentions.of(&key).map(|one| one.place);
        places.extend(all.filter(|place| with_definition || !definitions.contains(place)));
    }
    in_order(places.into_iter())
}

/// The bytes of the name at this offset, if it can be renamed.
///
/// # Errors
/// There is no name, or the name is not the configuration's own.
pub fn prepare_rename(look: &Look<'_>, file: u32, offset: u32) -> Result<FilePlace, Said> {
    Ok(renamed(look, file, offset)?.place)
}

/// The edits that give the name at this offset a new name in all files. A `$` or `@` before the new name is left out.
///
/// # Errors
/// There is no name, the name is not the configuration's own, or nginx would refuse or confuse the new one.
pub fn rename(look: &Look<'_>, file: u32, offset: u32, new: &str) -> Result<Vec<Edit>, Said> {
    let mentions = look.mentions();
    let kind = renamed(look, file, offset)?.kind;
    let new = bare(kind, new);
    check(kind, new)?;
    let keys = together(mentions, file, offset);
    for key in &keys {
        is_free(look, key, new)?;
    }
    let places = in_order(keys.iter().flat_map(|key| mentions.of(key)).map(|one| one.place));
    let edit = |place: &FilePlace| Edit { file: place.file, span: place.span, with: new.as_bytes().to_vec() };
    Ok(places.iter().map(edit).filter(|edit| is_other(look.tree, edit)).collect())
}

/// The mention at this offset, if its name can have another one.
fn renamed<'l>(look: &'l Look<'_>, file: u32, offset: u32) -> Result<&'l Mention, Said> {
    let mentions = look.mentions();
    let hits = mentions.at(file, offset);
    // A use outside of all servers is a use in each of them, too.
    let defined = hits.iter().find(|hit| mentions.is_defined(&hit.key()));
    let Some(hit) = defined.or(hits.first()).copied() else {
        let word = under(look.tree, file, offset).word;
        let text = String::from_utf8_lossy(word.of(look.bytes(file))).into_owned();
        return Err(said!(
            "\"{}\" is no name that this configuration defines",
            "\"{}\"은(는) 이 설정이 정의하는 이름이 아닙니다",
            text
        ));
    };
    let is_stream = hit.scope == NameScope::Stream;
    if hit.kind == NamedKind::Variable && variables::is_built_in(&hit.name, is_stream) {
        return Err(said!(
            "\"${}\" is a variable of nginx, so it has no other name",
            "\"${}\"은(는) nginx의 변수이므로 이름을 바꿀 수 없습니다",
            hit.name
        ));
    }
    if !mentions.is_defined(&hit.key()) {
        return Err(said!(
            "weir finds no definition of \"{}\" in the files that it can read",
            "읽을 수 있는 파일에 \"{}\"의 정의가 없습니다",
            hit.name
        ));
    }
    Ok(hit)
}

/// All names that must change together with the one at this offset. A file that is included twice may have one place for
/// two names.
fn together(mentions: &Mentions, file: u32, offset: u32) -> Vec<NameKey> {
    let mut known: HashSet<NameKey> = HashSet::new();
    let hits = mentions.at(file, offset).into_iter().map(Mention::key);
    let mut keys: Vec<NameKey> = hits.filter(|key| known.insert(key.clone())).collect();
    let mut places: HashSet<FilePlace> = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let before = known.len();
        places.extend(keys.iter().flat_map(|key| mentions.of(key)).map(|one| one.place));
        for one in mentions.all.iter().filter(|one| places.contains(&one.place)) {
            let key = one.key();
            if known.insert(key.clone()) {
                keys.push(key);
            }
        }
        if known.len() == before {
            break;
        }
    }
    keys
}

/// The new name without the sign before it, as a user may have typed it.
fn bare(kind: NamedKind, new: &str) -> &str {
    let new = new.trim();
    match kind {
        NamedKind::Variable => {
            let name = new.strip_prefix('$').unwrap_or(new);
            name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
        }
        NamedKind::NamedLocation => new.strip_prefix('@').unwrap_or(new),
        _ => new,
    }
}

/// Whether nginx can read the new name wherever the old one stands.
fn check(kind: NamedKind, new: &str) -> Result<(), Said> {
    if new.is_empty() || new.len() > NAME_BYTES_MAX {
        return Err(said!("a name has 1 to {NAME_BYTES_MAX} bytes", "이름은 1~{NAME_BYTES_MAX}바이트입니다"));
    }
    if kind == NamedKind::Variable {
        if new.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(said!(
                "the name of a variable begins with a letter or \"_\": nginx reads \"${}\" as a group of a pattern",
                "변수 이름은 글자나 \"_\"로 시작합니다. nginx는 \"${}\"을(를) 패턴의 그룹으로 읽습니다",
                new
            ));
        }
        if !new.bytes().all(|byte| is_variable_byte(&byte)) {
            return Err(said!(
                "the name of a variable has letters of ASCII, digits and \"_\" only; \"{}\" has others",
                "변수 이름에는 ASCII 글자와 숫자, \"_\"만 쓸 수 있습니다. \"{}\"에는 다른 문자가 있습니다",
                new
            ));
        }
        return Ok(());
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !new.bytes().all(is_plain) {
        return Err(said!(
            "a name here has letters of ASCII, digits, \"_\", \"-\" and \".\" only; \"{}\" has others",
            "여기 이름에는 ASCII 글자와 숫자, \"_\", \"-\", \".\"만 쓸 수 있습니다. \"{}\"에는 다른 문자가 있습니다",
            new
        ));
    }
    Ok(())
}

/// Whether nothing else has the new name.
fn is_free(look: &Look<'_>, key: &NameKey, new: &str) -> Result<(), Said> {
    let mentions = look.mentions();
    let (kind, scope, old) = key;
    let name = if kind.ignores_case() { new.to_ascii_lowercase() } else { new.to_owned() };
    if name == *old {
        return Ok(());
    }
    let is_stream = *scope == NameScope::Stream;
    if *kind == NamedKind::Variable && variables::is_built_in(&name, is_stream) {
        return Err(said!("\"${}\" is a variable of nginx", "\"${}\"은(는) nginx의 변수입니다", name));
    }
    let is_taken_word = match kind {
        NamedKind::LogFormat => name == "combined",
        kind if kind.is_zone() => name == "off",
        _ => false,
    };
    if is_taken_word {
        return Err(said!("nginx gives \"{}\" a meaning of its own", "\"{}\"은(는) nginx에서 다른 뜻입니다", name));
    }
    let same = mentions.of(&(*kind, *scope, name.clone())).next();
    // nginx knows zones of all kinds by their names.
    let zones = ZONES.iter().filter(|_| kind.is_zone());
    let mut others =
        zones.flat_map(|other| [NameScope::Http, NameScope::Stream].map(|scope| (*other, scope, name.clone())));
    let zone = || others.find_map(|key| mentions.definitions(&key).first().copied());
    let Some(taken) = same.or_else(zone) else { return Ok(()) };
    let line = look.tree.files.get(taken.place.file as usize).map_or(0, |file| file.line_of(taken.place.span.start));
    let file = look.name(taken.place.file);
    let noun = taken.kind.noun();
    Err(Said::of_both(
        format!("the {} \"{new}\" is there already, in {file}:{line}", noun.en),
        weir_words::particles(&format!("{} \"{new}\"이(가) 이미 있습니다: {file}:{line}", noun.ko)),
    ))
}

/// Whether an edit changes something.
fn is_other(tree: &Tree, edit: &Edit) -> bool {
    tree.files.get(edit.file as usize).is_some_and(|file| edit.span.of(&file.bytes) != edit.with.as_slice())
}

/// The places in the order of the files, each once.
fn in_order(places: impl Iterator<Item = FilePlace>) -> Vec<FilePlace> {
    let mut places: Vec<FilePlace> = places.collect();
    places.sort_by_key(FilePlace::order);
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::mentions::tests::tree;
    use weir_doctor::Target;
    use weir_words::Language;

    fn look(tree: &Tree) -> Look<'_> {
        Look::new(tree, Target::Weir, Language::English)
    }

    /// The file and the offset of the first `|` of some texts, and the tree of the texts without it.
    fn at(files: &[(&str, &str)]) -> (Tree, u32, u32) {
        let clean: Vec<(String, String)> =
            files.iter().map(|(name, text)| ((*name).to_owned(), text.replace('|', ""))).collect();
        let pairs: Vec<(&str, &str)> = clean.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let tree = tree(&pairs);
        let (name, text) = files.iter().find(|(_, text)| text.contains('|')).expect("a |");
        let file = tree.files.iter().position(|file| file.name == *name).expect("a file of the tree");
        (tree, u32::try_from(file).unwrap(), u32::try_from(text.find('|').unwrap()).unwrap())
    }

    fn places(tree: &Tree, places: &[FilePlace]) -> Vec<String> {
        let shown = places.iter().map(|place| {
            let file = &tree.files[place.file as usize];
            let text = String::from_utf8_lossy(place.span.of(&file.bytes)).into_owned();
            format!("{}:{} {text}", file.name, place.span.start)
        });
        shown.collect()
    }

    const SITE: &str = "upstream app { server a:1; } server { location / { proxy_pass http://a|pp:80/x; } }";

    #[test]
    fn definitions_and_references_lead_to_each_other() {
        let main = "http { include /site; limit_req_zone $a zone=one:1m rate=1r/s; server { limit_req zone=one; } }";
        let (tree, file, offset) = at(&[("/n", main), ("/site", SITE)]);
        let look = look(&tree);
        assert_eq!(places(&tree, &definitions(&look, file, offset)), ["/site:9 app"]);
        assert_eq!(places(&tree, &references(&look, file, offset, false)), ["/site:69 app"]);
        assert_eq!(places(&tree, &references(&look, file, 9, true)), ["/site:9 app", "/site:69 app"]);
        let zone = u32::try_from(main.find("zone=one;").unwrap() + 6).unwrap();
        assert_eq!(places(&tree, &definitions(&look, 0, zone)), ["/n:45 one"]);
        let include = u32::try_from(main.find("/site").unwrap()).unwrap();
        assert_eq!(places(&tree, &definitions(&look, 0, include)), ["/site:0 "]);
        assert_eq!(definitions(&look, 0, 0), []);
    }

    fn renamed(files: &[(&str, &str)], new: &str) -> Result<Vec<String>, String> {
        let (tree, file, offset) = at(files);
        let edits = rename(&look(&tree), file, offset, new).map_err(|said| said.en().to_owned())?;
        let of_file = |index: usize| {
            let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == index).collect();
            String::from_utf8(weir_conf::edit::apply(&tree.files[index].bytes, &own).unwrap()).unwrap()
        };
        Ok((0..tree.files.len()).map(of_file).collect())
    }

    #[test]
    fn a_name_changes_wherever_it_stands() {
        let text = SITE.replace('|', "");
        assert_eq!(renamed(&[("/n", SITE)], "web").unwrap(), [text.replace("app", "web")]);
        let vars = "map $x $|Mine { default 1; } server { return 200 \"${mine}a $mine\"; location ~ ^/$mine$ { } }";
        let expected = "map $x $new { default 1; } server { return 200 \"${new}a $new\"; location ~ ^/$mine$ { } }";
        for new in ["new", "$new", "${new}"] {
            assert_eq!(renamed(&[("/n", vars)], new).unwrap(), [expected]);
        }
        let named = "error_page 404 @a; server { location @a|  { } try_files $uri @a; } server { location @b { } error_page 404 @b; }";
        let expected = named.replace('|', "").replace("@a", "@c");
        assert_eq!(renamed(&[("/n", named)], "@c").unwrap(), [expected]);
    }

    #[test]
    fn a_part_that_two_servers_include_changes_both() {
        let main = "server { include /p; location @a { } } server { include /p; location @a { } }";
        let done = renamed(&[("/n", main), ("/p", "error_page 404 @|a;")], "b").unwrap();
        assert_eq!(done, [main.replace("@a", "@b"), "error_page 404 @b;".to_owned()]);
        let done = renamed(&[("/n", &main.replacen("@a", "@|a", 1)), ("/p", "error_page 404 @a;")], "b").unwrap();
        assert_eq!(done[0], main.replace("@a", "@b"));
    }

    #[test]
    fn a_bad_name_is_refused_by_name() {
        let map = "map $x $|mine { default 1; } map $x $other { default 1; }";
        let zones = "limit_req_zone $a zone=o|ne:1m rate=1r/s; limit_conn_zone $a zone=two:1m;";
        for (text, new, expected) in [
            (map, "1a", "begins with a letter"),
            (map, "a-b", "has others"),
            (map, "", "1 to 256 bytes"),
            (map, "Other", "there already, in /n:1"),
            (map, "uri", "a variable of nginx"),
            (map, "http_x", "a variable of nginx"),
            (zones, "two", "the zone \"two\" is there already"),
            (zones, "a:b", "has others"),
            (zones, "off", "meaning of its own"),
            ("log_format a|b '$uri';", "combined", "meaning of its own"),
            ("server { return 200 $u|ri; }", "a", "so it has no other name"),
            ("server { return 200 $n|othing; }", "a", "finds no definition"),
            ("server { lis|ten 80; }", "a", "is no name"),
            ("server { location / { proxy_pass http://oth|er; } }", "a", "is no name"),
        ] {
            let error = renamed(&[("/n", text)], new).expect_err(text);
            assert!(error.contains(expected), "{text} {new}: {error}");
        }
        assert!(renamed(&[("/n", map)], "MINE").is_ok());
    }
}
