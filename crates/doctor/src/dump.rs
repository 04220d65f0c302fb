//! Reads the output of `nginx -T` back as files.

use weir_conf::MemoryFiles;

/// The line before each file.
const MARK: &str = "# configuration file ";

/// Most files of one dump.
const FILES_MAX: usize = 10_000;

/// The files of a dump, and the name of the first file, which is the main one. `None` if the text is not a dump.
pub fn read(text: &str) -> Option<(MemoryFiles, String)> {
    // `-T` first prints "syntax is ok" lines, which some users keep in the file.
    let is_noise = |line: &&str| line.is_empty() || line.starts_with("nginx: ");
    let first = text.lines().find(|line| !is_noise(line))?;
    name(first)?;
    let mut files = MemoryFiles::new();
    let (mut main, mut current): (Option<String>, Option<(String, String)>) = (None, None);
    let mut count = 0;
    for line in text.lines() {
        if let Some(name) = name(line) {
            if let Some((name, text)) = current.take() {
                files = files.with(&name, text);
            }
            count += 1;
            if count > FILES_MAX {
                break;
            }
            main.get_or_insert_with(|| name.to_owned());
            current = Some((name.to_owned(), String::new()));
        } else if let Some((_, text)) = &mut current {
            text.push_str(line);
            text.push('\n');
        }
    }
    if let Some((name, text)) = current {
        files = files.with(&name, text);
    }
    Some((files, main?))
}

fn name(line: &str) -> Option<&str> {
    line.strip_prefix(MARK)?.strip_suffix(':').filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_dump_is_its_files() {
        let text = "nginx: the configuration file /e/n.conf syntax is ok\n# configuration file /e/n.conf:\nhttp { include b; }\n\n# configuration file /e/b:\nroot /x;\n";
        let (files, main) = read(text).unwrap();
        assert_eq!(main, "/e/n.conf");
        let (tree, problems) = crate::load(&files, &main, "/e/");
        assert_eq!((tree.root.len(), problems.len()), (1, 0));
        assert_eq!(tree.root[0].children()[0].name.text, "root");
        assert!(read("http { }\n# configuration file /x:\n").is_none() && read("").is_none());
    }

    mod mutate {
        use super::*;
        /// The output of `nginx -T`, or another text: files no longer than the text, or none.
        #[test]
        fn dumps() {
            let seeds = ["nginx: ok\n# configuration file /a:\nevents { }\n\n# configuration file /b:\nx;\n"];
            weir_mutate::mutate(
                &seeds,
                &["# configuration file ", ":\n", "\n", "\r\n", "nginx: ", "\0", "é"],
                |bytes| {
                    let text = String::from_utf8_lossy(bytes);
                    if let Some((_, main)) = read(&text) {
                        assert!(!main.is_empty() && text.contains(&main));
                    }
                },
            );
        }
    }
}
