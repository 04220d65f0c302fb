//! A canary of the origins: the configuration in force, in which two upstreams have exchanged their names (`--split OF=NEXT`).
//!
//! The names are exchanged in the bytes of the files, not in the statements: so the dashboard, a promotion and a server that
//! takes the place of one that died have one text.

use weir_conf::edit::{Edit, apply};
use weir_conf::{Tree, Word, did_you_mean};
use weir_http::exchange::conf::Conf;

/// Two upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamPair {
    /// The upstream that the configuration names where it forwards.
    pub of: String,
    /// The upstream with the servers that a share of the clients gets there.
    pub next: String,
}

/// The blocks that have upstreams.
const AROUND: [&str; 2] = ["http", "stream"];

impl UpstreamPair {
    /// Reads `OF=NEXT`.
    ///
    /// # Errors
    /// The remedy.
    pub fn read(text: &str) -> Result<UpstreamPair, String> {
        let parts = text.split_once('=').filter(|(of, next)| !of.is_empty() && !next.is_empty());
        let Some((of, next)) = parts else {
            return Err("write the names of two upstreams, as in app=app_next".to_owned());
        };
        if of.eq_ignore_ascii_case(next) {
            return Err(format!(
                "\"{of}\" and \"{next}\" are one upstream: write the one with the other servers after \"=\""
            ));
        }
        Ok(UpstreamPair { of: of.to_owned(), next: next.to_owned() })
    }

    /// The names.
    pub fn names(&self) -> [String; 2] {
        [self.of.clone(), self.next.clone()]
    }

    /// The places of both names, `FILE:LINE`, in each block that has both.
    ///
    /// # Errors
    /// No block has both, and the remedy.
    pub fn places(&self, tree: &Tree) -> Result<Vec<String>, String> {
        let place = |word: &&Word| Some(format!("{}:{}", tree.source(&word.at)?.name, word.at.line));
        Ok(self.find(tree)?.iter().flatten().filter_map(place).collect())
    }

    /// The files that change when the names are exchanged, and their new bytes.
    ///
    /// # Errors
    /// The configuration does not have both upstreams in one block, or a name is read in another block too.
    pub fn exchanged(&self, tree: &Tree) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut edits: Vec<Edit> = Vec::new();
        for [of, next] in self.find(tree)? {
            for (here, there) in [(of, next), (next, of)] {
                // As it is written, with its quotes.
                let with = tree.source(&there.at).map(|source| there.at.span.of(&source.bytes)).unwrap_or_default();
                let edit = Edit { file: here.at.file, span: here.at.span, with: with.to_vec() };
                // A file that both blocks include changes once.
                if !edits.contains(&edit) {
                    edits.push(edit);
                }
            }
        }
        let alone = AROUND.iter().filter(|around| self.both(tree, around).is_none());
        for word in alone.flat_map(|around| self.names().map(|name| one(tree, around, &name))).flatten() {
            if edits.iter().any(|edit| (edit.file, edit.span) == (word.at.file, word.at.span)) {
                let name = &word.text;
                return Err(format!(
                    "http and stream include one \"upstream {name}\", but not both have the other one"
                ));
            }
        }
        let files = tree.files.iter().enumerate();
        let changed = files.filter_map(|(number, source)| {
            let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
            (!own.is_empty()).then_some((source, own))
        });
        changed
            .map(|(source, own)| match source.is_command_line {
                true => Err("the upstreams are in the flag -g: write them into a file".to_owned()),
                false => Ok((source.name.clone(), apply(&source.bytes, &own).map_err(|error| error.to_string())?)),
            })
            .collect()
    }

    /// Both names in each block that has both.
    fn find<'t>(&self, tree: &'t Tree) -> Result<Vec<[&'t Word; 2]>, String> {
        let found: Vec<_> = AROUND.iter().filter_map(|around| self.both(tree, around)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let all: Vec<&str> =
            AROUND.iter().flat_map(|around| upstreams(tree, around)).map(|word| word.text.as_str()).collect();
        let unknown = self.names().into_iter().find(|name| !all.iter().any(|known| known.eq_ignore_ascii_case(name)));
        Err(match unknown {
            Some(name) => {
                let remedy = did_you_mean(&name, all).map(|meant| format!(": did you mean \"{meant}\"?"));
                format!("the configuration in force has no \"upstream {name}\"{}", remedy.unwrap_or_default())
            }
            None => format!("one of \"{}\" and \"{}\" is in http, and the other in stream", self.of, self.next),
        })
    }

    fn both<'t>(&self, tree: &'t Tree, around: &str) -> Option<[&'t Word; 2]> {
        Some([one(tree, around, &self.of)?, one(tree, around, &self.next)?])
    }

    /// Refuses a configuration with exchanged names in which the clients would find no server.
    ///
    /// # Errors
    /// The remedy.
    pub fn check(&self, exchanged: &Conf) -> Result<(), String> {
        let http = &weir_proxy::declared(exchanged).upstream;
        let stream = &weir_stream::declared(exchanged).upstream;
        let in_http = http.find(&self.of).and_then(|at| http.groups.get(at)).map(|group| group.has_servers());
        let in_stream = stream.find(&self.of).and_then(|at| stream.groups.get(at)).map(|group| group.has_servers());
        if in_http == Some(false) || in_stream == Some(false) {
            return Err(format!("\"{}\" has no server that may serve: add one, or remove \"down\"", self.next));
        }
        Ok(())
    }
}

/// The names of the upstreams of a block.
fn upstreams<'t>(tree: &'t Tree, around: &str) -> impl Iterator<Item = &'t Word> {
    let blocks = tree.root.iter().filter(move |block| block.name == *around);
    blocks.flat_map(|block| block.named("upstream")).filter_map(|upstream| upstream.args.first())
}

fn one<'t>(tree: &'t Tree, around: &str, name: &str) -> Option<&'t Word> {
    upstreams(tree, around).find(|word| word.text.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn pair(text: &str) -> UpstreamPair {
        UpstreamPair::read(text).unwrap()
    }

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().fold(MemoryFiles::new(), |all, (name, text)| all.with(name, text));
        let (tree, problems) = weir_conf::load(&files, "/f", "/", &|_| false);
        assert_eq!(problems, []);
        tree
    }

    fn exchanged(pair: &UpstreamPair, files: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let changed = pair.exchanged(&tree(files))?;
        Ok(changed.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect())
    }

    #[test]
    fn two_names_are_read_or_refused() {
        assert_eq!(pair("app=app_next").names(), ["app", "app_next"]);
        for (text, what) in [("app", "two upstreams"), ("=b", "two"), ("a=", "two"), ("a=A", "are one upstream")] {
            assert!(UpstreamPair::read(text).is_err_and(|why| why.contains(what)), "{text}");
        }
    }

    #[test]
    fn only_the_names_of_the_blocks_are_exchanged() {
        let text = "http { # app\n upstream app { server a; }\n upstream 'app_next'{ server b; }\n server { location / { proxy_pass http://app; } } }";
        let after = text
            .replace("upstream app {", "upstream 'app_next' {")
            .replace("upstream 'app_next'{ server b", "upstream app{ server b");
        assert_eq!(exchanged(&pair("APP=app_next"), &[("/f", text)]), Ok(vec![("/f".to_owned(), after)]));
        let places = pair("app=app_next").places(&tree(&[("/f", text)]));
        assert_eq!(places, Ok(vec!["/f:2".to_owned(), "/f:3".to_owned()]));
    }

    #[test]
    fn each_block_that_has_both_exchanges_them_also_in_included_files() {
        let main = "http { include /a; include /b; } stream { include /a; include /b; upstream other { server c; } }";
        let files = [("/f", main), ("/a", "upstream a { server a; }"), ("/b", "upstream b { server b; }")];
        let changed = vec![
            ("/a".to_owned(), "upstream b { server a; }".to_owned()),
            ("/b".to_owned(), "upstream a { server b; }".to_owned()),
        ];
        assert_eq!(exchanged(&pair("a=b"), &files), Ok(changed));
        let one = [
            ("/f", "http { include /u; } stream { include /u; }"),
            ("/u", "upstream a { server a; } upstream b { server b; }"),
        ];
        let changed = "upstream b { server a; } upstream a { server b; }".to_owned();
        assert_eq!(exchanged(&pair("a=b"), &one), Ok(vec![("/u".to_owned(), changed)]));
        let alone = main.replace("stream { include /a; include /b;", "stream { include /b;");
        let refused = exchanged(&pair("a=b"), &[("/f", &alone), files[1], files[2]]);
        assert!(refused.is_err_and(|why| why.contains("http and stream include one \"upstream b\"")));
        let alone = main.replace("stream { include /a; include /b;", "stream { upstream a { server s; }");
        assert_eq!(exchanged(&pair("a=b"), &[("/f", &alone), files[1], files[2]]).unwrap().len(), 2);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let text =
            "http { upstream app { server a; } upstream app_next { server b; } } stream { upstream tcp { server c; } }";
        let refused = |of: &str| exchanged(&pair(of), &[("/f", text)]).err().unwrap();
        assert!(refused("app=app_nxt").ends_with("no \"upstream app_nxt\": did you mean \"app_next\"?"));
        assert!(refused("else=app").ends_with("no \"upstream else\""));
        assert!(refused("app=tcp").contains("the other in stream"));
    }

    #[test]
    fn an_upstream_without_servers_gets_no_clients() {
        let conf = |servers: &str| {
            let text = format!("events {{}} http {{ upstream app {{ {servers} }} server {{ listen 1; }} }}");
            let (conf, problems) = crate::of_text(&text);
            assert_eq!(problems, [""; 0], "{text}");
            pair("app=app_next").check(&conf.unwrap())
        };
        assert_eq!(conf("server 127.0.0.1:1 down; server 127.0.0.1:2;"), Ok(()));
        assert_eq!(conf("zone z 64k; resolver 127.0.0.1; server a.test resolve;"), Ok(()));
        for none in ["server 127.0.0.1:1 down;", "zone z 64k; state /nowhere/weir;"] {
            assert!(conf(none).is_err_and(|why| why.contains("\"app_next\" has no server")), "{none}");
        }
    }
}
