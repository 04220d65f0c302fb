//! `record`: which exchanges go into a recording, and into which file. `crate::recorder` fills the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_conf::{At, Statement};
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;

use crate::recorder::options::{FILE_BYTES_MIN, KeySource, MediaKind, PPM, RecordOptions};
use crate::recorder::place::RecordPlace;
use crate::recorder::{self, Recorder};

weir_http::settings! {
    /// `record`.
    place: Option<Arc<RecordPlace>> = None,
    /// The place of the block in the file.
    at: Option<At> = None,
}

/// The recorders of a configuration, each file once.
#[derive(Default)]
pub struct Declared {
    /// The recorders.
    pub recorders: Vec<Arc<Recorder>>,
    /// The options that the file gives each of them.
    pub options: Vec<Arc<RecordOptions>>,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "record",
    &[Directive::new(
        "record",
        HSL,
        Arity::AtLeast(1),
        "weir's own: records requests and answers into a file, without the secrets of clients. max=SIZE share=PERCENT \
         client=$VARIABLE bodies=on|off types=KINDS hashes=on|off websocket=on|off start=on|off key=FILE.",
        record,
    )
    .default("off")],
)
.filter(sees_answers, |exchange| {
    if let Some(place) = &crate::values(exchange.location).record.place {
        recorder::answer::watch(exchange, place);
    }
})
.log(|_, location| crate::values(location).record.place.is_some(), log)
.finish(|_, scope| {
    let at = scope.at;
    crate::written_mut(scope).record.at = Some(Some(at));
})
.judge(compose_all_heads)
.check(check);

fn record(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if statement.text(0) == "off" {
        if let Some(word) = statement.args.get(1) {
            return Err(Refusal::whole(format!("invalid parameter \"{}\"", word.text)));
        }
        crate::settings(b).record.place = Some(None);
        return Ok(());
    }
    let name = statement.text(0);
    if name.is_empty() || name.contains('$') {
        return Err(Refusal::whole(format!("invalid file name \"{name}\"")).todo("name one file, without variables"));
    }
    let path = b.path(name);
    let (options, client) = parameters(b, statement, path)?;
    let options = Arc::new(options);
    let declared = &mut crate::declaring(b).record;
    let known = declared.options.iter().position(|known| known.path == options.path);
    let recorder = match known {
        Some(at) => {
            let (first, recorder) = (declared.options.get(at), declared.recorders.get(at));
            if let Some(differing) = first.and_then(|first| first.differing(&options)) {
                return Err(Refusal::whole(format!("record \"{name}\" already defined with another \"{differing}\""))
                    .todo("write the same parameters at all places that name the file"));
            }
            recorder.cloned()
        }
        None => {
            let recorder = Recorder::shared(&options.path);
            declared.recorders.push(recorder.clone());
            declared.options.push(options.clone());
            Some(recorder)
        }
    };
    if let KeySource::File(path) = &options.key {
        b.reach.read(path.clone());
    }
    crate::settings(b).record.place =
        Some(recorder.map(|recorder| Arc::new(RecordPlace { recorder, client, options })));
    Ok(())
}

fn parameters(
    b: &mut Build<'_>,
    statement: &Statement,
    path: String,
) -> Result<(RecordOptions, Option<Template>), Refusal> {
    let (mut options, mut client, mut seen) = (RecordOptions::new(path), None, BTreeSet::new());
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        let invalid = || Refusal::whole(format!("invalid parameter \"{word}\""));
        let (name, text) = word.split_once('=').ok_or_else(invalid)?;
        if !seen.insert(name) {
            return Err(Refusal::whole(format!("duplicate parameter \"{name}\"")));
        }
        let flag = || value::choice_of(text, &[("on", true), ("off", false)]).ok_or_else(invalid);
        match name {
            "max" => {
                let size = value::offset_of(text).ok_or_else(invalid)?;
                if size < FILE_BYTES_MIN {
                    return Err(invalid().todo(format!("the smallest file has {FILE_BYTES_MIN} bytes")));
                }
                options.max_bytes = size;
            }
            "share" => {
                let share = recorder::options::share_of(text).ok_or_else(invalid);
                options.share_ppm = share.map_err(|no| no.todo("write a percentage: share=10%, share=0.1%"))?;
            }
            "client" => {
                if !text.contains('$') {
                    return Err(invalid().todo("write a text with variables: client=$cookie_session"));
                }
                client = Some(b.inherited_template(text)?);
                options.client = Some(text.to_owned());
            }
            "bodies" => options.has_bodies = flag()?,
            "websocket" => options.has_messages = flag()?,
            "start" => options.starts_on = flag()?,
            "hashes" => options.has_hashes = flag()?,
            "types" => options.kinds = MediaKind::list(text).ok_or_else(invalid)?,
            "key" if !text.is_empty() => options.key = KeySource::File(b.path(text)),
            _ => return Err(invalid()),
        }
    }
    if seen.contains("types") && !options.has_bodies {
        return Err(Refusal::whole("\"types\" needs \"bodies=on\""));
    }
    debug_assert!(options.share_ppm <= PPM);
    Ok((options, client))
}

/// The head of an answer is recorded as its fields tell it, so no head is copied from a stored one.
fn compose_all_heads(locations: &mut [Location], _: &VariablesRead<'_>) {
    for location in locations {
        if crate::values(location).record.place.is_some() {
            location.has_ready_heads = false;
        }
    }
}

/// Refuses a recording whose file is also a log.
fn check(b: &mut Build<'_>, _: &Found<'_>) {
    let declared = crate::declared_so_far(b);
    let logs = declared.log.files.iter().chain(&b.declared.error_log.files);
    let mut taken: Vec<String> = logs.map(|file| file.path().to_owned()).collect();
    let options = declared.record.options.clone();
    taken.extend(options.iter().filter_map(|options| options.key.file().map(str::to_owned)));
    for options in options.iter().filter(|options| taken.contains(&options.path)) {
        let what = format!("the file \"{}\" of \"record\" is also a log or a key", options.path);
        b.refuse("record", Refusal::whole(what).todo("name another file"));
    }
}

/// Whether weir sees the bodies of answers here.
fn sees_answers(location: &Location) -> bool {
    let place = &crate::values(location).record.place;
    place.as_ref().is_some_and(|place| place.options.has_bodies || place.options.has_hashes)
}

/// Records the exchange.
fn log(exchange: &mut Exchange<'_>) {
    if let Some(place) = &crate::values(exchange.location).record.place {
        recorder::worker::record(exchange, place);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    fn said(record: &str) -> String {
        of_text(&format!("events {{}} http {{ server {{ listen 1; {record} }} }}")).1.join("\n")
    }

    #[test]
    fn parameters_are_read_and_refused_by_name() {
        assert_eq!(
            said(
                "record /r max=1m share=0.5% client=$cookie_a bodies=on types=json,form websocket=on start=off \
                 hashes=on key=/k;"
            ),
            ""
        );
        for (text, what) in [
            ("record;", "invalid number of arguments in \"record\" directive"),
            ("record off now;", "invalid parameter \"now\""),
            ("record /r max=1k;", "invalid parameter \"max=1k\""),
            ("record /r max=1m max=1m;", "duplicate parameter \"max\""),
            ("record /r share=101%;", "invalid parameter \"share=101%\""),
            ("record /r share=1;", "invalid parameter \"share=1\""),
            ("record /r client=x;", "invalid parameter \"client=x\""),
            ("record /r bodies=yes;", "invalid parameter \"bodies=yes\""),
            ("record /r types=json;", "\"types\" needs \"bodies=on\""),
            ("record /r bodies=on types=pictures;", "invalid parameter \"types=pictures\""),
            ("record /r loud;", "invalid parameter \"loud\""),
            ("record /$host;", "invalid file name \"/$host\""),
            ("record /r; record /q;", "\"record\" directive is duplicate"),
            ("record /r; location / { record /r share=1%; }", "already defined with another \"share\""),
            ("access_log /r; record /r;", "the file \"/r\" of \"record\" is also a log or a key"),
        ] {
            assert!(said(text).contains(what), "{text}: {}", said(text));
        }
    }

    #[test]
    fn places_inherit_and_one_file_is_one_recorder() {
        let (conf, said) = of_text(
            "events {} http { record /a share=10%; server { listen 1; location /b { record /b; } location /off { \
             record off; } location /same { record /a share=10%; } location /c { } } }",
        );
        assert_eq!(said, [""; 0]);
        let conf = conf.unwrap();
        assert_eq!(crate::declared(&conf).record.recorders.len(), 2);
        let path =
            |location: &Location| crate::values(location).record.place.as_ref().map(|place| place.options.path.clone());
        let paths: Vec<(String, Option<String>)> =
            conf.locations.iter().map(|location| (location.name.clone(), path(location))).collect();
        for (name, expected) in [("/b", Some("/b")), ("/off", None), ("/same", Some("/a")), ("/c", Some("/a"))] {
            let found = paths.iter().find(|(known, _)| known == name).unwrap();
            assert_eq!(found.1.as_deref(), expected, "{name}");
        }
    }
}
