//! Any parts.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use weir_recording::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedConfiguration, RecordedExchange, RecordedField,
    RecordedMessage, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};

pub fn beginning() -> impl Strategy<Value = Beginning> {
    (any::<u64>(), word(), 0..=1_000_000u32, any::<u64>(), any::<bool>()).prop_map(
        |(unix_us, program, share_ppm, key_id, has_bodies)| Beginning {
            unix_us,
            program,
            share_ppm,
            key_id,
            has_bodies,
        },
    )
}

pub fn parts() -> impl Strategy<Value = Vec<RecordingPart>> {
    vec(
        prop_oneof![
            1 => beginning().prop_map(RecordingPart::Beginning),
            1 => (any::<u64>(), word(), vec(word(), 0..4)).prop_map(|(generation, path, locations)| {
                RecordingPart::Configuration(RecordedConfiguration { generation, path, locations })
            }),
            6 => exchange().prop_map(|exchange| RecordingPart::Exchange(Box::new(exchange))),
            1 => (any::<u64>(), any::<u64>(), any::<(bool, bool)>(), body()).prop_map(
                |(at_us, tunnel, (is_of_client, is_binary), content)| {
                    RecordingPart::Message(RecordedMessage { at_us, tunnel, is_of_client, is_binary, content })
                }
            ),
            1 => losses().prop_map(RecordingPart::Lost),
            1 => (any::<u64>(), any::<u64>(), any::<u64>(), losses()).prop_map(|(at_us, exchanges, recorded, lost)| {
                RecordingPart::Ending(Ending { at_us, exchanges, recorded, lost })
            }),
        ],
        0..40,
    )
}

fn exchange() -> impl Strategy<Value = RecordedExchange> {
    let version = prop_oneof![
        Just(RecordedVersion::Http10),
        Just(RecordedVersion::Http11),
        Just(RecordedVersion::Http2),
        Just(RecordedVersion::Http3)
    ];
    let answer =
        (any::<u16>(), fields(), body()).prop_map(|(status, fields, body)| RecordedAnswer { status, fields, body });
    let tries = vec(
        (word(), any::<u16>(), of(any::<u64>())).prop_map(|(peer, status, took_us)| RecordedTry {
            peer,
            status,
            took_us,
        }),
        0..3,
    );
    let numbers = any::<(u64, u64, u64, u64, u64, u32, u64)>();
    let texts = (bytes(), text(), fields(), body());
    (numbers, version, any::<(bool, bool, u16)>(), texts, of(answer), tries, of(word())).prop_map(
        |(numbers, version, (is_tls, is_cut, port), (method, target, fields, body), answer, tries, cache)| {
            let (at_us, client, connection, took_us, generation, location, tunnel) = numbers;
            RecordedExchange {
                at_us,
                client,
                connection,
                version,
                is_tls,
                port,
                method,
                target,
                fields,
                body,
                answer,
                is_cut,
                took_us,
                tries,
                cache,
                generation,
                location,
                tunnel,
            }
        },
    )
}

fn fields() -> impl Strategy<Value = Arc<[RecordedField]>> {
    vec((bytes(), text()).prop_map(field), 0..5).prop_map(Arc::from)
}

fn body() -> impl Strategy<Value = RecordedBody> {
    (any::<u64>(), of(any::<u64>()), of(text())).prop_map(|(length, hash, kept)| RecordedBody { length, hash, kept })
}

fn losses() -> impl Strategy<Value = Losses> {
    any::<(u64, u64, u64, u64)>().prop_map(|(queue, size, writing, large)| Losses { queue, size, writing, large })
}

fn text() -> impl Strategy<Value = RecordedText> {
    (bytes(), vec(any::<u32>(), 0..6)).prop_map(|(bytes, mut places)| {
        places.iter_mut().for_each(|place| *place %= bytes.len() as u32 + 1);
        places.sort_unstable();
        places.dedup();
        let hidden = places.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        RecordedText { bytes, hidden }
    })
}

/// Bytes of few kinds, so that strings and lists occur again.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "(get|accept|text/html|x-long-name-of-a-field)".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..40),
        1 => vec(97..=98u8, 0..7),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof!["(HIT|MISS|/etc/nginx/nginx.conf|127.0.0.1:80)", "\\PC{0,9}"]
}

fn field((name, value): (Vec<u8>, RecordedText)) -> RecordedField {
    RecordedField { name: name.to_ascii_lowercase(), value }
}
