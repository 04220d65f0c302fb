//! The page's modules inside another page: one script without imports, for a file that opens without a server.
//!
//! A module of a page that comes from a disk may import nothing, so the modules become functions of one script. Each
//! runs once, before those that import it. This works for the form that the modules in `web/` have: an import is one
//! line, and `export` stands before a declaration.

use std::fmt::Write as _;

use crate::assets::{ASSETS, Asset};

/// The style of the charts: `web/chart.css`.
pub const CHART_STYLE: &str = include_str!("../web/chart.css");

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
    fn an_import_of_an_unknown_file_stays() {
        let import = "import { a } from \"./none.js\";\n";
        assert!(script("page", import).contains(import));
    }
}
