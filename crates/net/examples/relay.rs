//! A keep-alive TCP relay: `relay LISTEN ORIGIN [WORKERS]`, to profile the runtime.
//!
//! Each client connection leases an origin connection from its worker's LIFO pool while a message is under way (a
//! message is the result of one read). With a request/response protocol of small messages, it then costs as much as a
//! proxy.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use weir_net::{ConnectOptions, Deadline, Lease, ListenOptions, Listener, Stream};
use weir_net::{buffer, listener, worker};

const IDLE: Duration = Duration::from_secs(75);
const BUFFER_BYTES: usize = 16 * 1024;
const POOL_MAX: usize = 1024;

type Pool = Rc<RefCell<Vec<Stream>>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, listen, origin, rest @ ..] = args.as_slice() else {
        return Err("usage: relay LISTEN ORIGIN [WORKERS]".into());
    };
    let (listen, origin): (SocketAddr, SocketAddr) = (listen.parse()?, origin.parse()?);
    let workers = rest.first().map_or(Ok(1), |n| n.parse())?;
    let options = ListenOptions { reuseport: workers > 1, ..ListenOptions::default() };
    let mut remotes = Vec::new();
    for n in 0..workers {
        let listening = listener::bind(&listen.into(), &options)?;
        let serve = move || worker::spawn(accept(listening, origin));
        remotes.push(worker::start(&format!("relay {n}"), None, serve)?);
    }
    remotes.iter().for_each(worker::Remote::join);
    Ok(())
}

async fn accept(listening: listener::Listening, origin: SocketAddr) {
    let pool = Pool::default();
    let Ok(listener) = Listener::new(&listening) else {
        return;
    };
    while let Ok((client, _)) = listener.accept().await {
        let pool = pool.clone();
        worker::spawn(async move {
            let _ = serve(client, origin, pool).await;
        });
    }
}

async fn serve(client: Stream, origin: SocketAddr, pool: Pool) -> io::Result<()> {
    let deadline = Deadline::new();
    loop {
        let request = read(&client, &deadline).await?;
        if request.is_empty() {
            return Ok(());
        }
        let pooled = std::iter::from_fn(|| pool.borrow_mut().pop()).find(|s| !s.peek_closed());
        let upstream = match pooled {
            Some(upstream) => upstream,
            None => Stream::connect_by(&origin.into(), &ConnectOptions::default(), &deadline).await?,
        };
        write(&upstream, &request, &deadline).await?;
        drop(request);
        let response = read(&upstream, &deadline).await?;
        write(&client, &response, &deadline).await?;
        if pool.borrow().len() < POOL_MAX && !upstream.is_hup() {
            pool.borrow_mut().push(upstream);
        }
    }
}

async fn read(from: &Stream, deadline: &Deadline) -> io::Result<Lease> {
    deadline.set(IDLE);
    loop {
        from.readable(deadline).await?;
        let mut bytes = buffer::lease(BUFFER_BYTES);
        match from.try_read_vec(&mut bytes, BUFFER_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done.map(|_| bytes),
        }
    }
}

async fn write(to: &Stream, mut bytes: &[u8], deadline: &Deadline) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable(deadline).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
