//! Reports as pages of one file, in the dashboard's style, and the dashboard's modules inside them: one script without
//! imports, for a file that opens without a server.
//!
//! A module of a page that comes from a disk may import nothing, so the modules become functions of one script. Each
//! runs once, before those that import it. This works for the form that the modules in `web/` have: an import is one
//! line, and `export` stands before a declaration.

use std::fmt::Write as _;

use base64::Engine as _;
use sha2::Digest as _;

use crate::assets::{ASSETS, Asset};
use weir_words::Said;

/// A report as a page.
pub struct Page<'p> {
    /// True if its texts are Korean.
    pub is_korean: bool,
    /// The name of the program that made it: `weir load`.
    pub maker: &'p str,
    /// The title; plain text.
    pub title: &'p str,
    /// The content; HTML.
    pub body: &'p str,
    /// A module of the page's own: its name, its text, and the function that begins it. Without one, the page has only
    /// the switch between light and dark and the buttons that copy.
    pub module: Option<(&'p str, &'p str)>,
}

/// The styles of a report, in the order in which they apply.
const STYLES: [&str; 3] =
    [include_str!("../web/theme.css"), include_str!("../web/chart.css"), include_str!("../web/report.css")];

/// The words of the page's own buttons.
fn words() -> [(&'static str, Said); 3] {
    [
        ("auto", Said::of_both("Theme: as the system", "테마: 시스템 설정")),
        ("light", Said::of_both("Theme: light", "테마: 라이트")),
        ("dark", Said::of_both("Theme: dark", "테마: 다크")),
    ]
}

impl Page<'_> {
    /// The page: it loads nothing, its policy allows no script but its own, and it shows everything without a script.
    pub fn render(&self) -> String {
        let (mut done, mut script) = (Vec::new(), String::new());
        for (name, text) in [("page", PAGE_SCRIPT)].into_iter().chain(self.module) {
            append(name, text, &mut done, &mut script);
            let _ = writeln!(script, "${name}.begin(document);");
        }
        let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&script));
        let language = if self.is_korean { "ko" } else { "en" };
        let said = |said: &Said| if self.is_korean { said.ko().to_owned() } else { said.en().to_owned() };
        let labels: String = words().iter().map(|(name, word)| format!(" data-{name}=\"{}\"", said(word))).collect();
        let (title, maker) = (escape(self.title), escape(self.maker));
        format!(
            concat!(
                "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n",
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n",
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{digest}'; ",
                "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<style>\n{styles}</style>\n</head>\n",
                "<body>\n<div class=\"report\">\n<header class=\"top\"><span class=\"brand\">{icon}{maker}</span>",
                "<span class=\"gap\"></span><button type=\"button\" class=\"quiet theme\" hidden{labels}></button></header>\n",
                "<main>\n{body}\n</main>\n</div>\n<script type=\"module\">{script}</script>\n</body>\n</html>\n"
            ),
            language = language,
            title = title,
            digest = digest,
            styles = STYLES.concat(),
            icon = ICON,
            maker = maker,
            labels = labels,
            body = self.body,
            script = script,
        )
    }
}

/// A line to write, with a button that copies it.
pub fn copyable(line: &str, is_korean: bool) -> String {
    let said = |said: Said| if is_korean { said.ko().to_owned() } else { said.en().to_owned() };
    let copy = said(Said::of_both("Copy", "복사"));
    let (done, failed) = (Said::of_both("Copied", "복사했습니다"), Said::of_both("Not copied", "복사하지 못했습니다"));
    format!(
        "<span class=\"copyable\"><code>{}</code><button type=\"button\" class=\"quiet copy\" hidden data-done=\"{}\" data-failed=\"{}\">{copy}</button></span>",
        escape(line),
        said(done),
        said(failed),
    )
}

const PAGE_SCRIPT: &str = include_str!("../web/page.js");
const ICON: &str = concat!(
    "<svg viewBox=\"0 0 32 32\" aria-hidden=\"true\"><rect width=\"32\" height=\"32\" rx=\"7\"/>",
    "<path class=\"wave\" d=\"M4 12c3-3 5-3 8 0s5 3 8 0 5-3 8 0\"/><path class=\"fall\" d=\"M10 20v7M16 18v9M22 20v7\"/></svg>"
);

/// A text with HTML escapes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// One script of a module and all modules that it imports. The last line makes what the module exports the constant
/// `$NAME`. Modules are known by the names of their files, whatever their folder. An import of an unknown file stays,
/// so that the browser names it.
pub fn script(name: &str, text: &str) -> String {
    let mut done = Vec::new();
    let mut out = String::new();
    append(name, text, &mut done, &mut out);
    out
}

fn append(name: &str, text: &str, done: &mut Vec<String>, out: &mut String) {
    let (mut body, mut exported) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some((names, module, asset)) = imported(line) {
            if !done.iter().any(|done| done == module) {
                append(module, &String::from_utf8_lossy(asset.bytes), done, out);
            }
            let _ = writeln!(body, "const {names} = ${module};");
            continue;
        }
        let declared = line.strip_prefix("export ");
        exported.extend(declared.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).nth(1)));
        body.push_str(declared.unwrap_or(line));
        body.push('\n');
    }
    let _ = write!(out, "const ${name} = (() => {{\n{body}return {{ {} }};\n}})();\n", exported.join(", "));
    done.push(name.to_owned());
}

/// The names that a line imports, the name of the module, and its file.
fn imported(line: &str) -> Option<(&str, &str, &'static Asset)> {
    let (names, path) = line.strip_prefix("import ")?.split_once(" from \"")?;
    let path = path.strip_suffix("\";")?;
    let file = path.rsplit('/').next()?;
    let asset = ASSETS.iter().find(|asset| asset.name.rsplit('/').next() == Some(file))?;
    Some((names.strip_prefix("* as ").unwrap_or(names), file.strip_suffix(".js")?, asset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_comes_once_and_before_those_that_import_it() {
        let text = "import { chart } from \"../elsewhere/chart.js\";\nimport * as units from \"./units.js\";\n\
                    import { draw, h } from \"./dom.js\";\nexport const one = 1;\nexport function two() {}\n";
        let script = script("page", text);
        let at = |part: &str| script.find(part).unwrap_or_else(|| panic!("{part} in {script}"));
        assert!(at("const $dom = (() => {") < at("const $chart = (() => {"));
        assert!(at("const $units = (() => {") < at("const $page = (() => {"));
        assert_eq!(script.matches("const $dom = ").count(), 1);
        assert!(script.ends_with(
            "const { chart } = $chart;\nconst units = $units;\nconst { draw, h } = $dom;\n\
             const one = 1;\nfunction two() {}\nreturn { one, two };\n})();\n"
        ));
    }

    #[test]
    fn every_module_of_the_page_has_the_form_that_can_be_joined() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            let script = script("page", &String::from_utf8_lossy(asset.bytes));
            for line in script.lines() {
                let is_left = ["import ", "import{", "export ", "export{"].iter().any(|word| line.starts_with(word));
                assert!(!is_left, "{}: {line}", asset.name);
            }
            assert!(!script.contains("</script") && !script.contains("<!--"), "{} ends a script element", asset.name);
        }
    }

    #[test]
    fn a_page_asks_nobody_and_allows_its_own_script_only() {
        let own = "import { h } from \"./dom.js\";\nexport function begin() {}\n";
        for module in [None, Some(("own", own))] {
            let page = Page { is_korean: true, maker: "weir lab", title: "a<b", body: "<p>x</p>", module }.render();
            for outside in ["src=", "<link", "@import", "import ", "url(", "fetch(", "//cdn", "refresh"] {
                assert!(!page.contains(outside), "{outside}");
            }
            let (_, script) = page.split_once("<script type=\"module\">").unwrap_or_default();
            let (script, rest) = script.split_once("</script>").unwrap_or_default();
            assert!(script.contains("$page.begin(document);") && !rest.contains("<script"));
            assert_eq!(script.contains("$own.begin(document);"), module.is_some());
            let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(script));
            assert!(page.contains(&format!("script-src 'sha256-{digest}'; style-src ")));
            assert!(page.contains("<title>a&lt;b</title>") && page.contains("lang=\"ko\""));
        }
        assert!(copyable("a<b", false).contains("<code>a&lt;b</code>"));
    }

    #[test]
    fn an_import_of_an_unknown_file_stays() {
        let import = "import { a } from \"./none.js\";\n";
        assert!(script("page", import).contains(import));
    }
}
