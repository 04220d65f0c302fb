//! Clients: a number per second, until the test ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::stage::Edge;

/// Running until dropped.
pub struct Load {
    ends: Arc<AtomicBool>,
    failed: Arc<Mutex<Option<Instant>>>,
}

impl Load {
    /// One request after another, each on a new connection; any answer other than 200 is a failure.
    pub fn one_after_another(edge: &Edge, path: &str, rate: u32) -> Load {
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        Load::start(rate, edge.address, move |address, failed| {
            let mut answer = String::new();
            let asked = TcpStream::connect(address).and_then(|mut stream| {
                stream.write_all(request.as_bytes())?;
                stream.read_to_string(&mut answer)
            });
            if asked.is_err() || !answer.starts_with("HTTP/1.1 200 ") {
                note(failed);
            }
        })
    }

    /// Clients that connect and stay. An answer other than an upgrade, or the end of the connection, is a failure.
    pub fn held(edge: &Edge, request: &'static str, rate: u32) -> Load {
        Load::start(rate, edge.address, move |address, failed| {
            let failed = failed.clone();
            std::thread::spawn(move || {
                let mut answer = [0; 1024];
                let asked = TcpStream::connect(address).and_then(|mut stream| {
                    stream.write_all(request.as_bytes())?;
                    let mut count = stream.read(&mut answer)?;
                    if answer.get(..count).is_some_and(|answer| answer.starts_with(b"HTTP/1.1 101 ")) {
                        count = stream.read(&mut answer)?;
                    }
                    Ok(count)
                });
                // In all cases: ended, broken, or answered.
                let _ = asked;
                note(&failed);
            });
        })
    }

    fn start(
        rate: u32,
        address: SocketAddr,
        client: impl Fn(SocketAddr, &Arc<Mutex<Option<Instant>>>) + Send + 'static,
    ) -> Load {
        let load = Load { ends: Arc::default(), failed: Arc::default() };
        let (ends, failed) = (load.ends.clone(), load.failed.clone());
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                client(address, &failed);
                std::thread::sleep(Duration::from_secs(1) / rate);
            }
        });
        load
    }

    /// Time of the first failure.
    pub fn failed(&self) -> Option<Instant> {
        *self.failed.lock().unwrap()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn note(failed: &Mutex<Option<Instant>>) {
    failed.lock().unwrap().get_or_insert_with(Instant::now);
}
