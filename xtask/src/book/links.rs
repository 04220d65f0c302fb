//! Links of a page. A document links to files of the checkout; in the book, the link leads to the page of that file in
//! the reader's language, or becomes text if the book has no such page.

use super::html::{PagePiece, attribute, name, pieces, plain, with_attribute};
use super::pages::{BookPage, Language, Sources, english, korean, place, resolved};
use std::collections::{BTreeMap, BTreeSet};

/// Endings of the names of pictures.
const PICTURES: [&str; 3] = [".webp", ".svg", ".png"];

/// The ids of the headings of all pages, in their order, by the paths of the pages from the top of the site.
pub type Headings = BTreeMap<String, Vec<String>>;

/// The path of a page from the top of the site.
pub fn site_path(language: Language, place: &str) -> String {
    format!("{}/{}", language.code(), place.replace(".md", ".html"))
}

/// The ids of the headings of a page.
pub fn headings(html: &str) -> Vec<String> {
    let ids = pieces(html).filter_map(|piece| match piece {
        PagePiece::Tag(tag) if matches!(name(tag), "h1" | "h2" | "h3" | "h4" | "h5" | "h6") => attribute(tag, "id"),
        _ => None,
    });
    ids.map(plain).collect()
}

/// One page of a book, and everything around it that its links may name.
pub struct Links<'b> {
    pub sources: &'b Sources,
    pub headings: &'b Headings,
    /// The language of the book.
    pub language: Language,
    pub page: &'b BookPage,
}

/// The place to which a link leads.
enum Way {
    /// Where the document says.
    AsWritten,
    /// A path from the top of the site, and an id with its `#`, or nothing.
    Inside(String, String),
    /// Nowhere: the link becomes text.
    Text,
}

impl Links<'_> {
    /// The content of the page with links that work. Adds the paths of its pictures. An error names a link to a file
    /// that is not there.
    pub fn mended(&self, main: &str, pictures: &mut BTreeSet<String>) -> Result<String, String> {
        let mut mended = String::with_capacity(main.len());
        let mut is_text = false;
        for piece in pieces(main) {
            match piece {
                PagePiece::Tag("</a>") if is_text => is_text = false,
                PagePiece::Tag(tag) if matches!(name(tag), "a" | "img") => {
                    let key = if name(tag) == "a" { "href" } else { "src" };
                    let Some(target) = attribute(tag, key) else {
                        mended.push_str(tag);
                        continue;
                    };
                    match self.way(&plain(target), pictures)? {
                        Way::AsWritten => mended.push_str(tag),
                        Way::Text => is_text = true,
                        Way::Inside(path, id) => {
                            let here = site_path(self.language, &self.page.place);
                            mended.push_str(&with_attribute(tag, key, &(relative(&here, &path) + &id)));
                        }
                    }
                }
                PagePiece::Tag(part) | PagePiece::Text(part) => mended.push_str(part),
            }
        }
        Ok(mended)
    }

    fn way(&self, target: &str, pictures: &mut BTreeSet<String>) -> Result<Way, String> {
        if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
            return Ok(Way::AsWritten);
        }
        let source = &self.page.source;
        let nowhere = || format!("{source}: its link to {target} leads to no file of git");
        let (path, id) = target.split_once('#').map_or((target, ""), |(path, id)| (path, id));
        let path = resolved(source, path).ok_or_else(nowhere)?;
        // mdBook has made `.html` of `.md`.
        let document = path.strip_suffix(".html").map_or_else(|| path.clone(), |name| format!("{name}.md"));
        if self.sources.texts.contains_key(&document) {
            let language = self.language_of(&document);
            let to = site_path(language, &place(&english(&document)));
            return Ok(Way::Inside(to, self.id(&document, language, id)));
        }
        let is_picture = PICTURES.iter().any(|end| path.ends_with(end));
        match (self.sources.has(&path) || self.sources.has(&document), is_picture) {
            (false, _) => Err(nowhere()),
            (true, false) => Ok(Way::Text),
            (true, true) => {
                pictures.insert(path.clone());
                Ok(Way::Inside(path, String::new()))
            }
        }
    }

    /// The book that a link to a document leads to. The Korean book stays in Korean, but for links from a Korean document
    /// to its own English.
    fn language_of(&self, document: &str) -> Language {
        let is_own_english = Language::of(document) == Language::English && korean(document) == self.page.source;
        match self.language {
            Language::English => Language::of(document),
            Language::Korean if is_own_english => Language::English,
            Language::Korean => Language::Korean,
        }
    }

    /// The id of a heading, with its `#`. If the link leads to a translation of its document, that heading has the same
    /// number there.
    fn id(&self, document: &str, language: Language, id: &str) -> String {
        if id.is_empty() {
            return String::new();
        }
        let at = |language| {
            self.headings.get(&site_path(language, &place(&english(document)))).map_or(&[][..], Vec::as_slice)
        };
        let (own, there) = (at(Language::of(document)), at(language));
        let heading = own.iter().position(|own| own == id).filter(|_| own.len() == there.len());
        match heading.and_then(|number| there.get(number)) {
            Some(id) => format!("#{id}"),
            None if own == there => format!("#{id}"),
            None => String::new(),
        }
    }
}

/// The way from one page to another, both as paths from the top.
pub fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let folders = from.len().min(to.len()) - 1;
    let common = from.iter().zip(&to).take(folders).take_while(|(one, other)| one == other).count();
    "../".repeat(from.len() - 1 - common) + &to.get(common..).unwrap_or_default().join("/")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::pages::Book;
    use super::*;

    const FILES: [(&str, &str); 6] = [
        ("README.md", "# weir\n"),
        ("README.ko.md", "# weir\n"),
        ("docs/guide/README.md", "# The guide\n\n[a](a.md) [b](b.md)\n"),
        ("docs/guide/a.md", "# A\n"),
        ("docs/guide/b.md", "# B\n"),
        ("docs/guide/b.ko.md", "# 나\n"),
    ];
    const OTHERS: [&str; 2] = ["docs/p.webp", "src/main.rs"];

    fn mended(language: Language, place: &str, main: &str) -> Result<(String, Vec<String>), String> {
        let sources = Sources::of(&FILES).and(&OTHERS);
        let book = Book::of(&sources, language)?;
        let ids = |ids: [&str; 2]| ids.map(str::to_owned).to_vec();
        let headings = [("en/docs/guide/b.html", ["b", "part"]), ("ko/docs/guide/b.html", ["나", "부분"])];
        let headings = headings.map(|(path, all)| (path.to_owned(), ids(all))).into_iter().collect();
        let page = book.pages().find(|page| page.place == place).unwrap();
        let mut pictures = BTreeSet::new();
        let main = Links { sources: &sources, headings: &headings, language, page }.mended(main, &mut pictures)?;
        Ok((main, pictures.into_iter().collect()))
    }

    #[test]
    fn links_stay_in_the_language_of_the_reader() {
        let way = |language, place, to: &str| mended(language, place, &format!("<a href=\"{to}\">x</a>")).unwrap().0;
        let (english, korean) = (Language::English, Language::Korean);
        for (language, from, to, found) in [
            (english, "docs/guide/a.md", "b.html#part", "b.html#part"),
            (english, "docs/guide/a.md", "#own", "#own"),
            (english, "docs/guide/a.md", "https://nginx.org/", "https://nginx.org/"),
            (english, "docs/guide/b.md", "b.ko.html", "../../../ko/docs/guide/b.html"),
            (english, "docs/guide/a.md", "../../README.html", "../../index.html"),
            // An English page of the Korean book links to the English document: its translation is there.
            (korean, "docs/guide/a.md", "b.html#part", "b.html#부분"),
            (korean, "docs/guide/b.md", "b.html", "../../../en/docs/guide/b.html"),
            (korean, "docs/guide/b.md", "../../README.ko.html", "../../index.html"),
        ] {
            assert_eq!(way(language, from, to), format!("<a href=\"{found}\">x</a>"), "{from} {to}");
        }
    }

    #[test]
    fn other_files_are_text_and_pictures_are_taken_along() {
        let page = "<p><a href=\"../../src/main.rs\"><code>main</code></a> <img src=\"../p.webp\" alt=\"a\" /></p>";
        let (main, pictures) = mended(Language::English, "docs/guide/a.md", page).unwrap();
        assert_eq!(main, "<p><code>main</code> <img src=\"../../../docs/p.webp\" alt=\"a\" /></p>");
        assert_eq!(pictures, ["docs/p.webp"]);
        let gone = mended(Language::English, "docs/guide/a.md", "<a href=\"c.html\">c</a>").unwrap_err();
        assert_eq!(gone, "docs/guide/a.md: its link to c.html leads to no file of git");
    }

    #[test]
    fn headings_are_counted() {
        assert_eq!(headings("<h1 id=\"a\">A</h1><p id=\"p\"><h3 id=\"b-1\"><a href=\"#b-1\">B</a></h3>"), ["a", "b-1"]);
    }
}
