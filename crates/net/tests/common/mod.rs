//! Helpers that the tests of this folder share.
#![allow(dead_code, clippy::unwrap_used)]

use std::io;
use std::net::TcpStream;
use weir_net::{Address, Deadline, ListenOptions, Listener, Listening, Stream, listener, worker};

pub fn loopback() -> Address {
    Address::Tcp("127.0.0.1:0".parse().unwrap())
}

pub fn bind() -> Listening {
    listener::bind(&loopback(), &ListenOptions::default()).unwrap()
}

/// A blocking client.
pub fn dial(listening: &Listening) -> TcpStream {
    TcpStream::connect(listening.local_addr().tcp().unwrap()).unwrap()
}

/// On a worker: both ends of a new connection, ours and a blocking client's.
pub async fn pair() -> (Stream, TcpStream) {
    let listening = bind();
    let listener = Listener::new(&listening).unwrap();
    let client = dial(&listening);
    let (stream, peer) = listener.accept().await.unwrap();
    assert_eq!(peer.tcp(), Some(client.local_addr().unwrap()));
    (stream, client)
}

/// Waits until there are bytes and reads them; empty at the end.
pub async fn read(stream: &Stream, deadline: &Deadline) -> io::Result<Vec<u8>> {
    loop {
        stream.readable(deadline).await?;
        let mut bytes = Vec::new();
        match stream.try_read_vec(&mut bytes, 4096) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done.map(|_| bytes),
        }
    }
}

async fn echo(stream: Stream) {
    let deadline = Deadline::new();
    while let Ok(bytes) = read(&stream, &deadline).await {
        if bytes.is_empty() || stream.try_write(&bytes).is_err() {
            return;
        }
    }
}

pub async fn serve_echo(listening: Listening) {
    let listener = Listener::new(&listening).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        worker::spawn(echo(stream));
    }
}
