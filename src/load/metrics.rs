//! `--prometheus ADDR`: serves the metrics of the run while the load runs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_load::output::expose::CONTENT_TYPE;
use weir_load::texts::agents as texts;
use weir_net::worker;
use weir_words::{Said, say};

/// Longest time to serve one scraper.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request read.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The metrics as text; replaced while the run goes on.
#[derive(Clone, Default)]
pub struct MetricsPage(Arc<Mutex<String>>);

impl MetricsPage {
    /// Replaces the text.
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Listens until the process ends, and serves one scraper at a time; the error is for the user.
pub fn serve(address: SocketAddr) -> Result<MetricsPage, Said> {
    let listener = TcpListener::bind(address)
        .map_err(|error| say!(texts::NOT_LISTENING, address.to_string(), error.to_string()))?;
    let page = MetricsPage::default();
    let served = page.clone();
    let listen = move || {
        for stream in listener.incoming().flatten() {
            // It does not matter if a scraper disconnects early.
            let _ = answer(stream, &served);
        }
    };
    worker::block_aside("metrics", listen)
        .map_err(|error| say!(texts::NOT_LISTENING, address.to_string(), error.to_string()))?;
    Ok(page)
}

fn answer(mut stream: TcpStream, page: &MetricsPage) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            read => request.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    let is_metrics = [b"GET /metrics ".as_slice(), b"GET / "].iter().any(|start| request.starts_with(start));
    let (status, text) = if is_metrics {
        ("200 OK", page.text())
    } else {
        ("404 Not Found", "the metrics are at /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
