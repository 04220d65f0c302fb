//! Secrets that must not be on the command line, because every user of the machine can read it in `ps`.

use crate::answers;
use std::fs::File;
use std::io::Read;

/// Bytes of a secret in a variable or a file, at most.
const BYTES_MAX: u64 = 4096;

/// The value of `env:NAME` (a variable of the environment) or `file:PATH` (the first line of a file); other texts are
/// returned unchanged. `path` resolves a relative path.
///
/// # Errors
/// The variable is not set, the file cannot be read, or its first line is empty; the message names the place and no
/// secret.
pub fn kept_elsewhere(text: &str, path: impl Fn(&str) -> String) -> Result<String, String> {
    if let Some(name) = text.strip_prefix("env:") {
        return match std::env::var(name) {
            Ok(value) if !value.trim().is_empty() => Ok(value.trim().to_owned()),
            _ => Err(format!("the environment has no variable \"{name}\": set it before you start weir")),
        };
    }
    let Some(name) = text.strip_prefix("file:") else { return Ok(text.to_owned()) };
    let path = path(name);
    let read = answers::ask(answers::QuestionKind::File, &path, || {
        let mut content = Vec::new();
        File::open(&path)?.take(BYTES_MAX).read_to_end(&mut content)?;
        Ok(content)
    });
    let content = read.map_err(|error| format!("{path}: {error}"))?;
    match String::from_utf8_lossy(&content).lines().next().unwrap_or_default().trim() {
        "" => Err(format!("{path}: its first line is empty")),
        line => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_stands_for_itself_a_variable_or_a_first_line() {
        let path = std::env::temp_dir().join(format!("weir-net-secret-{}", std::process::id()));
        let read = |text: &str| kept_elsewhere(text, |name| std::env::temp_dir().join(name).display().to_string());
        let file = format!("file:{}", path.file_name().unwrap().to_str().unwrap());
        assert!(read(&file).unwrap_err().contains("weir-net-secret-"));
        std::fs::write(&path, "redis://s3cret@h \nnothing of it\n").unwrap();
        assert_eq!(read(&file).unwrap(), "redis://s3cret@h");
        std::fs::write(&path, "\nsecond").unwrap();
        assert!(read(&file).unwrap_err().ends_with("its first line is empty"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read("redis://h").unwrap(), "redis://h");
        assert_eq!(read("env:PATH").unwrap(), std::env::var("PATH").unwrap().trim());
        assert!(read("env:WEIR_NO_SUCH").unwrap_err().contains("no variable \"WEIR_NO_SUCH\""));
    }
}
