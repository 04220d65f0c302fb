//! Measures the writer of a worker: `cargo run --release -p weir-recording --example push [PART OF A NAME]`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::disallowed_methods)]

use std::time::Instant;

use weir_recording::block::BLOCK_BYTES;
use weir_recording::frame::Sealer;
use weir_recording::model::RecordedVersion;
use weir_recording::{BlockRefusal, BlockWriter, LiveAnswer, LiveBody, LiveExchange, LiveTry, Secrets};

const EXCHANGES: u64 = 2_000_000;

fn main() {
    hashes();
    for (what, clients, is_new_date, is_new_id) in [
        ("one client, all repeats", 1, false, false),
        ("1,000 clients with cookies", 1_000, false, false),
        ("and a new Date each 20 ms", 1_000, true, false),
        ("and a new session and a new id in each answer", 1_000, true, true),
    ] {
        if std::env::args().nth(1).is_some_and(|part| !what.contains(&part)) {
            continue;
        }
        let mut writer = BlockWriter::new(Secrets::new([7; 16]));
        let cookies: Vec<String> = (0..clients).map(|number| format!("sid={number:032x}; theme=dark")).collect();
        let agents =
            ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"];
        let mut buffer = Vec::with_capacity(2 * BLOCK_BYTES);
        let (mut sealer, mut frame) = (Sealer::new().unwrap(), Vec::new());
        let (mut blocks, mut bytes, mut sealed) = (0, 0, 0);
        let began = Instant::now();
        let mut sealing = std::time::Duration::ZERO;
        for number in 0..EXCHANGES {
            let client = number.wrapping_mul(7_919) % clients;
            let cookie = &cookies[client as usize];
            let random = if is_new_id { random(number) } else { 1 };
            let id = format!("{random:032x}");
            let session = format!("session={:032x}; Path=/; HttpOnly", !random);
            let date = if is_new_date {
                format!("Mon, 30 Nov 2026 08:{:02}:{:02} GMT", number / 24_000 % 60, number / 400 % 60)
            } else {
                "Mon, 30 Nov 2026 08:00:00 GMT".to_owned()
            };
            let fields: [(&[u8], &[u8]); 7] = [
                (b"Host", b"www.shop.example"),
                (b"User-Agent", agents[0].as_bytes()),
                (b"Accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
                (b"Accept-Language", b"ko-KR,ko;q=0.9,en-US;q=0.8"),
                (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
                (b"Referer", b"https://www.shop.example/list?page=2"),
                (b"Cookie", cookie.as_bytes()),
            ];
            let answer: [(&[u8], &[u8]); 8] = [
                (b"Server", b"weir"),
                (b"Date", date.as_bytes()),
                (b"Content-Type", b"text/html; charset=utf-8"),
                (b"Content-Length", b"1024"),
                (b"Connection", b"keep-alive"),
                (b"Cache-Control", b"no-cache"),
                (b"Set-Cookie", session.as_bytes()),
                (b"X-Request-Id", id.as_bytes()),
            ];
            let exchange = LiveExchange {
                at_us: number * 50,
                client: client.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                connection: client,
                version: RecordedVersion::Http11,
                is_tls: true,
                port: 443,
                method: b"GET",
                target: [&b"/list?page=1"[..], b"/item/17", b"/cart", b"/"][(number % 4) as usize],
                fields: &fields,
                body: LiveBody::default(),
                answer: Some(LiveAnswer {
                    status: 200,
                    fields: &answer,
                    body: LiveBody { length: 1024, hash: Some(number), ..LiveBody::default() },
                }),
                is_cut: false,
                took_us: 812,
                tries: &[LiveTry { peer: "127.0.0.1:8080", status: 200, took_us: Some(700) }],
                cache: None,
                generation: 1,
                location: 3,
                tunnel: 0,
            };
            if writer.push(&exchange) == Err(BlockRefusal::Full) {
                let block = writer.take(std::mem::take(&mut buffer));
                let begin = Instant::now();
                blocks += 1;
                bytes += block.len();
                frame.clear();
                sealer.seal(&block, &mut frame).unwrap();
                sealed += frame.len();
                sealing += begin.elapsed();
                buffer = block;
                writer.push(&exchange).unwrap();
            }
        }
        let all = began.elapsed() - sealing;
        println!(
            "{what}: {:.0} ns an exchange, {} blocks, {:.1} bytes an exchange, {:.1} compressed, {:.0} ns to seal",
            all.as_nanos() as f64 / EXCHANGES as f64,
            blocks,
            bytes as f64 / EXCHANGES as f64,
            sealed as f64 / EXCHANGES as f64,
            sealing.as_nanos() as f64 / EXCHANGES as f64,
        );
    }
}

/// 128 bits that look random.
fn random(number: u64) -> u128 {
    let product = (u128::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (product ^ product >> 67).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
}

/// The hash of bodies.
fn hashes() {
    let body = vec![7; 100 << 10];
    let secrets = Secrets::new([7; 16]);
    let began = Instant::now();
    let mut all = 0;
    for _ in 0..10_000 {
        let mut hash = secrets.body_hash();
        hash.update(&body);
        all ^= hash.finish();
    }
    println!("the hash of a body of 100 KiB: {} ns ({all})", began.elapsed().as_nanos() / 10_000);
}
