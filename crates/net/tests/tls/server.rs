//! Servers other than weir: `openssl s_server`, nginx, and one without TLS.

use super::authority::Authority;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct Openssl {
    child: Child,
    pub address: SocketAddr,
}

impl Openssl {
    /// A server that answers each request with a page about the connection.
    pub fn start(made: &Authority, certificate: &str, chain: &str, more: &[&str]) -> Openssl {
        let mut command = Command::new("openssl");
        command.current_dir(made.folder()).args(["s_server", "-accept", "127.0.0.1:0", "-www", "-key", "leaf.key"]);
        command.args(["-cert", certificate, "-no_resumption_on_reneg"]).args(more);
        if !chain.is_empty() {
            command.args(["-cert_chain", chain]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // "ACCEPT 127.0.0.1:PORT", because the server chose the port.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.starts_with("ACCEPT")).expect("a port");
        let port = line.rsplit(':').next().unwrap().trim().parse().unwrap();
        Openssl { child, address: SocketAddr::from(([127, 0, 0, 1], port)) }
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Nginx {
    child: Child,
    pub address: SocketAddr,
}

impl Nginx {
    /// nginx with `good.pem`; `/who` and `/echo` report facts about the request, other files come from the
    /// authority's folder.
    pub fn start(made: &Authority, more: &str) -> Nginx {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = made.folder().display();
        // Before nginx 1.25.1, HTTP/2 is a parameter of `listen`.
        let (listen, more) = match more.strip_prefix("http2 on;") {
            Some(rest) => ("ssl http2", rest),
            None => ("ssl", more),
        };
        let conf = format!(
            "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
             events {{ worker_connections 64; }}
             http {{
               access_log off; client_max_body_size 100m; client_body_temp_path {folder}/body;
               proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
               scgi_temp_path {folder}/s;
               ssl_certificate {folder}/good.pem; ssl_certificate_key {folder}/leaf.key; ssl_session_tickets on;
               server {{
                 listen 127.0.0.1:{port} {listen}; root {folder}; {more}
                 location = /who {{ return 200 \"$ssl_protocol $ssl_session_reused\\n\"; }}
                 location = /echo {{ proxy_pass https://127.0.0.1:{port}/seen; proxy_set_header X-Len $content_length; }}
                 location = /seen {{ return 200 \"got $http_x_len $ssl_protocol $ssl_session_reused\\n\"; }}
               }}
             }}"
        );
        std::fs::write(made.path("nginx.conf"), conf).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(made.folder()).arg("-e").arg(made.path("error.log"));
        command.arg("-c").arg(made.path("nginx.conf")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut nginx = Nginx { child, address };
        while TcpStream::connect(address).is_err() {
            assert!(nginx.child.try_wait().unwrap().is_none(), "{}", String::from_utf8_lossy(&made.read("error.log")));
            std::thread::sleep(Duration::from_millis(10));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the first bytes of one client, answers and closes.
pub fn plain_server(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The clock and the workers belong to `net`, but this end is not weir.
    std::thread::Builder::new()
        .spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut hello = [0; 4096];
            let _ = client.read(&mut hello);
            let _ = client.write_all(answer);
        })
        .unwrap();
    address
}
