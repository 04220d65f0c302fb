//! Parses a lab's file to an [`Experiment`]. Errors name their place in the file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_load::script::{DocumentEntry, ScriptDocument};

use super::lab::{Compare, Expect, Experiment, FILE, Front, Need, Places, Prepare, Sent, Variant, What, name_of};
use super::link::{link, time};
use crate::metric;
use crate::said::{Said, say};
use crate::stack::credits::Credits;
use crate::stack::{Action, Deed, HUB, Host, LineWatch, Process, ReadyCondition, Spec};
use crate::texts;

/// The keys of a lab's file, each with its meaning. A test checks the guide against them.
pub const KEYS: &[(&str, &str)] = &[
    ("title", "the experiment in a line"),
    ("prior", "the expected result"),
    ("ci", "true, or a list of its variants: `--ci` runs it, or those"),
    ("needs", "the required programs: a list of `program: install command`; a path is relative to the lab's folder"),
    (
        "prepare",
        "files that the lab builds once and keeps: a list of `makes` (a path), `run` (a command) and `from` (a path; the lab builds again if it is newer)",
    ),
    ("edges", "the edges of the experiment; the default is nginx and weir"),
    (
        "hosts",
        "hosts by name: addresses, sysctls, rate (kbit/s), delay, jitter, loss, reorder, seed, cpus, memory (MiB), credits; the edge's host is called edge",
    ),
    (
        "processes",
        "by name, in the order they start: run, host, env, cwd, files, cpus, ready, within, together, step, late, skip, free",
    ),
    ("edge", "conf, port, globals, files, cpus, scheme"),
    ("load", "script, or path, or run; flags, host, cpus, env, to (HOST:PORT instead of the edge)"),
    ("warm", "the same, before the measurement"),
    (
        "at",
        "events: `after` (a time, or end) with stop, continue, kill, restart or reload (a process), or run, as, host",
    ),
    ("count", "lines that the lab counts, by name: file, text"),
    ("fresh", "directories that are empty at the start, in addition to logs and caches"),
    ("overlay", "directories; the lab discards changes in them"),
    ("may_end", "true: processes may end before the lab ends them"),
    ("limit", "the longest time of a block; the default is 60s"),
    ("variants", "by name: any of the keys from hosts on; they override the experiment's keys"),
    (
        "compare",
        "metric, threshold (per cent), pairs: the two variants in alternating blocks; with more variants, a list of such comparisons, each with its two `variants`",
    ),
    (
        "expect",
        "a list: that, of, edge, variant, against, is, least, most, verdict, timed, says; with `--noisy`, an expectation with `timed: true` does not fail the run",
    ),
];

/// Most variants of a lab, and most edges.
const VARIANTS_MAX: usize = 32;
/// The longest time of a block, unless the file sets it.
const LIMIT: Duration = Duration::from_secs(60);
/// Most CPUs a list may name.
const CPUS_MAX: u64 = 1023;

/// The keys of a host.
const HOST: &[&str] =
    &["addresses", "sysctls", "rate", "delay", "jitter", "loss", "reorder", "seed", "cpus", "memory", "credits"];

/// Makes an operation on the process with that name.
type MakeDeed = fn(String) -> Deed;

/// Reads the lab in a folder.
pub fn read(dir: &Path, places: &Places) -> Result<Experiment, Said> {
    let dir = std::path::absolute(dir).map_err(|error| say!(ERR_FILE, dir.display().to_string(), error.to_string()))?;
    let file = dir.join(FILE);
    let text = std::fs::read_to_string(&file)
        .map_err(|error| say!(ERR_FILE, file.display().to_string(), error.to_string()))?;
    let document = ScriptDocument::read(&file.display().to_string(), &text)?;
    let reader = Reader { dir: &dir, places };
    let root = document.root();
    let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    root.members(&known)?;
    let text = |name: &str| root.get(name).map_or(Ok(String::new()), |entry| entry.text());
    let edges = names(root.get("edges"))?;
    Ok(Experiment {
        name: name_of(&dir),
        title: root.want("title")?.text()?,
        prior: text("prior")?,
        ci: root.get("ci").map(|entry| ci(&entry)).transpose()?.flatten(),
        needs: needs(&root)?,
        prepare: reader.prepare(&root)?,
        edges: if edges.is_empty() { vec!["nginx".to_owned(), "weir".to_owned()] } else { edges },
        variants: reader.variants(&document)?,
        compare: compares(&root)?,
        expect: expect(&root)?,
        dir: dir.clone(),
    })
}

/// The texts of a list, or one single text.
fn names(entry: Option<DocumentEntry<'_>>) -> Result<Vec<String>, Said> {
    entry.map_or(Ok(Vec::new()), |entry| entry.list().iter().map(DocumentEntry::text).collect())
}

/// Whether CI runs the lab, and which variants. An empty list means all variants.
fn ci(entry: &DocumentEntry<'_>) -> Result<Option<Vec<String>>, Said> {
    match entry.is_list() {
        true => names(Some(*entry)).map(Some),
        false => Ok(entry.flag()?.then(Vec::new)),
    }
}

fn needs(root: &DocumentEntry<'_>) -> Result<Vec<Need>, Said> {
    let mut needs = Vec::new();
    for entry in root.get("needs").map(|entry| entry.list()).unwrap_or_default() {
        for (what, install) in entry.members(&[])? {
            needs.push(Need { what: what.to_owned(), install: install.text()? });
        }
    }
    Ok(needs)
}

/// One comparison, or a list of comparisons that name their variants.
fn compares(root: &DocumentEntry<'_>) -> Result<Vec<Compare>, Said> {
    let variants = root.get("variants").map_or(Ok(Vec::new()), |entry| entry.members(&[]))?;
    let known: Vec<&str> = variants.into_iter().map(|(name, _)| name).collect();
    let all = root.get("compare").map(|entry| entry.list()).unwrap_or_default();
    all.iter().map(|entry| compare(entry, &known)).collect()
}

fn compare(entry: &DocumentEntry<'_>, known: &[&str]) -> Result<Compare, Said> {
    entry.members(&["variants", "metric", "threshold", "pairs"])?;
    let sides = |named: DocumentEntry<'_>| {
        let sides: Result<[String; 2], _> = names(Some(named))?.try_into();
        let sides = sides.ok().filter(|sides| sides.iter().all(|name| known.contains(&name.as_str())));
        sides.ok_or_else(|| named.wrong(say!(ERR_SIDES, known.join(", "))))
    };
    let named = entry.want("metric")?;
    let metric = metric::of(&named.text()?).ok_or_else(|| {
        let known: Vec<&str> = metric::METRICS.iter().map(|metric| metric.key).collect();
        named.wrong(say!(ERR_ONE_OF, known.join(", ")))
    })?;
    let threshold = entry.get("threshold").map(|entry| entry.number(0.01, 99.0)).transpose()?;
    let pairs = entry.want("pairs")?.number(2.0, 24.0)?;
    Ok(Compare {
        sides: entry.get("variants").map(sides).transpose()?,
        metric,
        threshold: threshold.map_or(metric.threshold, |percent| percent / 100.0),
        pairs: pairs as usize,
    })
}

fn expect(root: &DocumentEntry<'_>) -> Result<Vec<Expect>, Said> {
    let known = ["that", "of", "edge", "variant", "against", "is", "least", "most", "verdict", "timed", "says"];
    let one = |entry: DocumentEntry<'_>| {
        entry.members(&known)?;
        let number = |name: &str| entry.get(name).map(|entry| entry.number(-1e15, 1e15)).transpose();
        let text = |name: &str| entry.get(name).map(|entry| entry.text()).transpose();
        let is = number("is")?;
        let range =
            (is.or(number("least")?).unwrap_or(f64::NEG_INFINITY), is.or(number("most")?).unwrap_or(f64::INFINITY));
        let verdicts = names(entry.get("verdict"))?;
        let that = names(entry.get("that"))?;
        if that.is_empty() == verdicts.is_empty()
            || (verdicts.is_empty() && range.0 == f64::NEG_INFINITY && range.1 == f64::INFINITY)
        {
            return Err(entry.wrong(texts::ERR_EXPECT));
        }
        Ok(Expect {
            that,
            of: names(entry.get("of"))?,
            edge: text("edge")?,
            variant: text("variant")?,
            against: text("against")?,
            range,
            verdicts,
            is_timed: entry.get("timed").map(|entry| entry.flag()).transpose()?.unwrap_or(false),
            says: entry.want("says")?.text()?,
            place: entry.wrong("").lines().next().unwrap_or_default().trim_end_matches([':', ' ']).to_owned(),
        })
    };
    root.get("expect").map(|entry| entry.list()).unwrap_or_default().into_iter().map(one).collect()
}

/// The values for `${…}` in a file's texts.
struct Reader<'a> {
    dir: &'a Path,
    places: &'a Places,
}

impl Reader<'_> {
    /// A text with its `${…}` filled in. `${host:NAME}` is a host's address. It is filled in later, when the hosts
    /// have addresses.
    fn text(&self, entry: &DocumentEntry<'_>) -> Result<String, Said> {
        let mut text = entry.text()?;
        let labs = self.dir.parent().unwrap_or(self.dir);
        let known: [(&str, &Path); 5] = [
            ("lab", self.dir),
            ("labs", labs),
            ("weir", &self.places.weir),
            ("nginx", &self.places.nginx),
            ("cache", &self.places.cache),
        ];
        for (name, path) in known {
            text = text.replace(&format!("${{{name}}}"), &path.display().to_string());
        }
        Ok(text)
    }

    fn path(&self, entry: &DocumentEntry<'_>) -> Result<PathBuf, Said> {
        Ok(self.dir.join(self.text(entry)?))
    }

    /// A command: a list of words, or a line for the shell.
    fn command(&self, entry: &DocumentEntry<'_>) -> Result<Vec<String>, Said> {
        if entry.is_list() {
            return entry.list().iter().map(|word| self.text(word)).collect();
        }
        Ok(vec!["sh".to_owned(), "-c".to_owned(), self.text(entry)?])
    }

    fn pairs(&self, entry: Option<DocumentEntry<'_>>) -> Result<Vec<(String, String)>, Said> {
        let Some(entry) = entry else { return Ok(Vec::new()) };
        entry.members(&[])?.into_iter().map(|(name, value)| Ok((name.to_owned(), self.text(&value)?))).collect()
    }

    fn prepare(&self, root: &DocumentEntry<'_>) -> Result<Vec<Prepare>, Said> {
        let one = |entry: DocumentEntry<'_>| {
            entry.members(&["makes", "run", "from"])?;
            Ok(Prepare {
                makes: self.path(&entry.want("makes")?)?,
                run: self.text(&entry.want("run")?)?,
                from: entry.get("from").map(|entry| self.path(&entry)).transpose()?,
            })
        };
        root.get("prepare").map(|entry| entry.list()).unwrap_or_default().into_iter().map(one).collect()
    }

    fn variants(&self, document: &ScriptDocument) -> Result<Vec<Variant>, Said> {
        let root = document.root();
        let from = KEYS.iter().position(|(key, _)| *key == "hosts").unwrap_or(0);
        let to = KEYS.iter().position(|(key, _)| *key == "variants").unwrap_or(from);
        let known: Vec<&str> = KEYS.get(from..to).unwrap_or_default().iter().map(|(key, _)| *key).collect();
        let Some(listed) = root.get("variants") else { return Ok(vec![self.variant("", document)?]) };
        let members = listed.members(&[])?;
        if members.len() > VARIANTS_MAX {
            return Err(listed.wrong(say!(ERR_VARIANTS_MANY, VARIANTS_MAX)));
        }
        let one = |(name, entry): (&str, DocumentEntry<'_>)| {
            entry.members(&known)?;
            // A variant with only a name overrides nothing.
            if entry.is_map() { self.variant(name, &document.with(&entry)) } else { self.variant(name, document) }
        };
        members.into_iter().map(one).collect()
    }

    fn variant(&self, name: &str, document: &ScriptDocument) -> Result<Variant, Said> {
        let root = document.root();
        let hosts = self.hosts(&root)?;
        let (mut processes, mut late) = (Vec::new(), Vec::new());
        for (name, entry) in root.get("processes").map_or(Ok(Vec::new()), |entry| entry.members(&[]))? {
            if entry.get("skip").map_or(Ok(false), |entry| entry.flag())? {
                continue;
            }
            let is_late = entry.get("late").map_or(Ok(false), |entry| entry.flag())?;
            let process = self.process(name, &entry, &hosts)?;
            if is_late { late.push(process) } else { processes.push(process) }
        }
        let after_edge = late.len();
        processes.extend(late);
        Ok(Variant {
            name: name.to_owned(),
            processes,
            after_edge,
            front: self.front(&root.want("edge")?)?,
            load: root.get("load").map(|entry| self.sent(&entry, &hosts)).transpose()?,
            warm: root.get("warm").map(|entry| self.sent(&entry, &hosts)).transpose()?,
            actions: self.actions(&root)?,
            watches: self.watches(&root)?,
            fresh: names(root.get("fresh"))?,
            overlaid: names(root.get("overlay"))?,
            may_end: root.get("may_end").map_or(Ok(false), |entry| entry.flag())?,
            limit: root.get("limit").map_or(Ok(LIMIT), |entry| time(&entry))?,
            hosts,
        })
    }

    fn hosts(&self, root: &DocumentEntry<'_>) -> Result<Vec<Host>, Said> {
        let Some(entry) = root.get("hosts") else { return Ok(Vec::new()) };
        let mut hosts = Vec::new();
        for (name, entry) in entry.members(&[])? {
            entry.members(HOST)?;
            let mut host = Host::named(name);
            for text in names(entry.get("addresses"))? {
                host.addresses.push(text.parse().map_err(|_| entry.wrong(say!(ERR_ADDRESS, &text)))?);
            }
            host.sysctls = self.pairs(entry.get("sysctls"))?;
            host.rate_kbit = entry.get("rate").map(|entry| entry.whole(100_000_000)).transpose()?;
            host.link = link(&entry, name)?;
            host.cpus = entry.get("cpus").map(|entry| entry.number(0.01, 1024.0)).transpose()?;
            host.memory_mb = entry.get("memory").map(|entry| entry.whole(1 << 20)).transpose()?;
            host.credits = entry.get("credits").map(|entry| credits(&entry)).transpose()?;
            // The spec's own check finds further errors of a host. Running it here gives the error a place in the file.
            let spec = Spec {
                hosts: vec![host.clone()],
                client: Process { host: HUB.into(), argv: vec!["x".into()], ..Process::default() },
                ..Spec::default()
            };
            spec.check().map_err(|why| entry.wrong(why))?;
            hosts.push(host);
        }
        Ok(hosts)
    }

    fn process(&self, name: &str, entry: &DocumentEntry<'_>, hosts: &[Host]) -> Result<Process, Said> {
        entry.members(&[
            "run", "host", "env", "cwd", "files", "cpus", "ready", "within", "together", "step", "late", "skip", "free",
        ])?;
        let flag = |name: &str| entry.get(name).map_or(Ok(false), |entry| entry.flag());
        let host = host(entry, hosts)?;
        let free = entry.get("free").map(|entry| match entry.text()?.as_str() {
            "true" => Ok(true),
            "start" => Ok(false),
            _ => Err(entry.wrong(texts::ERR_FREE)),
        });
        let free = free.transpose()?;
        Ok(Process {
            name: name.to_owned(),
            ready: entry.get("ready").map_or(Ok(ReadyCondition::Started), |ready| self.ready(&ready, &host, hosts))?,
            host,
            argv: self.command(&entry.want("run")?)?,
            env: self.pairs(entry.get("env"))?,
            cwd: entry.get("cwd").map(|entry| self.path(&entry)).transpose()?,
            cpus: cpus(entry)?,
            files: files(entry)?,
            patience_s: entry.get("within").map_or(Ok(Duration::ZERO), |entry| time(&entry))?.as_secs(),
            is_together: flag("together")?,
            is_unlimited: free == Some(true),
            is_limited_late: free == Some(false),
            is_step: flag("step")?,
        })
    }

    /// `3000`, `10.0.0.1:3000`, or a list of them; or `prints: text`.
    fn ready(&self, entry: &DocumentEntry<'_>, host: &str, hosts: &[Host]) -> Result<ReadyCondition, Said> {
        if entry.is_map() {
            entry.members(&["prints"])?;
            return Ok(ReadyCondition::Prints(entry.want("prints")?.text()?));
        }
        let one = |entry: &DocumentEntry<'_>| place(entry, host, hosts).map_err(|_| entry.wrong(texts::ERR_READY));
        entry.list().iter().map(one).collect::<Result<_, _>>().map(ReadyCondition::Answers)
    }

    fn front(&self, entry: &DocumentEntry<'_>) -> Result<Front, Said> {
        entry.members(&["conf", "port", "globals", "files", "cpus", "scheme"])?;
        let text = |name: &str| entry.get(name).map_or(Ok(String::new()), |entry| entry.text());
        Ok(Front {
            conf: self.path(&entry.want("conf")?)?,
            port: entry
                .get("port")
                .map(|entry| entry.whole(65535))
                .transpose()?
                .and_then(|port| u16::try_from(port).ok()),
            globals: text("globals")?,
            files: files(entry)?,
            cpus: cpus(entry)?,
            scheme: entry.get("scheme").map_or(Ok("http".to_owned()), |entry| entry.text())?,
        })
    }

    fn sent(&self, entry: &DocumentEntry<'_>, hosts: &[Host]) -> Result<Sent, Said> {
        entry.members(&["script", "path", "run", "flags", "host", "cpus", "env", "to"])?;
        let flags = names(entry.get("flags"))?;
        let what = match (entry.get("script"), entry.get("path"), entry.get("run")) {
            (Some(script), None, None) => What::Script(self.path(&script)?, flags),
            (None, Some(path), None) => What::Path(self.text(&path)?, flags),
            (None, None, Some(run)) => What::Command(self.command(&run)?, self.pairs(entry.get("env"))?),
            _ => return Err(entry.wrong(texts::ERR_SENT)),
        };
        let host = entry.get("host").map_or(Ok(HUB.to_owned()), |entry| entry.text())?;
        let to = entry.get("to").map(|entry| place(&entry, HUB, hosts)).transpose()?;
        Ok(Sent { host, cpus: cpus(entry)?, to, what })
    }

    fn actions(&self, root: &DocumentEntry<'_>) -> Result<Vec<Action>, Said> {
        let mut actions = Vec::new();
        for entry in root.get("at").map(|entry| entry.list()).unwrap_or_default() {
            entry.members(&["after", "stop", "continue", "kill", "restart", "reload", "run", "as", "host", "env"])?;
            let after = entry.want("after")?;
            let at_ms = match after.text()?.as_str() {
                "end" => None,
                _ => Some(u64::try_from(time(&after)?.as_millis()).unwrap_or(u64::MAX)),
            };
            let named = |name: &str| entry.get(name).map(|entry| entry.text()).transpose();
            let deed = if let Some(run) = entry.get("run") {
                Deed::Run(Process {
                    name: named("as")?.unwrap_or_else(|| format!("run{}", actions.len())),
                    host: named("host")?.unwrap_or_else(|| HUB.to_owned()),
                    argv: self.command(&run)?,
                    env: self.pairs(entry.get("env"))?,
                    ..Process::default()
                })
            } else {
                let deeds: [(&str, MakeDeed); 5] = [
                    ("stop", Deed::Stop),
                    ("continue", Deed::Continue),
                    ("kill", Deed::Kill),
                    ("restart", Deed::Restart),
                    ("reload", Deed::Reload),
                ];
                let found = deeds.into_iter().find_map(|(name, deed)| Some((entry.get(name)?, deed)));
                let (of, deed) = found.ok_or_else(|| entry.wrong(texts::ERR_DEED))?;
                deed(of.text()?)
            };
            actions.push(Action { at_ms, deed });
        }
        Ok(actions)
    }

    fn watches(&self, root: &DocumentEntry<'_>) -> Result<Vec<LineWatch>, Said> {
        let members = root.get("count").map_or(Ok(Vec::new()), |entry| entry.members(&[]))?;
        let one = |(name, entry): (&str, DocumentEntry<'_>)| {
            entry.members(&["file", "text"])?;
            let file =
                entry.get("file").map_or(Ok("/var/log/nginx/error.log".to_owned()), |entry| self.text(&entry))?;
            Ok(LineWatch { name: name.to_owned(), file: file.into(), text: entry.want("text")?.text()? })
        };
        members.into_iter().map(one).collect()
    }
}

/// A port of `host`, or HOST:PORT with the address or name of a host.
fn place(entry: &DocumentEntry<'_>, host: &str, hosts: &[Host]) -> Result<SocketAddr, Said> {
    let spec = Spec { hosts: hosts.to_vec(), ..Spec::default() };
    let text = entry.text()?;
    let text = if text.contains(':') { text } else { format!("{host}:{text}") };
    let (name, port) = text.rsplit_once(':').unwrap_or(("", &text));
    let address = spec.address_of(name).map(|ip| format!("{ip}:{port}")).unwrap_or_else(|| text.clone());
    address.parse().map_err(|_| entry.wrong(texts::ERR_PLACE))
}

fn host(entry: &DocumentEntry<'_>, hosts: &[Host]) -> Result<String, Said> {
    let Some(named) = entry.get("host") else { return Ok(HUB.to_owned()) };
    let name = named.text()?;
    if name == HUB || hosts.iter().any(|host| host.name == name) {
        return Ok(name);
    }
    Err(named.wrong(say!(ERR_NO_HOST, name)))
}

fn cpus(entry: &DocumentEntry<'_>) -> Result<Vec<usize>, Said> {
    let Some(list) = entry.get("cpus") else { return Ok(Vec::new()) };
    list.list().iter().map(|cpu| cpu.whole(CPUS_MAX).map(|cpu| cpu as usize)).collect()
}

/// One number for both limits, or soft and hard.
fn files(entry: &DocumentEntry<'_>) -> Result<Option<(u64, u64)>, Said> {
    let Some(limits) = entry.get("files") else { return Ok(None) };
    let numbers = limits.list().iter().map(|limit| limit.whole(1 << 30)).collect::<Result<Vec<_>, _>>()?;
    match numbers.as_slice() {
        [both] => Ok(Some((*both, *both))),
        [soft, hard] if soft <= hard => Ok(Some((*soft, *hard))),
        _ => Err(limits.wrong(texts::ERR_LIMITS)),
    }
}

fn credits(entry: &DocumentEntry<'_>) -> Result<Credits, Said> {
    entry.members(&["instance", "initial", "speed"])?;
    let instance = entry.want("instance")?;
    let initial = entry.want("initial")?.number(0.0, 1e6)?;
    let speed = entry.get("speed").map_or(Ok(1.0), |entry| entry.number(0.1, 10_000.0))?;
    Credits::of(&instance.text()?, initial, speed).ok_or_else(|| instance.wrong(texts::ERR_INSTANCE))
}
