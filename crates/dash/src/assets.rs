//! The page's files, from `web/`.

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// The file's name below the page; empty for the page itself.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// A strong entity tag, with its quotes.
    pub etag: [u8; 18],
}

/// The page's Content-Security-Policy: everything must come from the same place, and there are no scripts or styles
/// in markup.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

macro_rules! assets {
    ($($name:literal $file:literal $media_type:expr;)*) => {
        /// All files.
        pub static ASSETS: &[Asset] = &[$({
            const BYTES: &[u8] = include_bytes!(concat!("../web/", $file));
            Asset { name: $name, media_type: $media_type, bytes: BYTES, etag: etag(BYTES) }
        }),*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

assets! {
    "" "index.html" HTML;
    "theme.css" "theme.css" STYLE;
    "report.css" "report.css" STYLE;
    "style.css" "style.css" STYLE;
    "chart.css" "chart.css" STYLE;
    "icon.svg" "icon.svg" "image/svg+xml";
    "app.js" "app.js" SCRIPT;
    "chart.js" "chart.js" SCRIPT;
    "dom.js" "dom.js" SCRIPT;
    "feed.js" "feed.js" SCRIPT;
    "i18n.js" "i18n.js" SCRIPT;
    "model.js" "model.js" SCRIPT;
    "page.js" "page.js" SCRIPT;
    "parts.js" "parts.js" SCRIPT;
    "pointer.js" "pointer.js" SCRIPT;
    "reasons.js" "reasons.js" SCRIPT;
    "table.js" "table.js" SCRIPT;
    "time.js" "time.js" SCRIPT;
    "timeline.js" "timeline.js" SCRIPT;
    "units.js" "units.js" SCRIPT;
    "views/caches.js" "views/caches.js" SCRIPT;
    "views/certificates.js" "views/certificates.js" SCRIPT;
    "views/configuration.js" "views/configuration.js" SCRIPT;
    "views/detail.js" "views/detail.js" SCRIPT;
    "views/errors.js" "views/errors.js" SCRIPT;
    "views/host.js" "views/host.js" SCRIPT;
    "views/lab.js" "views/lab.js" SCRIPT;
    "views/logs.js" "views/logs.js" SCRIPT;
    "views/overview.js" "views/overview.js" SCRIPT;
    "views/processes.js" "views/processes.js" SCRIPT;
    "views/protocols.js" "views/protocols.js" SCRIPT;
    "views/sessions.js" "views/sessions.js" SCRIPT;
    "views/upstreams.js" "views/upstreams.js" SCRIPT;
    "views/vmstat.js" "views/vmstat.js" SCRIPT;
    "views/websockets.js" "views/websockets.js" SCRIPT;
    "views/zones.js" "views/zones.js" SCRIPT;
}

/// The file with this name.
pub fn find(name: &[u8]) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name.as_bytes() == name)
}

/// FNV-1a of the bytes, in hexadecimal and in quotes; computed when weir is built.
const fn etag(bytes: &[u8]) -> [u8; 18] {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    let mut text = [b'"'; 18];
    let mut place = 1;
    while place < 17 {
        let digit = (hash >> (64 - 4 * place)) & 15;
        text[place] = b"0123456789abcdef"[digit as usize];
        place += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;

    fn files(directory: &Path, below: &str, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.path().is_dir() {
                files(&entry.path(), &format!("{name}/"), out);
            } else {
                out.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_held() {
        let mut there = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("web"), "", &mut there);
        let held: Vec<&str> =
            ASSETS.iter().map(|asset| if asset.name.is_empty() { "index.html" } else { asset.name }).collect();
        for name in &there {
            assert!(held.contains(&name.as_str()), "web/{name} has no line in assets.rs");
        }
        assert_eq!(there.len(), held.len());
    }

    #[test]
    fn what_a_module_imports_is_held() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for import in text.lines().filter_map(|line| line.split_once(" from \"").map(|(_, rest)| rest)) {
                let path = import.split('"').next().unwrap();
                let name = path.trim_start_matches("../").trim_start_matches("./");
                assert!(
                    find(name.as_bytes()).is_some() || find(format!("views/{name}").as_bytes()).is_some(),
                    "{path}"
                );
            }
        }
    }

    #[test]
    fn entity_tags_tell_files_apart() {
        assert_eq!(&etag(b""), b"\"cbf29ce484222325\"");
        let mut tags: Vec<_> = ASSETS.iter().map(|asset| asset.etag).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), ASSETS.len());
    }
}
