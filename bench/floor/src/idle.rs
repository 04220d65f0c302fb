//! Opens many connections, uses each once, then keeps them idle: what they cost the server
//! is read from outside. Opened in small batches so that the peak is not what is measured.

use crate::flags::Flags;
use crate::http;
use crate::wsload;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Connections between whose opening and answer no other is opened.
const BATCH: usize = 32;
const PATIENCE: Duration = Duration::from_secs(5);

/// Says `ready` on stdout when all are idle, and ends when stdin does.
pub fn run(flags: &Flags) -> io::Result<()> {
    let target = flags.address("target")?;
    let path = flags.text("path").unwrap_or("/1k");
    let get = format!("GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n").into_bytes();
    let websocket = flags.text("ws").is_some();
    let upgrade = wsload::upgrade_request(target);
    let total: usize = flags.need("conns")?;
    let mut held = Vec::with_capacity(total);
    while held.len() < total {
        let mut batch = Vec::new();
        for _ in 0..BATCH.min(total - held.len()) {
            let mut conn = TcpStream::connect(target)?;
            conn.set_nodelay(true)?;
            conn.set_read_timeout(Some(PATIENCE))?;
            conn.write_all(if websocket { &upgrade } else { &get })?;
            batch.push(conn);
        }
        for conn in &mut batch {
            if websocket {
                answer(conn, 101)?;
                conn.write_all(&wsload::frame())?;
                conn.read_exact(&mut [0; 34])?;
            } else {
                answer(conn, 200)?;
            }
        }
        held.append(&mut batch);
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn answer(conn: &mut TcpStream, wanted: u16) -> io::Result<()> {
    let (mut got, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        if let Some((status, len)) = http::answer_len(&got)
            && got.len() as u64 >= len
        {
            let told = || io::Error::other(format!("answered {status}"));
            return if status == wanted { Ok(()) } else { Err(told()) };
        }
        match conn.read(&mut buf)? {
            0 => return Err(io::Error::other("closed without an answer")),
            n => got.extend_from_slice(buf.get(..n).unwrap_or_default()),
        }
    }
}
