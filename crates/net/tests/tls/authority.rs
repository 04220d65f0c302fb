//! Certificates made by `openssl`, in a folder of their own that is removed with them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Authority {
    folder: PathBuf,
}

/// Only `openssl ca` can set any dates in a certificate.
const DATED: &str = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n\
                     policy=p\ncopy_extensions=copy\nunique_subject=no\n[p]\ncommonName=supplied\n";

impl Authority {
    /// An authority `ca`, an authority `between` below it, and servers' certificates for `leaf.key`.
    pub fn new() -> Authority {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own = format!("weir-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let made = Authority { folder: std::env::temp_dir().join(own) };
        std::fs::create_dir_all(&made.folder).unwrap();
        for key in ["ca.key", "between.key", "leaf.key"] {
            made.openssl(&format!("ecparam -name prime256v1 -genkey -noout -out {key}"));
        }
        made.openssl("req -x509 -new -key ca.key -subj /CN=ca -days 100 -out ca.pem");
        made.sign("between", "between", "ca", "basicConstraints=critical,CA:TRUE");
        made.sign("good", "localhost", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1");
        made.sign("wrong", "localhost", "ca", "subjectAltName=DNS:other.test");
        made.sign("common", "localhost", "ca", "basicConstraints=CA:FALSE");
        made.sign("below", "localhost", "between", "subjectAltName=DNS:localhost");
        made.sign("version1", "localhost", "ca", "");
        let own = "req -x509 -new -key leaf.key -subj /CN=localhost -days 30";
        made.openssl(&format!("{own} -addext subjectAltName=DNS:localhost -out self.pem"));
        made.openssl(&format!("{own} -out selfcommon.pem"));
        made.dated();
        made
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn sign(&self, name: &str, subject: &str, issuer: &str, extensions: &str) {
        let key = if name == "between" { "between" } else { "leaf" };
        self.openssl(&format!("req -new -key {key}.key -subj /CN={subject} -out {name}.csr"));
        std::fs::write(self.path("ext"), extensions).unwrap();
        let issuer = format!("-CA {issuer}.pem -CAkey {issuer}.key -CAcreateserial");
        self.openssl(&format!("x509 -req -in {name}.csr {issuer} -days 30 -extfile ext -out {name}.pem"));
    }

    fn dated(&self) {
        std::fs::write(self.path("dated.cnf"), DATED).unwrap();
        std::fs::write(self.path("index.txt"), "").unwrap();
        std::fs::write(self.path("serial"), "01").unwrap();
        let alternative = "-addext subjectAltName=DNS:localhost";
        self.openssl(&format!("req -new -key leaf.key -subj /CN=localhost {alternative} -out dated.csr"));
        let (by_ca, by_self) = ("-cert ca.pem -keyfile ca.key", "-selfsign -keyfile leaf.key");
        let (past, future) = ("20200101000000Z -enddate 20210101000000Z", "20400101000000Z -enddate 20410101000000Z");
        for (name, by, from) in [("expired", by_ca, past), ("selfexpired", by_self, past), ("future", by_ca, future)] {
            let plain = format!("ca -batch -notext -config dated.cnf {by} -in dated.csr -startdate {from}");
            self.openssl(&format!("{plain} -out {name}.pem"));
        }
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(&self.folder).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
