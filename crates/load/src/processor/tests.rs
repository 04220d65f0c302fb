//! Tests both engines with the same processors.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_net::worker::block_on;

use super::*;
use crate::engine::http::session::HttpSession;
use crate::value::{UNDEFINED, parse_json};
use crate::vars::{VariableNames, Vars};

const BOTH: [Choice; 2] = [Choice::QuickJs, Choice::Node];

/// Names and texts.
type Files<'f> = &'f [(&'f str, &'f str)];

/// A folder of files, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("weir-js-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One virtual user, and the lines that the processor prints.
struct User {
    vars: Vars,
    recorder: Recorder,
    said: Rc<RefCell<Vec<String>>>,
    processor: Processor,
    scenario: Value,
    session: HttpSession,
}

impl User {
    fn new(processor: Processor, said: Rc<RefCell<Vec<String>>>) -> User {
        let mut names = VariableNames::default();
        names.slot("slotted");
        let mut user = User {
            vars: Vars::new(Arc::new(names)),
            recorder: Recorder::at(1_000_000),
            said,
            processor,
            scenario: json("{\"name\": \"s\"}"),
            session: HttpSession::new(Default::default()),
        };
        for (name, text) in [
            ("slotted", "1"),
            ("text", "\"héllo\""),
            ("list", "[1,2]"),
            ("map", "{\"k\":{\"deep\":[true]}}"),
            ("null", "null"),
        ] {
            user.vars.set_by_name(name, json(text));
        }
        user.vars.set_by_name("$uuid", "u-1".into());
        user
    }

    fn load(path: &Path, choice: Choice) -> Result<User, String> {
        let said = Rc::new(RefCell::new(Vec::new()));
        let sink = said.clone();
        let host = ProcessorHost {
            say: Rc::new(move |line| sink.borrow_mut().push(line)),
            test_run_id: "t-1".into(),
            ..ProcessorHost::default()
        };
        Ok(User::new(Processor::load_with(path, host, choice)?, said))
    }

    fn parts(&mut self) -> (&Processor, Context<'_>) {
        let User { vars, recorder, processor, scenario, session, .. } = self;
        (processor, Context { vars, scenario, uid: "u-1", session, wires: None, recorder })
    }

    async fn function(&mut self, name: &str) -> Result<(), String> {
        let (processor, context) = self.parts();
        processor.function(name, context).await
    }

    /// The named variables as JSON.
    fn changed(&self, names: &str) -> String {
        let shown = names.split(' ').filter(|name| !name.is_empty()).map(|name| {
            let value = self.vars.by_name(name);
            format!("{name}={}", value.to_json().unwrap_or("undefined".into()))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn counters(&self) -> Vec<(Arc<str>, u64)> {
        self.processor.flush(&self.recorder);
        self.recorder.take(u64::MAX).windows.into_iter().flat_map(|window| window.counters).collect()
    }
}

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap()
}

/// Parameters as in a plan.
fn planned(text: &str) -> Params {
    let Value::Map(map) = json(text) else { panic!("{text}") };
    Params::new(Form::new(Arc::unwrap_or_clone(map)))
}

/// Runs a virtual user with processor.js (or another first file) in one engine.
fn with(
    files: &[(&str, &str)],
    choice: Choice,
    run: impl for<'u> FnOnce(&'u mut User) -> Pin<Box<dyn Future<Output = ()> + 'u>> + 'static,
) {
    let folder = Folder::new(files);
    let path = folder.path(files.first().unwrap().0);
    block_on(async move {
        let mut user = User::load(&path, choice).unwrap();
        run(&mut user).await;
    })
    .unwrap();
}

fn with_both(
    source: &str,
    run: impl for<'u> Fn(&'u mut User) -> Pin<Box<dyn Future<Output = ()> + 'u>> + Copy + 'static,
) {
    for choice in BOTH {
        with(&[("processor.js", source)], choice, run);
    }
}

#[test]
fn a_function_step_changes_variables_or_fails() {
    // The body of `go`, the outcome, the names of variables, their values afterwards.
    let cases = [
        ("go = (context, ee, done) => { context.vars.a = 1; done(); }", "", "a", "a=1"),
        ("go = async (c) => c.vars.a.b.c", "Cannot read properties of undefined (reading 'b')", "a", "a=undefined"),
        ("go = async (c) => { c.vars.null.b = 1; }", "Cannot set properties of null (setting 'b')", "a", "a=undefined"),
        (
            "go = function (context, ee, done) { context.vars['slotted'] += 1; return done(); }",
            "",
            "slotted",
            "slotted=2",
        ),
        ("go = async (context) => { context.vars.a = await Promise.resolve('x'); }", "", "a", "a=\"x\""),
        ("go = (c, e, done) => setTimeout(() => { c.vars.a = 1; done(); }, 5)", "", "a", "a=1"),
        (
            "go = (c, e, done) => setImmediate(() => process.nextTick(() => { c.vars.a = [1]; done(); }))",
            "",
            "a",
            "a=[1]",
        ),
        (
            "go = (c, e, done) => { c.vars.list.push(3); c.vars.map.k.deep[0] = false; done(); }",
            "",
            "list map",
            "list=[1,2,3] map={\"k\":{\"deep\":[false]}}",
        ),
        (
            "go = (c, e, done) => { delete c.vars.text; c.vars.null = undefined; done(); }",
            "",
            "text null",
            "text=undefined null=undefined",
        ),
        (
            "go = (c, e, done) => { c.vars.a = null; c.vars.b = [undefined, null]; done(); }",
            "",
            "a b null",
            "a=null b=[null,null] null=null",
        ),
        (
            "go = (c, e, done) => { const { map, ...rest } = c.vars; c.vars.a = Object.keys(rest).sort().join(); done(); }",
            "",
            "a",
            "a=\"$uuid,list,null,slotted,text\"",
        ),
        (
            "go = (c, e, done) => { c.vars.a = 'text' in c.vars; c.vars.b = 'nothing' in c.vars; c.vars.d = c.vars.hasOwnProperty('list'); done(); }",
            "",
            "a b d",
            "a=true b=false d=true",
        ),
        (
            "go = (c, e, done) => { c.vars.a = JSON.stringify(c.vars.map); c.vars.b = c.vars.nothing === undefined && c.vars.null === null; done(); }",
            "",
            "a b",
            "a=\"{\\\"k\\\":{\\\"deep\\\":[true]}}\" b=true",
        ),
        (
            "go = (c, e, done) => { c.vars = { ...c.vars, a: 1, text: undefined }; done(); }",
            "",
            "a text list",
            "a=1 text=undefined list=[1,2]",
        ),
        (
            "go = (c, e, done) => { c.vars.a = { f() {}, n: 1, u: undefined }; const o = {}; o.o = o; c.vars.b = 1; done(); }",
            "",
            "b",
            "b=1",
        ),
        (
            "go = (c, e, done) => { c.vars.a = [c._uid, c.scenario.name, typeof c.funcs.$randomNumber(1, 2)]; done(); }",
            "",
            "a",
            "a=[\"u-1\",\"s\",\"number\"]",
        ),
        (
            "go = (c, e, done) => { c.vars.a = c.funcs.$template('{{ text }}-{{ list[1] }}'); done(); }",
            "",
            "a",
            "a=\"héllo-2\"",
        ),
        (
            "go = (c, e, done) => { c.vars.a = artillery.util.template({ '{{ text }}': ['{{ list }}', 'x{{ map }}'] }, c); done(); }",
            "",
            "a",
            "a={\"héllo\":[[1,2],\"x{\\\"k\\\":{\\\"deep\\\":[true]}}\"]}",
        ),
        (
            "go = (c, e, done) => { c.vars.a = [artillery.testRunId, typeof artillery.version, artillery.stash]; done(); }",
            "",
            "a",
            "a=[\"t-1\",\"string\",null]",
        ),
        ("go = (c, e, done) => done(new Error('boom happened'))", "boom happened", "", ""),
        ("go = (c, e, done) => { c.vars.a = 2; done({ code: 123 }); }", "123", "a", "a=2"),
        ("go = (c, e, done) => done(Object.assign(new Error('m'), { code: 'EX' }))", "EX", "", ""),
        ("go = (c, e, done) => { done(); done(new Error('late')); }", "", "", ""),
        ("go = async () => { throw new Error('async boom'); }", "async boom", "", ""),
        ("go = (c, e, done) => { throw new Error('sync throw'); }", "sync throw", "", ""),
        ("go = async (c, e, next) => next()", "NOT A FUNCTION", "", ""),
        ("go = (c, e, done) => { c.vars.a = 'x\\u0000y\\ud83d\\ude00'; done(); }", "", "a", "a=\"x\\u0000y😀\""),
        (
            "go = (c, e, done) => { c.vars.a = NaN; c.vars.b = -0.5; c.vars.c = 1e300; done(); }",
            "",
            "a b c",
            "a=null b=-0.5 c=1e+300",
        ),
    ];
    for choice in BOTH {
        for (source, error, names, expected) in cases {
            let files =
                [("processor.js", &*format!("let go; module.exports = {{ get go() {{ return go; }} }}; {source}"))];
            with(&files, choice, move |user| {
                Box::pin(async move {
                    let outcome = user.function("go").await;
                    let said = outcome.err().unwrap_or_default();
                    let said = if said.contains("not a function") { "NOT A FUNCTION".to_owned() } else { said };
                    assert_eq!(
                        (said.as_str(), user.changed(names).as_str()),
                        (error, expected),
                        "{choice:?}: {source}"
                    );
                })
            });
        }
    }
}

#[test]
fn metrics_and_lines_arrive() {
    let source = "module.exports.go = (context, ee, done) => {
        ee.emit('counter', 'mine', 2); ee.emit('counter', 'mine', 3); ee.emit('histogram', 'h', 5); ee.emit('rate', 'r');
        ee.emit('error', 'oops'); ee.emit('customStat', { stat: 'old', value: 7 });
        console.log('a %s of %d', 'b', 4, { c: [1, 'x'] }); artillery.log('logged'); artillery.suggestedExitCode = 3; done(); };";
    with_both(source, |user| {
        Box::pin(async move {
            user.function("go").await.unwrap();
            user.processor.flush(&user.recorder);
            let window = user.recorder.take(u64::MAX).windows.remove(0);
            assert_eq!(window.counters, [("mine".into(), 5), ("errors.oops".into(), 1)]);
            let names: Vec<&str> = window.sketches.iter().map(|(name, _)| &**name).collect();
            assert_eq!((names, window.rates.len()), (vec!["h", "old"], 1));
            assert_eq!(*user.said.borrow(), ["a b of 4 { c: [ 1, 'x' ] }", "logged"]);
            assert_eq!(user.processor.exit_code(), Some(3));
        })
    });
}

#[test]
fn request_hooks_see_and_change_requests() {
    let source = "module.exports = {
        before(params, context, ee, next) { params.headers['x-a'] = context.vars.text; params.json = { n: 1 }; delete params.body; next(); },
        async beforeLater(params) { await null; params.url += '?later'; },
        after(params, response, context, ee, next) {
            context.vars.seen = [params.url, response.statusCode, JSON.parse(response.body).id, response.headers['x-b']]; next(); },
        failing(params, response, context, ee, next) { next(new Error('not good')); },
        error(err, params, context, ee, next) { context.vars.failed = [err.message, err.code, params.url, err instanceof Error]; next(); },
        connect(args, context, next) { args.target += '/' + context.vars.list[0]; next(); },
    };";
    with_both(source, |user| {
        Box::pin(async move {
            let mut params = planned("{\"url\":\"http://h/\",\"headers\":{\"a\":\"b\"},\"body\":\"x\"}");
            let (processor, context) = user.parts();
            processor.before_request("before", &mut params, context).await.unwrap();
            let (processor, context) = user.parts();
            processor.before_request("beforeLater", &mut params, context).await.unwrap();
            let text = "{\"url\":\"http://h/?later\",\"headers\":{\"a\":\"b\",\"x-a\":\"héllo\"},\"json\":{\"n\":1}}";
            let params = params.value().into_owned();
            assert_eq!(params.to_json().unwrap(), text);
            let response = json("{\"statusCode\":200,\"body\":\"{\\\"id\\\":7}\",\"headers\":{\"x-b\":\"c\"}}");
            let (processor, context) = user.parts();
            processor.after_response("after", &params, &response, context).await.unwrap();
            assert_eq!(user.changed("seen"), "seen=[\"http://h/?later\",200,7,\"c\"]");
            let (processor, context) = user.parts();
            let failed = processor.after_response("failing", &params, &response, context).await;
            assert_eq!(failed, Err("not good".into()));
            let (processor, context) = user.parts();
            processor.on_error("error", "ECONNREFUSED", &params, context).await;
            assert_eq!(user.changed("failed"), "failed=[\"ECONNREFUSED\",\"ECONNREFUSED\",\"http://h/?later\",true]");
            let mut arguments = json("{\"target\":\"ws://h\"}");
            let (processor, context) = user.parts();
            processor.ws_connect("connect", &mut arguments, context).await.unwrap();
            assert_eq!(arguments.to_json().unwrap(), "{\"target\":\"ws://h/1\"}");
        })
    });
}

#[test]
fn cookies_are_seen_and_set() {
    let source = "exports.go = async (context) => { const jar = context._jar, { vars } = context;
        vars.before = [jar.getCookieStringSync('http://h.test/x/y?z'), jar.getCookieStringSync('http://other.test/x'),
            JSON.stringify(jar.store).includes('\"s\":{\"key\":\"s\",\"value\":\"7\"'), (await jar.getCookies('http://h.test/x'))[0].value];
        jar.setCookieSync('mine=1; Path=/', 'http://h.test/deep/er'); await jar.setCookie('other=2; Secure; Path=/', 'https://h.test');
        vars.after = [jar.getCookieStringSync('http://h.test/x'), jar.getCookieStringSync('https://h.test/'), jar.toJSON().cookies.length];
        try { jar.setCookieSync('none', 'http://h.test/'); } catch (error) { vars.error = error.message; }
    };
    exports.clear = (context, ee, done) => { context._jar.removeAllCookiesSync(); context.vars.left = context._jar.getCookiesSync('http://h.test/x').length; done(); };";
    with_both(source, |user| {
        Box::pin(async move {
            assert!(user.session.put_cookie("s=7; Path=/x", "http://h.test/"));
            user.function("go").await.unwrap();
            assert_eq!(user.changed("before"), "before=[\"s=7\",\"\",true,\"7\"]");
            assert_eq!(user.changed("after"), "after=[\"s=7; mine=1\",\"mine=1; other=2\",3]");
            assert_eq!(user.changed("error"), "error=\"Cookie failed to parse\"");
            let kept = user.session.listed_cookies().to_json().unwrap();
            assert!(kept.contains("\"key\":\"mine\",\"value\":\"1\",\"domain\":\"h.test\",\"path\":\"/\""), "{kept}");
            user.function("clear").await.unwrap();
            assert_eq!((user.changed("left"), user.session.listed_cookies()), ("left=0".to_owned(), Value::Undefined));
        })
    });
}

#[test]
fn conditions_are_asked() {
    let source = "let n = 0; module.exports = { more: (context, next) => next(++n < 3), some: (vars) => vars.list.length === 2, none: (vars) => 0 };";
    with_both(source, |user| {
        Box::pin(async move {
            for expected in [true, true, false] {
                let (processor, context) = user.parts();
                assert_eq!(processor.while_true("more", context).await, Ok(expected));
            }
            let (processor, context) = user.parts();
            assert_eq!(processor.if_true("some", context).await, Ok(true));
            let (processor, context) = user.parts();
            assert_eq!(processor.if_true("none", context).await, Ok(false));
        })
    });
}

#[test]
fn what_values_cannot_hold_stays_with_the_virtual_user() {
    let source = "module.exports = {
        put(context, ee, done) { context.vars.date = new Date(5); context.vars.call = () => 42; context.mine = { n: 1 }; done(); },
        get(context, ee, done) { context.vars.a = [context.vars.date instanceof Date && +context.vars.date, context.vars.call(), context.mine.n]; done(); },
        gone(context, ee, done) { context.vars.a = [typeof context.vars.call, typeof context.mine]; done(); } };";
    with_both(source, |user| {
        Box::pin(async move {
            user.function("put").await.unwrap();
            assert_eq!(user.changed("date"), "date=\"1970-01-01T00:00:00.005Z\"");
            user.function("get").await.unwrap();
            assert_eq!(user.changed("a"), "a=[5,42,1]");
            user.processor.forget("u-1");
            user.function("gone").await.unwrap();
            assert_eq!(user.changed("a"), "a=[\"undefined\",\"undefined\"]");
        })
    });
}

#[test]
fn modules_of_both_kinds_load() {
    let cases: [(Files<'_>, &str); 7] = [
        (&[("processor.js", "exports.go = (c, e, done) => { c.vars.a = require('./lib/a').x + require('./data').n; done(); }"),
           ("lib/a.js", "module.exports = { x: require('../b.cjs') };"), ("b.cjs", "module.exports = 1;"), ("data.json", "{\"n\":2}")], "a=3"),
        (&[("processor.mjs", "import a, { x } from './lib/a.js'; import b from './b.mjs'; import fs, { readFileSync } from 'node:fs';
            import * as path from 'path'; const c = await Promise.resolve(4);
            export const go = async (context) => { context.vars.a = [a.x, x, b, c, typeof fs.readFileSync, typeof readFileSync, path.join('a', 'b')]; };"),
           ("lib/a.js", "exports.x = 1;"), ("b.mjs", "export default 2;")], "a=[1,1,2,4,\"function\",\"function\",\"a/b\"]"),
        (&[("processor.js", "export function go(context, ee, done) { context.vars.a = typeof import.meta.url; done(); }"),
           ("package.json", "{\"type\":\"module\"}")], "a=\"string\""),
        (&[("processor.js", "export default { go(context, ee, done) { context.vars.a = 1; done(); } };"), ("package.json", "{\"type\":\"module\"}")], "a=1"),
        (&[("processor.js", "const { promisify } = require('util'); const p = require('node:path'); const fs = require('fs');
            module.exports = { go: async (c) => { c.vars.a = [fs.readFileSync(p.join(__dirname, 'f.txt'), 'utf8'), p.extname(__filename),
            await promisify((x, done) => done(null, x + 1))(1)]; } };"), ("f.txt", "text")], "a=[\"text\",\".js\",2]"),
        (&[("processor.js", "class P { constructor() { this.go = (c, e, done) => { c.vars.a = 9; done(); }; } } module.exports = new P();")], "a=9"),
        (&[("processor.js", "let loaded; exports.go = async (c) => { c.vars.a = (await import('./late.mjs')).late; };"),
           ("late.mjs", "export const late = 'late';")], "a=\"late\""),
    ];
    for choice in BOTH {
        for (files, expected) in cases {
            with(files, choice, move |user| {
                Box::pin(async move {
                    assert!(user.processor.has("go") && !user.processor.has("stop"));
                    user.function("go").await.unwrap();
                    assert_eq!(user.changed("a"), expected, "{choice:?}: {}", files[0].1);
                })
            });
        }
    }
}

#[test]
fn what_scripts_use_of_node_is_as_in_node() {
    let expressions = [
        "[require('path').resolve('/a', '../b', './c/'), require('path').basename('/x/y.js', '.js'), require('path').relative('/a/b', '/a/c')]",
        "require('crypto').createHash('sha256').update('a').update('b').digest('hex')",
        "require('crypto').createHmac('sha1', 'key').update('data').digest('base64')",
        "[require('crypto').randomUUID().length, require('crypto').randomBytes(4).toString('hex').length]",
        "[Buffer.from('héllo').toString('base64'), Buffer.from('aGk', 'base64').toString(), Buffer.from('ff00', 'hex').readUInt16BE(0)]",
        "[Buffer.from('ab').equals(Buffer.concat([Buffer.from('a'), Buffer.from('b')])), Buffer.byteLength('é'), JSON.stringify(Buffer.from('a'))]",
        "[Buffer.from([0xff, 0xe2, 0x82, 0xac]).toString(), btoa('x?'), atob('eD8='), Buffer.from('a_-', 'utf8').toString('base64url')]",
        "[new TextDecoder().decode(new TextEncoder().encode('é€😀'))]",
        "require('querystring').stringify({ a: [1, 'x y'], b: 'é', c: null }) + require('querystring').parse('a=1&a=2&b=x+y').a.join()",
        "(() => { const u = new URL('../c?x=1#h', 'http://User:pw@Host.example:80/a/b/d'); u.searchParams.append('y', 'a b&'); return [u.href, u.host, u.origin, u.port, u.pathname]; })()",
        "(() => { try { new URL('nothing'); } catch (e) { return [e.code, e.name]; } })()",
        "new URLSearchParams({ q: 'a b', r: \"é!'()*~\" }).toString()",
        "[...new URLSearchParams('?a=1&b=%20+&a=3')].join('|')",
        "require('util').format('%s %d %j %o|', 'a', '5', { a: 1 }, 'x', [1, { b: 'c' }], null, undefined)",
        "require('util').inspect({ a: { b: { c: { d: 1 } } }, f() {}, m: new Map([['k', 1]]), s: new Set([1]), d: new Date(0), e: '\\'' })",
        "[structuredClone({ a: [1, new Date(0)] }).a[1].getTime(), typeof performance.now(), Object.keys(process.env).length > 0]",
        "(() => { const E = require('events'); const e = new E(); let n = 0; e.once('x', (v) => (n += v)); e.emit('x', 2); e.emit('x', 2); return n; })()",
        "(() => { try { require('assert').strictEqual(1, 2); } catch (e) { return e.code; } })()",
        "[[3, 1, 2].toSorted(), [1, [2]].flat(), 'a-b'.replaceAll('-', '+'), [1, 2].at(-1)]",
        "(123456.789).toFixed(1) + ' ' + new Date(Date.UTC(2020, 1, 3)).toISOString()",
    ];
    let mut answers = Vec::new();
    for choice in BOTH {
        let body: String = expressions.iter().map(|text| format!("() => {text},")).collect();
        let source = format!(
            "const all = [{body}]; exports.go = (c, e, done) => {{ c.vars.a = all.map((f) => {{ try {{ return f(); }} catch (e) {{ return 'threw ' + e; }} }}); done(); }};"
        );
        let answer = Arc::new(std::sync::Mutex::new(Value::Undefined));
        let out = answer.clone();
        with(&[("processor.js", &source)], choice, move |user| {
            Box::pin(async move {
                user.function("go").await.unwrap();
                *out.lock().unwrap() = user.vars.by_name("a").clone();
            })
        });
        answers.push(answer.lock().unwrap().clone());
    }
    let [Value::List(quick), Value::List(node)] = answers.as_slice() else { panic!("{answers:?}") };
    for ((quick, node), text) in quick.iter().zip(node.iter()).zip(expressions) {
        assert_eq!(quick.to_json(), node.to_json(), "{text}");
    }
    assert_eq!(quick.len(), expressions.len());
}

#[test]
fn what_needs_node_goes_there() {
    for (source, engine) in [
        ("exports.go = (c, e, done) => done();", "QuickJS"),
        ("// fetch() is not used here\nexports.go = (c, e, done) => done();", "QuickJS"),
        ("const fetch = (x) => x; exports.go = (c, e, done) => { fetch(1); done(); }", "QuickJS"),
        ("exports.go = async () => { await fetch('http://127.0.0.1:9/'); }", "Node"),
        ("const http = require('http'); exports.go = (c, e, done) => done();", "Node"),
        ("const fs = require('fs'); exports.go = (c, e, done) => { fs.createReadStream('x'); done(); }", "Node"),
        ("const { createReadStream } = require('fs'); exports.go = (c, e, done) => done();", "Node"),
        ("exports.go = (c, e, done) => { new Intl.NumberFormat('de').format(1); done(); }", "Node"),
        ("const zlib = require('node:zlib'); exports.go = (c, e, done) => done();", "Node"),
    ] {
        let folder = Folder::new(&[("processor.js", source)]);
        let processor =
            Processor::load_with(&folder.path("processor.js"), ProcessorHost::default(), Choice::Fitting).unwrap();
        assert_eq!(processor.engine(), engine, "{source}");
        assert!(processor.has("go"));
    }
}

#[test]
fn what_cannot_load_says_why() {
    let cases: [(Files<'_>, Choice, &str); 6] = [
        (
            &[("p.js", "const a = require('nothing-of-that-name');")],
            Choice::Fitting,
            "run `npm install nothing-of-that-name` in /",
        ),
        (&[("p.js", "exports.go = (")], Choice::QuickJs, "SyntaxError"),
        (&[("p.js", "\n\nthrow new Error('at the top');")], Choice::QuickJs, "at the top"),
        (&[("p.js", "require('./missing')")], Choice::QuickJs, "Cannot find module './missing'"),
        (&[("p.mjs", "import x from './missing.mjs';")], Choice::QuickJs, "missing.mjs"),
        (&[("p.js", "while (true) {}")], Choice::QuickJs, "without a pause"),
    ];
    for (files, choice, words) in cases {
        let folder = Folder::new(files);
        let error =
            Processor::load_with(&folder.path(files[0].0), ProcessorHost::default(), choice).err().unwrap_or_default();
        assert!(error.contains(words) && error.contains(files[0].0), "{words}: {error}");
    }
    let error = Processor::load(Path::new("/nowhere/p.js")).err().unwrap();
    assert_eq!(error, "/nowhere/p.js: there is no such file");
}

/// A stand-in for esbuild: its output exports one function, whose name says where this esbuild was.
fn esbuild(place: &str) -> String {
    format!("exports.buildSync = () => ({{ outputFiles: [{{ text: 'exports.from_{place} = async () => {{}};' }}] }});")
}

#[test]
fn typescript_is_built_by_the_esbuild_that_is_near_or_artillerys() {
    let (near, inner) = (esbuild("near"), esbuild("artillery"));
    let enums = ("tests/p.ts", "enum K { A = 1 } export const a = K.A;");
    let package = ("node_modules/artillery/package.json", "{\"name\":\"artillery\"}");
    let of_artillery = "node_modules/artillery/node_modules/esbuild-wasm/index.js";
    for (files, name) in [
        (&[enums, ("tests/node_modules/esbuild/index.js", &*near)][..], "from_near"),
        (&[enums, ("node_modules/esbuild/index.js", &near), package, (of_artillery, &inner)], "from_near"),
        (&[enums, ("node_modules/esbuild-wasm/index.js", &near)], "from_near"),
        (&[enums, package, (of_artillery, &inner)], "from_artillery"),
    ] {
        let folder = Folder::new(files);
        let processor = Processor::load_with(&folder.path(enums.0), ProcessorHost::default(), Choice::Fitting).unwrap();
        assert!(processor.has(name), "{name}");
    }
}

/// Runs a test again in a process that finds Node and no other program; true in that process.
fn has_node_alone(test: &str) -> bool {
    if std::env::var_os("NODE_ALONE").is_some() {
        return true;
    }
    let folder = Folder::new(&[("bin/readme", "")]);
    std::os::unix::fs::symlink(node::find().unwrap(), folder.path("bin/node")).unwrap();
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([&format!("processor::tests::{test}"), "--exact"]).env("NODE_ALONE", "yes");
    let ran = again.env("PATH", folder.path("bin")).env("HOME", &folder.0).env_remove("NODE_PATH").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// The error of a processor in TypeScript, and the advice to install esbuild beside it.
fn refusal_and_advice(source: &str) -> (String, String) {
    let others = [("other.ts", "export const b = 1;"), ("data.json", "{}"), ("folder/index.ts", "export const b = 1;")];
    let folder = Folder::new(&[&others[..], &[("p.ts", source)]].concat());
    let error = Processor::load_with(&folder.path("p.ts"), ProcessorHost::default(), Choice::Fitting).err().unwrap();
    (error, format!("run `npm install esbuild` in {}", folder.0.display()))
}

#[test]
fn typescript_that_needs_esbuild_says_so() {
    if !has_node_alone("typescript_that_needs_esbuild_says_so") {
        return;
    }
    for source in [
        "enum K { A = 1 } export const a = K.A;",
        "namespace N { export const a = 3 } export const b = N.a;",
        "class A { constructor(private n: number) {} } export const a = new A(4);",
        "import { b } from './other'; export const a = b;",
        "import { b } from './other.js'; export const a = b;",
        "import { b } from './folder'; export const a = b;",
        "import d from './data.json'; export const a = d;",
    ] {
        let (error, advice) = refusal_and_advice(source);
        assert!(error.ends_with(&advice), "{source}: {error}");
    }
}

#[test]
fn a_mistake_in_typescript_has_its_place() {
    if !has_node_alone("a_mistake_in_typescript_has_its_place") {
        return;
    }
    let features = ["-p", "Boolean(process.features.typescript)"];
    let reads = std::process::Command::new(node::find().unwrap()).args(features).output().unwrap();
    if reads.stdout != b"true\n" {
        // This Node needs esbuild for every file in TypeScript.
        return;
    }
    let (error, advice) = refusal_and_advice("\n\nenum K { A }");
    assert!(error.contains("p.ts:3). Without esbuild") && error.ends_with(&advice), "{error}");
    let (error, advice) = refusal_and_advice("export const a = 1;\n\nexport const b = (;\n");
    assert!(error.ends_with(&format!("/p.ts:3). esbuild reads more: {advice}")), "{error}");
    for (source, words) in [
        ("\n\nthrow new Error('at the top');", "p.ts:3"),
        ("\n\nJSON.parse('{x');", "p.ts:3"),
        ("import { b } from './nothing';", "nothing' imported from"),
        ("import { b } from './nothing.ts';", "nothing.ts' imported from"),
    ] {
        let (error, _) = refusal_and_advice(source);
        assert!(error.contains(words) && !error.contains("esbuild"), "{source}: {error}");
    }
}

#[test]
fn what_never_ends_is_ended() {
    let source = "module.exports = {
        forgets(context, ee, done) { context.vars.a = 1; },
        async waits() { await new Promise(() => {}); },
        spins() { while (true) {} },
        async spinsLater() { await null; for (;;) await null; },
        fine(context, ee, done) { done(); } };";
    with(&[("processor.js", source)], Choice::QuickJs, |user| {
        Box::pin(async move {
            let Engine::Quick(quick) = &user.processor.engine else { panic!("QuickJS") };
            quick.set_bounds(Duration::from_millis(30), Duration::from_millis(20));
            for (name, words) in [
                ("forgets", "function forgets did not end in 20ms, and no timer of the processor is pending"),
                ("waits", "function waits did not end in 20ms, and no timer of the processor is pending"),
                ("spins", "a function ran for more than 30ms without a pause"),
                ("spinsLater", "a function ran for more than 30ms without a pause"),
            ] {
                assert_eq!(user.function(name).await, Err(words.into()));
                assert_eq!(user.function("fine").await, Ok(()));
            }
            assert_eq!(user.changed("a"), "a=1");
        })
    });
    with(&[("processor.js", source)], Choice::Node, |user| {
        Box::pin(async move {
            let Engine::Node(node) = &user.processor.engine else { panic!("Node") };
            node.set_bounds(Duration::from_millis(20));
            assert_eq!(user.function("waits").await, Err("function waits did not end in 20ms".into()));
        })
    });
}

#[test]
fn a_node_that_dies_fails_calls_and_keeps_variables() {
    let source = "module.exports = { die() { process.exit(1); }, fine(c, e, done) { done(); } };";
    with(&[("processor.js", source)], Choice::Node, |user| {
        Box::pin(async move {
            assert_eq!(user.function("die").await, Err("processor: Node ended".into()));
            assert_eq!(user.function("fine").await, Err("processor: Node ended".into()));
            assert_eq!(user.changed("text"), "text=\"héllo\"");
        })
    });
}

#[test]
fn node_ends_with_its_processor() {
    let folder = Folder::new(&[("processor.js", "setInterval(() => {}, 1000);")]);
    let processor = Processor::load_with(&folder.path("processor.js"), ProcessorHost::default(), Choice::Node).unwrap();
    let Engine::Node(node) = &processor.engine else { panic!("Node") };
    let path = format!("/proc/{}", node.child_id());
    assert!(Path::new(&path).exists());
    drop(processor);
    assert!(!Path::new(&path).exists());
}

#[test]
fn many_virtual_users_wait_at_once() {
    let source = "let waiting = []; exports.go = (context, ee, done) => {
        waiting.push(() => { context.vars.a = waiting.length; done(); });
        if (waiting.length === 3) for (const wake of waiting) wake(); };
        exports.sleep = async (context) => { await new Promise((r) => setTimeout(r, 3 * (1 + context.vars.slotted % 4))); context.vars.a = context.vars.slotted; };";
    for choice in BOTH {
        let folder = Folder::new(&[("processor.js", source)]);
        let path = folder.path("processor.js");
        block_on(async move {
            let user = User::load(&path, choice).unwrap();
            let processor = Rc::new(user.processor);
            let done = Rc::new(RefCell::new(Vec::new()));
            for (name, count) in [("go", 3), ("sleep", 40)] {
                for number in 0..count {
                    let (processor, done, mut vars) = (processor.clone(), done.clone(), user.vars.clone());
                    weir_net::worker::spawn(async move {
                        let recorder = Recorder::default();
                        vars.set_by_name("slotted", Value::from(f64::from(number)));
                        let uid = format!("u-{number}");
                        let context = Context {
                            wires: None,
                            vars: &mut vars,
                            scenario: &Value::Undefined,
                            uid: &uid,
                            session: &HttpSession::new(Default::default()),
                            recorder: &recorder,
                        };
                        processor.function(name, context).await.unwrap();
                        done.borrow_mut()
                            .push(vars.by_name("a").to_number() as i32 - if name == "go" { 3 } else { number });
                    });
                }
            }
            while done.borrow().len() < 43 {
                weir_net::timer::sleep(Duration::from_millis(1)).await;
            }
            assert!(done.borrow().iter().all(|difference| *difference == 0), "{choice:?} {:?}", done.borrow());
        })
        .unwrap();
    }
}

#[test]
fn a_virtual_user_has_one_context() {
    let source = "let seen; module.exports = {
        look(c, e, done) { c.vars.a = [seen === c, c.n]; seen = c; c.n = (c.n ?? 0) + 1; c.vars.list = []; done(); c.vars.list.push(1); },
        twice(c, e, done) { setTimeout(() => { done(); setTimeout(done, 1); }, 1); },
        slow(c, e, done) { setTimeout(() => { c.vars.a = 'slow'; done(); }, 30); },
        stale(c, e, done) { c.vars.map = { later: true }; done(); setTimeout(() => { seen.vars.map.never = true; }, 1); } };";
    with(&[("processor.js", source)], Choice::QuickJs, |user| {
        Box::pin(async move {
            for expected in ["a=[false,null]", "a=[true,1]", "a=[true,2]"] {
                user.function("look").await.unwrap();
                assert_eq!(user.changed("a list").split(' ').next(), Some(expected));
            }
            // A repeated `done` does not count for the next call.
            user.function("twice").await.unwrap();
            user.function("slow").await.unwrap();
            assert_eq!(user.changed("a"), "a=\"slow\"");
            user.function("stale").await.unwrap();
            user.vars.set_by_name("map", json("{\"other\":1}"));
            weir_net::timer::sleep(Duration::from_millis(5)).await;
            user.function("look").await.unwrap();
            assert_eq!(user.changed("map"), "map={\"other\":1}");
        })
    });
}

#[test]
fn branches_of_a_virtual_user_have_variables_of_their_own() {
    let source = "exports.go = async (c) => { const n = c.vars.slotted; c['member' + n] = n;
        await new Promise((r) => setTimeout(r, 3)); c.vars.a = [n, c.vars.slotted]; };
        exports.after = (c, e, done) => { c.vars.a = [c.member1, c.member2]; done(); };";
    let folder = Folder::new(&[("processor.js", source)]);
    let path = folder.path("processor.js");
    block_on(async move {
        let mut user = User::load(&path, Choice::QuickJs).unwrap();
        let processor = Rc::new(std::mem::replace(&mut user.processor, Processor::load(&path).unwrap()));
        let done = Rc::new(RefCell::new(Vec::new()));
        for number in [1, 2] {
            let (processor, done, mut vars) = (processor.clone(), done.clone(), user.vars.clone());
            weir_net::worker::spawn(async move {
                vars.set_by_name("slotted", Value::from(f64::from(number)));
                let (recorder, session) = (Recorder::default(), HttpSession::new(Default::default()));
                let context = Context {
                    vars: &mut vars,
                    scenario: &UNDEFINED,
                    uid: "u-1",
                    session: &session,
                    wires: None,
                    recorder: &recorder,
                };
                processor.function("go", context).await.unwrap();
                done.borrow_mut().push(vars.by_name("a").to_json().unwrap());
            });
        }
        while done.borrow().len() < 2 {
            weir_net::timer::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(*done.borrow(), ["[1,1]", "[2,2]"]);
        let context = Context { uid: "u-1", ..user.parts().1 };
        processor.function("after", context).await.unwrap();
        assert_eq!(user.changed("a"), "a=[1,2]");
    })
    .unwrap();
}

#[test]
fn timers_outlive_calls_and_what_they_throw_is_said() {
    let source = "exports.go = (context, ee, done) => {
        let n = 0; const t = setInterval(() => { ee.emit('counter', 'tick', 1); if (++n === 3) clearInterval(t); }, 1);
        setTimeout(() => { throw new Error('in a timer'); }, 2); const never = setTimeout(() => ee.emit('counter', 'never', 1), 2); clearTimeout(never);
        done(); };";
    with_both(source, |user| {
        Box::pin(async move {
            user.function("go").await.unwrap();
            let mut ticks = 0;
            for _ in 0..500 {
                weir_net::timer::sleep(Duration::from_millis(2)).await;
                ticks += user
                    .counters()
                    .iter()
                    .map(|(name, count)| if &**name == "tick" { *count } else { 100 })
                    .sum::<u64>();
                if ticks == 3 && !user.said.borrow().is_empty() {
                    break;
                }
            }
            assert_eq!(ticks, 3);
            assert!(user.said.borrow().iter().any(|line| line.contains("in a timer")), "{:?}", user.said.borrow());
        })
    });
}

#[test]
fn templates_call_functions_that_were_added() {
    let source = "exports.go = (context, ee, done) => {
        context.funcs.$double = (n) => 2 * n;
        context.funcs.$nothing = () => undefined;
        context.funcs.$text = (...all) => all.join('é');
        context.funcs.$throws = () => { throw new Error('thrown'); };
        process.stdout.write('to stdout\\n');
        done();
    };";
    for choice in BOTH {
        with(&[("processor.js", source)], choice, |user| {
            Box::pin(async move {
                let call = |name: &str, arguments: &[Value]| user.processor.template(name, arguments);
                assert_eq!(call("$double", &[Value::from(2.0)]), None);
                user.function("go").await.unwrap();
                let call = |name: &str, arguments: &[Value]| user.processor.template(name, arguments);
                for n in 0..50 {
                    assert_eq!(call("$double", &[Value::from(f64::from(n))]), Some(Value::from(f64::from(2 * n))));
                }
                assert_eq!(call("$text", &["a".into(), "b".into()]), Some("aéb".into()));
                assert_eq!(call("$nothing", &[]), Some(Value::Undefined));
                assert_eq!((call("$throws", &[]), call("$randomNumber", &[])), (None, None));
                assert_eq!(call("$double", &[Value::from(4.0)]), Some(Value::from(8.0)), "after one that threw");
                assert!(user.said.borrow().iter().any(|line| line.contains("to stdout")), "{:?}", user.said.borrow());
            })
        });
    }
}

#[test]
fn scripts_may_be_javascript() {
    for (name, text) in [
        ("s.mjs", "export const config = { target: 'http://x' }; export const scenarios = [{ flow: [{ function: go }], beforeScenario: 'b' }];
            function go() {}"),
        ("s.js", "function go() {} module.exports = { config: { target: 'http://x' }, scenarios: [{ flow: [{ function: go }], beforeScenario: 'b' }] };"),
        ("s.cjs", "const go = () => {}; exports.config = { target: 'http://x' }; exports.scenarios = [{ flow: [{ function: go }], beforeScenario: 'b' }];"),
    ] {
        let folder = Folder::new(&[(name, text)]);
        for choice in BOTH {
            let facts = ProcessorFile::new(&folder.path(name), choice).unwrap();
            let value = match choice {
                Choice::Node => node::script(&node::find().unwrap(), &facts, &ProcessorHost::default()).unwrap(),
                _ => quick::script(&facts, ProcessorHost::default()).map_err(|refused| refused.message).unwrap(),
            };
            let text = "{\"config\":{\"target\":\"http://x\"},\"scenarios\":[{\"flow\":[{\"function\":\"go\"}],\"beforeScenario\":\"b\"}]}";
            assert_eq!(value.to_json().unwrap(), text, "{name} {choice:?}");
        }
    }
}
