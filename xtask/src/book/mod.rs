//! `cargo xtask book`: the documents as a site that needs no network, a book for each language.
//!
//! mdBook makes the pages from the documents as they are. What it cannot do is done to its pages afterwards: links to files
//! that are in no book (`links`), the way to the other language, and a search that finds Korean (`search`, `search.js`):
//! mdBook's cuts all letters but Latin ones off a question.

mod check;
mod html;
mod links;
mod pages;
mod search;
mod words;

use crate::files::{self, files, read};
use crate::run::{cargo, output, run};
use links::{Headings, Links, headings, relative, site_path};
use pages::{Book, BookPage, Language, Sources};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use words::Words;

/// The version whose pages this code knows.
const MDBOOK: &str = "0.5.4";
const USAGE: &str = "\
usage: cargo xtask book

  makes target/book/html: index.html leads to English and Korean. The first run installs mdBook in target/tools, which takes minutes.";

/// The theme: no fonts to fetch, so that the reader's own have the letters of both languages.
const FONTS: &str = "/* The fonts are those of the reader's system. */\n";
const STYLE: &str = include_str!("book.css");
const SEARCH: &str = include_str!("search.js");
const INDEX: &str = include_str!("index.html");

/// Runs the command.
pub fn book(root: &Path, words: &[String]) -> Result<(), String> {
    if !words.is_empty() {
        return Err(USAGE.to_owned());
    }
    let site = build(root, &root.join("target/book"), &tool(root)?)?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// The program mdBook, which is installed if it is not there.
pub fn tool(root: &Path) -> Result<PathBuf, String> {
    let place = root.join("target/tools");
    let program = place.join("bin/mdbook");
    let version = output(Command::new(&program).arg("--version")).unwrap_or_default();
    if version.trim() != format!("mdbook v{MDBOOK}") {
        let mut install = cargo("install mdbook --locked --force --no-default-features --features search --version");
        run(install.arg(MDBOOK).arg("--root").arg(&place))
            .map_err(|error| format!("mdBook {MDBOOK}, which makes the book, cannot be installed: {error}"))?;
    }
    Ok(program)
}

/// Makes the site below a folder, checks it, and returns its own folder.
pub fn build(root: &Path, top: &Path, mdbook: &Path) -> Result<PathBuf, String> {
    if top.exists() {
        fs::remove_dir_all(top).map_err(|error| files::told(top, &error))?;
    }
    let site = top.join("html");
    let sources = Sources::read(root)?;
    let books = Language::ALL.map(|language| Book::of(&sources, language));
    let books = books.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut all = Headings::new();
    for book in &books {
        raw(root, &top.join("sources"), &site, &sources, book, mdbook)?;
        for page in book.pages() {
            let path = site_path(book.language, &page.place);
            let ids = headings(&read(&site.join(&path))?);
            all.insert(path, ids);
        }
    }
    let mut pictures = BTreeSet::new();
    for book in &books {
        finish(&site, &sources, &all, book, &mut pictures)?;
    }
    for picture in &pictures {
        let bytes = fs::read(root.join(picture)).map_err(|error| files::told(&root.join(picture), &error))?;
        write(&site.join(picture), bytes)?;
    }
    write(&site.join("index.html"), INDEX)?;
    let links = check::check(&site)?;
    let (count, bytes) = size(&site)?;
    println!("book: {} pages, {links} links that lead somewhere, {count} files, {bytes} bytes", all.len());
    Ok(site)
}

/// The number of files below a folder, and their bytes.
pub fn size(folder: &Path) -> Result<(usize, u64), String> {
    let all = files(folder)?;
    let bytes = all.iter().map(|file| fs::metadata(folder.join(file)).map_or(0, |about| about.len())).sum();
    Ok((all.len(), bytes))
}

/// Lets mdBook make the pages of one language.
fn raw(root: &Path, top: &Path, site: &Path, sources: &Sources, book: &Book, mdbook: &Path) -> Result<(), String> {
    let code = book.language.code();
    let here = top.join(code);
    for page in book.pages() {
        let text = sources.texts.get(&page.source).map_or("", String::as_str);
        write(&here.join("src").join(&page.place), text)?;
    }
    write(&here.join("src/SUMMARY.md"), book.summary())?;
    write(&here.join("theme/fonts/fonts.css"), FONTS)?;
    write(&here.join("theme/favicon.svg"), read(&root.join("crates/dash/web/icon.svg"))?)?;
    write(&here.join("book.css"), STYLE)?;
    write(&here.join("search.js"), SEARCH)?;
    // Documents may have texts that mdBook's preprocessors would take for theirs.
    let settings = format!(
        "[book]\ntitle = \"weir\"\nlanguage = \"{code}\"\n\n[build]\nuse-default-preprocessors = false\ncreate-missing = false\n\n\
         [output.html]\nno-section-label = true\nsmart-punctuation = false\ndefinition-lists = false\nadmonitions = false\nhash-files = false\n\
         input-404 = \"\"\nadditional-css = [\"book.css\"]\nadditional-js = [\"search.js\"]\n\n\
         [output.html.print]\nenable = false\n\n[output.html.search]\ncopy-js = false\n"
    );
    write(&here.join("book.toml"), settings)?;
    run(Command::new(mdbook).arg("build").arg("--dest-dir").arg(site.join(code)).arg(&here))
}

/// Mends the pages of one language, and adds the texts for its search.
fn finish(
    site: &Path,
    sources: &Sources,
    headings: &Headings,
    book: &Book,
    pictures: &mut BTreeSet<String>,
) -> Result<(), String> {
    let language = book.language;
    let mut words = Words::of(language);
    let mut texts = Vec::new();
    for page in book.pages() {
        let place = site.join(site_path(language, &page.place));
        let html = read(&place)?;
        let (before, main, after) =
            in_three(&html).ok_or_else(|| format!("{}: mdBook wrote no <main>", place.display()))?;
        let main = Links { sources, headings, language, page }.mended(main, pictures)?;
        texts.push((page.place.replace(".md", ".html"), page.title.clone(), main.clone()));
        let before = with_switch(&words.put(before), language, page)?;
        let spoken = Language::of(&page.source).code();
        write(&place, format!("{before}<main lang=\"{spoken}\">{main}{}", words.put(after)))?;
    }
    let folder = site.join(language.code());
    let script = folder.join("book.js");
    write(&script, words.put(&read(&script)?))?;
    words.all_used()?;
    write(&folder.join("search-index.js"), search::script(&texts))
}

/// A page around and within `<main>`.
fn in_three(html: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = html.split_once("<main>")?;
    let end = rest.find("</main>")?;
    let (main, after) = rest.split_at(end);
    Some((before, main, after))
}

/// The top of a page with a link to the same page in the other language.
fn with_switch(before: &str, language: Language, page: &BookPage) -> Result<String, String> {
    const BUTTONS: &str = "<div class=\"right-buttons\">";
    let (other, name) = match language {
        Language::English => (Language::Korean, "한국어"),
        Language::Korean => (Language::English, "English"),
    };
    let way = relative(&site_path(language, &page.place), &site_path(other, &page.place));
    let link = format!("{BUTTONS}<a class=\"language\" lang=\"{}\" href=\"{way}\">{name}</a>", other.code());
    match before.contains(BUTTONS) {
        true => Ok(before.replacen(BUTTONS, &link, 1)),
        false => Err(format!("{}: mdBook wrote no {BUTTONS}", page.source)),
    }
}

/// Writes a file, and makes its folders.
fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes)).map_err(|error| files::told(path, &error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_documents_here_make_two_books() {
        let sources = Sources::read(&crate::root()).unwrap();
        let places = Language::ALL.map(|language| {
            let book = Book::of(&sources, language).unwrap();
            book.pages().map(|page| page.place.clone()).collect::<BTreeSet<_>>()
        });
        assert_eq!(places[0], places[1]);
        for place in [
            "index.md",
            "docs/guide/index.md",
            "docs/guide/load/report.md",
            "docs/reference/directives.md",
            "CHANGELOG.md",
        ] {
            assert!(places[0].contains(place), "{place}");
        }
    }
}
