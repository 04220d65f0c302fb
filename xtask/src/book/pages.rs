//! The pages of the book in one language, in their order.
//!
//! The index by question (`docs/guide/README.md`) orders the guide, so a guide that it does not name is an error. The
//! place of any other page follows from its path.

use crate::files::{read, tracked};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The index by question; its Korean is beside it.
const INDEX: &str = "docs/guide/README.md";
const GUIDE: &str = "docs/guide/";
/// The pages outside of `docs/`.
const OTHERS: [&str; 4] = ["README", "CHANGELOG", "SECURITY", "labs/README"];

/// The parts after the guide: the title in each language, and the beginnings of the paths of their pages. A page is in
/// the first part that has its beginning.
const PARTS: [([&str; 2], &[&str]); 4] = [
    (["Reference", "참조"], &["docs/reference/"]),
    (["Experiments and scores", "실험과 점수"], &["docs/labs", "labs/", "docs/scores"]),
    (["Reasons", "결정의 이유"], &["docs/why/"]),
    (["The project", "프로젝트"], &["CHANGELOG.md", "SECURITY.md", "docs/"]),
];

/// A language of the book.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Language {
    English,
    Korean,
}

impl Language {
    /// Both.
    pub const ALL: [Self; 2] = [Self::English, Self::Korean];

    /// The name of the book's folder, and the value of `lang` in HTML.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Korean => "ko",
        }
    }

    /// The language of a file, by its name.
    pub fn of(path: &str) -> Self {
        if path.ends_with(".ko.md") { Self::Korean } else { Self::English }
    }
}

/// The documents, and the names of all files of the checkout.
pub struct Sources {
    /// The text of each document, by its path.
    pub texts: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Sources {
    /// Reads the documents that git has.
    pub fn read(root: &Path) -> Result<Self, String> {
        let files: BTreeSet<String> = tracked(root, ".")?.into_iter().collect();
        let is_page = |path: &&String| {
            let name = path.strip_suffix(".md").map(|name| name.strip_suffix(".ko").unwrap_or(name));
            name.is_some_and(|name| path.starts_with("docs/") || OTHERS.contains(&name))
        };
        let texts = files.iter().filter(is_page).map(|path| Ok((path.clone(), read(&root.join(path))?)));
        Ok(Self { texts: texts.collect::<Result<_, String>>()?, files })
    }

    /// Whether git has a file or a folder of this path.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains(path)
            || self.files.range(folder.clone()..).next().is_some_and(|file| file.starts_with(&folder))
    }

    /// The document of a page in a language: English, if there is no other.
    fn source<'p>(&self, english: &'p str, language: Language) -> std::borrow::Cow<'p, str> {
        let korean = korean(english);
        match language {
            Language::Korean if self.texts.contains_key(&korean) => korean.into(),
            _ => english.into(),
        }
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { texts: texts.collect(), files: files.iter().map(|(path, _)| (*path).to_owned()).collect() }
    }

    #[cfg(test)]
    pub fn and(mut self, others: &[&str]) -> Self {
        self.files.extend(others.iter().map(|path| (*path).to_owned()));
        self
    }
}

/// A page of one book.
#[derive(Debug, PartialEq)]
pub struct BookPage {
    /// Its document.
    pub source: String,
    /// Its path in the book, which is the same in each language.
    pub place: String,
    pub title: String,
    /// Whether it stands below the page before it.
    is_below: bool,
}

/// The pages below a title.
pub struct BookPart {
    title: String,
    pub pages: Vec<BookPage>,
}

/// All pages in one language.
pub struct Book {
    pub language: Language,
    pub parts: Vec<BookPart>,
}

impl Book {
    /// Puts the documents into order; an error names a guide that no index names, and a translation of nothing.
    pub fn of(sources: &Sources, language: Language) -> Result<Self, String> {
        let mut rest: BTreeSet<&str> = BTreeSet::new();
        for path in sources.texts.keys() {
            let english = english(path);
            if !sources.texts.contains_key(&english) {
                return Err(format!("{path}: there is no {english} that it translates"));
            }
            if Language::of(path) == Language::English {
                rest.insert(path);
            }
        }
        let mut shelf = Shelf { sources, language, rest };
        let first = ["README.md", INDEX].into_iter().map(|path| shelf.take(path)).collect::<Result<Vec<_>, _>>()?;
        let mut parts = vec![BookPart { title: String::new(), pages: first.into_iter().flatten().collect() }];
        parts.extend(shelf.guides()?);
        for (titles, beginnings) in PARTS {
            let mut pages = Vec::new();
            for path in shelf.beginning_with(beginnings) {
                pages.extend(shelf.take(path)?);
            }
            parts.push(BookPart { title: titles[language as usize].to_owned(), pages });
        }
        parts.retain(|part| !part.pages.is_empty());
        Ok(Self { language, parts })
    }

    /// Every page, in order.
    pub fn pages(&self) -> impl Iterator<Item = &BookPage> {
        self.parts.iter().flat_map(|part| &part.pages)
    }

    /// The order as mdBook reads it.
    pub fn summary(&self) -> String {
        let mut text = String::from("# Summary\n\n");
        for part in &self.parts {
            let is_first = part.title.is_empty();
            if !is_first {
                let _ = writeln!(text, "\n# {}\n", part.title);
            }
            for page in &part.pages {
                let before = if is_first {
                    ""
                } else if page.is_below {
                    "    - "
                } else {
                    "- "
                };
                let title = page.title.replace('[', "\\[").replace(']', "\\]");
                let _ = writeln!(text, "{before}[{title}]({})", page.place);
            }
        }
        text
    }
}

/// The documents that have no place yet.
struct Shelf<'s> {
    sources: &'s Sources,
    language: Language,
    /// The paths of the English ones.
    rest: BTreeSet<&'s str>,
}

impl<'s> Shelf<'s> {
    /// The page of an English path, and below it the pages of the folder of its name that it names; nothing if it has a place.
    fn take(&mut self, path: &str) -> Result<Vec<BookPage>, String> {
        if !self.rest.remove(path) {
            return Ok(Vec::new());
        }
        let page = self.page(path, false)?;
        let text = self.sources.texts.get(&page.source).map_or("", String::as_str);
        let named: BTreeSet<String> = links(text).filter_map(|link| named_by(&page.source, link)).collect();
        let folder = format!("{}/", path.trim_end_matches(".md"));
        let mut pages = vec![page];
        for below in self.beginning_with(&[&folder]).into_iter().filter(|below| named.contains(*below)) {
            self.rest.remove(below);
            pages.push(self.page(below, true)?);
        }
        Ok(pages)
    }

    /// The parts of the index: a part is a heading of it, and has the guides that are first named there.
    fn guides(&mut self) -> Result<Vec<BookPart>, String> {
        let index = self.sources.source(INDEX, self.language);
        let text = self.sources.texts.get(index.as_ref()).ok_or_else(|| format!("{INDEX} is not there"))?;
        let mut parts = vec![BookPart { title: String::new(), pages: Vec::new() }];
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                parts.push(BookPart { title: title.to_owned(), pages: Vec::new() });
            }
            for path in links(line).filter_map(|link| named_by(&index, link)).filter(|path| path.starts_with(GUIDE)) {
                let pages = self.take(&path)?;
                if let Some(part) = parts.last_mut() {
                    part.pages.extend(pages);
                }
            }
        }
        match self.beginning_with(&[GUIDE]).first() {
            Some(path) => Err(format!("{path}: {index} does not name it; add the question that it answers")),
            None => Ok(parts),
        }
    }

    fn beginning_with(&self, beginnings: &[&str]) -> Vec<&'s str> {
        self.rest.iter().copied().filter(|path| beginnings.iter().any(|begin| path.starts_with(begin))).collect()
    }

    fn page(&self, path: &str, is_below: bool) -> Result<BookPage, String> {
        let source = self.sources.source(path, self.language).into_owned();
        let title = self.sources.texts.get(&source).and_then(|text| text.lines().next()?.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("{source}:1: it does not begin with `# Title`"))?.to_owned();
        Ok(BookPage { source, place: place(path), title, is_below })
    }
}

/// The path of the Korean of a document.
pub fn korean(english: &str) -> String {
    format!("{}.ko.md", english.trim_end_matches(".md"))
}

/// The path of the English of a document.
pub fn english(path: &str) -> String {
    path.strip_suffix(".ko.md").map_or_else(|| path.to_owned(), |name| format!("{name}.md"))
}

/// The place of an English document in a book: servers show `index.html` for a folder.
pub fn place(path: &str) -> String {
    path.strip_suffix("README.md").map_or_else(|| path.to_owned(), |folder| format!("{folder}index.md"))
}

/// The path that a link leads to, from the top: nothing if it leads out of the checkout.
pub fn resolved(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The English path of the document that a link names.
fn named_by(from: &str, link: &str) -> Option<String> {
    let path = link.split('#').next().unwrap_or_default();
    Some(english(&resolved(from, path)?))
}

/// The targets of the links in a text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILES: [(&str, &str); 9] = [
        ("README.md", "# weir\n"),
        (
            INDEX,
            "# The guide\n\n## By question\n\n- [b](b.md#part), [a](a.md)\n\n## By command\n\n[a](a.md) [c](c.md)\n",
        ),
        ("docs/guide/README.ko.md", "# 안내\n\n## 질문\n\n[a](a.ko.md) [b](b.md) [c](c.md)\n"),
        ("docs/guide/a.md", "# A\n\n[more](a/more.md)\n"),
        ("docs/guide/a.ko.md", "# 가\n\n[more](a/more.md)\n"),
        ("docs/guide/a/more.md", "# More [of] it\n"),
        ("docs/guide/b.md", "# B\n"),
        ("docs/guide/c.md", "# C\n"),
        ("docs/reference/all.md", "# All\n"),
    ];

    fn without(path: &str) -> Vec<(&str, &str)> {
        FILES.into_iter().filter(|(name, _)| *name != path).collect()
    }

    #[test]
    fn the_index_orders_the_guide() {
        let summary = |language| Book::of(&Sources::of(&FILES), language).unwrap().summary();
        let english = "# Summary\n\n[weir](index.md)\n[The guide](docs/guide/index.md)\n\n# By question\n\n- [B](docs/guide/b.md)\n- [A](docs/guide/a.md)\n    - [More \\[of\\] it](docs/guide/a/more.md)\n\n# By command\n\n- [C](docs/guide/c.md)\n\n# Reference\n\n- [All](docs/reference/all.md)\n";
        assert_eq!(summary(Language::English), english);
        let korean = summary(Language::Korean);
        assert!(korean.contains("# 질문\n\n- [가](docs/guide/a.md)\n    - [More"), "{korean}");
        assert!(korean.contains("# 참조\n\n- [All](docs/reference/all.md)"), "{korean}");
    }

    #[test]
    fn a_guide_that_nothing_names_is_an_error() {
        let told = |files: &[(&str, &str)], language| Book::of(&Sources::of(files), language).err().unwrap();
        let more = [&FILES[..], &[("docs/guide/new.md", "# New\n")]].concat();
        for (language, index) in [(Language::English, INDEX), (Language::Korean, "docs/guide/README.ko.md")] {
            assert!(told(&more, language).starts_with(&format!("docs/guide/new.md: {index} does not name it")));
        }
        let below = [&FILES[..], &[("docs/guide/b/new.md", "# New\n")]].concat();
        assert!(
            told(&below, Language::English).starts_with("docs/guide/b/new.md: docs/guide/README.md does not name it")
        );
        let alone = [&FILES[..], &[("docs/guide/d.ko.md", "# D\n")]].concat();
        assert!(told(&alone, Language::English).contains("no docs/guide/d.md"));
        let untitled = [&without("docs/guide/c.md")[..], &[("docs/guide/c.md", "text\n")]].concat();
        assert!(told(&untitled, Language::English).starts_with("docs/guide/c.md:1: "));
    }

    #[test]
    fn links_are_followed() {
        assert_eq!(resolved("docs/guide/a.md", "../../README.md").as_deref(), Some("README.md"));
        assert_eq!(resolved("docs/guide/a.md", "./load/").as_deref(), Some("docs/guide/load"));
        assert_eq!(resolved("README.md", "../x"), None);
        let sources = Sources::of(&FILES);
        assert!(sources.has("docs/guide") && sources.has("docs/guide/") && sources.has("docs/guide/a.md"));
        assert!(!sources.has("docs/gui") && !sources.has("docs/guide/z.md"));
    }
}
