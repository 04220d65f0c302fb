//! Real loopback sockets through a real worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use weir_net::{Address, Deadline, ListenOptions, Listener, Stream, listener, worker};

fn loopback() -> Address {
    Address::Tcp("127.0.0.1:0".parse().unwrap())
}

fn bind() -> listener::Listening {
    listener::bind(&loopback(), &ListenOptions::default()).unwrap()
}

fn dial(listening: &listener::Listening) -> TcpStream {
    TcpStream::connect(listening.local_addr().tcp().unwrap()).unwrap()
}

/// Reads until there is something; empty at the end.
async fn read(stream: &Stream, deadline: &Deadline) -> io::Result<Vec<u8>> {
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

async fn serve_echo(listening: listener::Listening) {
    let listener = Listener::new(&listening).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        worker::spawn(echo(stream));
    }
}

#[test]
fn echo_over_loopback() {
    let listening = bind();
    let inside = listening.clone();
    let remote = worker::start("echo", None, || worker::spawn(serve_echo(inside))).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| dial(&listening)).collect();
    for round in 0..50u8 {
        for client in &mut clients {
            client.write_all(&[round; 100]).unwrap();
        }
        for client in &mut clients {
            let mut back = [0; 100];
            client.read_exact(&mut back).unwrap();
            assert_eq!(back, [round; 100]);
        }
    }
    let (tell, told) = mpsc::channel();
    assert!(remote.run(move || tell.send(worker::live_tasks()).unwrap()));
    assert_eq!(told.recv().unwrap(), 21);
    remote.stop();
    remote.join();
    assert!(!remote.run(|| ()), "it has ended");
}
