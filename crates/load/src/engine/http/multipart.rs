//! `formData`: multipart/form-data (RFC 7578) as npm's form-data writes it.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failed::Failed;
use crate::plan::FormPart;
use crate::random::push_hex;
use crate::template::With;
use crate::value::Value;

/// The longest file that is read during the run.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Content types by file ending; the default is application/octet-stream.
const TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "application/javascript"),
    ("json", "application/json"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The body and its content-type.
///
/// A file whose name becomes known only during the run is read from `dir`, on the worker. All others were read before
/// the run.
pub(super) fn encode(parts: &[(String, FormPart)], dir: &Path, with: With<'_>) -> Result<(Vec<u8>, String), Failed> {
    let mut boundary = "-".repeat(26);
    push_hex(&mut boundary, 50);
    let mut out = Vec::new();
    for (name, part) in parts {
        match part {
            FormPart::Value(tree, kind) => {
                let value = tree.value(with.vars, with.functions);
                if value != Value::Undefined {
                    write(&mut out, &boundary, name, None, kind.as_deref(), value.to_text().as_bytes());
                }
            }
            FormPart::File(path, bytes, kind) => {
                write_file(&mut out, &boundary, name, path, kind.as_deref(), bytes);
            }
            FormPart::FileNamed(path, kind) => {
                let path = dir.join(&*path.text(with.vars, with.functions));
                let bytes = read(&path)?;
                write_file(&mut out, &boundary, name, &path, kind.as_deref(), &bytes);
            }
        }
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((out, format!("multipart/form-data; boundary={boundary}")))
}

fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => Err(Failed(Cow::Borrowed("EFBIG"))),
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failed(crate::client::Error::io(weir_meter::Step::SendRequest, &error).name)),
    }
}

fn write_file(out: &mut Vec<u8>, boundary: &str, name: &str, path: &Path, kind: Option<&str>, bytes: &[u8]) {
    let kind = kind.unwrap_or_else(|| kind_of(path));
    let file = path.file_name().map(|name| name.to_string_lossy());
    write(out, boundary, name, file.as_deref(), Some(kind), bytes);
}

fn write(out: &mut Vec<u8>, boundary: &str, name: &str, file: Option<&str>, kind: Option<&str>, value: &[u8]) {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(name));
    if let Some(file) = file {
        head += &format!("; filename=\"{}\"", quoted(file));
    }
    if let Some(kind) = kind {
        head += &format!("\r\nContent-Type: {}", kind.replace(['\r', '\n'], " "));
    }
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn kind_of(path: &Path) -> &'static str {
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    TYPES.iter().find(|(known, _)| *known == end).map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Builtins;
    use crate::template::{Template, Tree};
    use crate::vars::{VariableNames, Vars};
    use std::sync::Arc;

    #[test]
    fn parts() {
        let mut names = VariableNames::default();
        let value = Tree::parse(&Value::from("hello"), &mut names);
        let parts = vec![
            ("a".to_owned(), FormPart::Value(value, None)),
            ("f\"".to_owned(), FormPart::File("/tmp/x.png".into(), Arc::from(&b"PNG"[..]), None)),
        ];
        let missing = Template::parse("no/such/{{ file }}", &mut names);
        let missing = vec![("a".to_owned(), FormPart::FileNamed(missing, None))];
        let vars = Vars::new(Arc::new(names));
        let with = With { vars: &vars, functions: &Builtins };
        let (body, kind) = encode(&parts, Path::new("/"), with).unwrap();
        assert_eq!(encode(&missing, Path::new("/"), with), Err(Failed(Cow::Borrowed("ENOENT"))));
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert_eq!(boundary.len(), 50);
        let text = String::from_utf8(body).unwrap().replace(boundary, "B");
        assert_eq!(
            text,
            "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhello\r\n--B\r\nContent-Disposition: form-data; \
             name=\"f%22\"; filename=\"x.png\"\r\nContent-Type: image/png\r\n\r\nPNG\r\n--B--\r\n"
        );
    }
}
