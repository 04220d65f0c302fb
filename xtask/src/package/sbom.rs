//! The list of parts (SBOM) in CycloneDX's JSON: the crates that are linked into the binary, from `cargo metadata`.

use super::given::Given;
use crate::files::read;
use crate::run::{cargo, output};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate of the binary.
pub struct BinaryCrate {
    pub id: String,
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// The folder of its sources.
    pub folder: PathBuf,
    /// The registry; none for weir's own crates.
    source: Option<String>,
    /// The ids of the crates that it uses.
    uses: Vec<String>,
}

impl BinaryCrate {
    /// Whether other people wrote it.
    pub fn is_foreign(&self) -> bool {
        self.source.is_some()
    }

    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// Writes the list.
pub fn write(given: &Given) -> Result<PathBuf, String> {
    let crates = crates(&given.root)?;
    let checksums = checksums(&read(&given.root.join("Cargo.lock"))?);
    let stamp =
        output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{}", given.epoch)))?;
    let list = list(&crates, &checksums, stamp.trim());
    let to = given.out.join(format!("weir-{}.cdx.json", given.version));
    let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    fs::write(&to, text + "\n").map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(to)
}

/// The crates that are linked into `weir` on Linux, sorted by name.
pub fn crates(root: &Path) -> Result<Vec<BinaryCrate>, String> {
    let words = "metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu";
    let metadata: Value = serde_json::from_str(&output(cargo(words).current_dir(root))?).map_err(|e| e.to_string())?;
    let words =
        "tree --locked --package weir --edges normal --target x86_64-unknown-linux-gnu --prefix none --format {p}";
    linked(&metadata, &output(cargo(words).current_dir(root))?)
}

/// The crates of `cargo metadata` that `cargo tree` has too: only the tree leaves out crates of features that are off.
fn linked(metadata: &Value, tree: &str) -> Result<Vec<BinaryCrate>, String> {
    let built: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = array(&metadata["packages"]);
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let top = packages.iter().find(|package| package["name"] == "weir").map(|package| text(&package["id"]));
    // Procedural macros run in the compiler.
    let is_macro = |package: &&Value| array(&package["targets"]).iter().any(|target| target["kind"][0] == "proc-macro");
    let macros: BTreeSet<String> = packages.iter().filter(is_macro).map(|package| text(&package["id"])).collect();
    let mut waiting = vec![top.ok_or("cargo metadata names no crate weir")?];
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        if found.contains_key(&id) {
            continue;
        }
        let used = nodes.get(id.as_str()).map_or(&[][..], |node| array(&node["deps"]));
        let used = used.iter().filter(|used| is_linked(used)).map(|used| text(&used["pkg"]));
        let uses: BTreeSet<String> = used.filter(|id| !macros.contains(id)).collect();
        waiting.extend(uses.iter().cloned());
        found.insert(id, uses.into_iter().collect());
    }
    let made = |package: &Value| {
        let id = text(&package["id"]);
        let uses = found.get(&id)?.clone();
        built.get(&(package["name"].as_str()?, package["version"].as_str()?))?;
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?.to_owned();
        let source = package["source"].as_str().map(str::to_owned);
        let licence = package["license"].as_str().map(|licence| licence.replace('/', " OR "));
        Some(BinaryCrate {
            id,
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence,
            folder,
            source,
            uses,
        })
    };
    let mut crates: Vec<BinaryCrate> = packages.iter().filter_map(made).collect();
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

/// Of a line of the tree: `memchr v2.8.0 (*)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// Whether a dependency is for the program, and not only for its tests or its build.
fn is_linked(used: &Value) -> bool {
    array(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
}

fn list(crates: &[BinaryCrate], checksums: &BTreeMap<(String, String), String>, stamp: &str) -> Value {
    let by_id: BTreeMap<&str, &BinaryCrate> = crates.iter().map(|one| (one.id.as_str(), one)).collect();
    let component = |one: &BinaryCrate| {
        let kind = if one.name == "weir" { "application" } else { "library" };
        let mut component = json!({
            "type": kind, "bom-ref": one.reference(), "name": one.name, "version": one.version, "purl": one.reference(),
        });
        if let Some(licence) = &one.licence {
            component["licenses"] = json!([{"expression": licence}]);
        }
        if let Some(sum) = checksums.get(&(one.name.clone(), one.version.clone())) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        component
    };
    let top = crates.iter().find(|one| one.name == "weir");
    let others = crates.iter().filter(|one| one.name != "weir");
    let dependencies = crates.iter().map(|one| {
        let uses: Vec<String> =
            one.uses.iter().filter_map(|id| by_id.get(id.as_str())).map(|used| used.reference()).collect();
        json!({"ref": one.reference(), "dependsOn": uses})
    });
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": stamp, "component": top.map(component)},
        "components": others.map(component).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

/// The checksums of the registry's files, from `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        block
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(" = \"")?.trim_end_matches('"').to_owned()))
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?)))
        .collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_list_has_the_linked_crates_alone() {
        let package = |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "manifest_path": format!("/r/{name}/Cargo.toml"), "source": source});
        let metadata = json!({
            "packages": [package("weir", Value::Null), package("memchr", json!("registry")), package("cc", json!("registry")), package("off", json!("registry"))],
            "resolve": {"nodes": [
                {"id": "weir", "deps": [{"pkg": "memchr", "dep_kinds": [{"kind": null}]}, {"pkg": "cc", "dep_kinds": [{"kind": "build"}]}]},
                {"id": "memchr", "deps": [{"pkg": "off", "dep_kinds": [{"kind": null}]}]}, {"id": "cc", "deps": []}, {"id": "off", "deps": []},
            ]},
        });
        let crates = linked(&metadata, "weir v1.0.0 (/r/weir)\nmemchr v1.0.0\nmemchr v1.0.0 (*)\n").unwrap();
        let sums = checksums("[[package]]\nname = \"memchr\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n");
        let list = list(&crates, &sums, "2026-01-01T00:00:00Z");
        assert_eq!(list["metadata"]["component"]["purl"], "pkg:cargo/weir@1.0.0");
        assert_eq!(list["components"].as_array().unwrap().len(), 1);
        assert_eq!(list["components"][0]["hashes"][0]["content"], "ab");
        assert_eq!(list["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["dependencies"][1]["dependsOn"], json!(["pkg:cargo/memchr@1.0.0"]));
    }
}
