//! gRPC's own health checking: one call of `grpc.health.v1.Health/Check`, and the verdict on its answer. Pure.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/health-checking.md>

use weir_wire::{grpc, protobuf};

/// The path of the call.
pub const PATH: &str = "/grpc.health.v1.Health/Check";

/// `SERVING` of `HealthCheckResponse.ServingStatus`.
const SERVING: u64 = 1;
/// A health check call for one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `grpc_service`; the whole server without it.
    pub service: String,
    /// `grpc_status`: another status that passes, for servers that do not implement the call.
    pub status: u16,
}

impl Call {
    /// The request's body: a message with the service's name.
    pub fn message(&self) -> Vec<u8> {
        let mut message = Vec::new();
        if !self.service.is_empty() {
            protobuf::bytes(1, self.service.as_bytes(), &mut message);
        }
        // A name from a configuration file never has 4 GiB.
        grpc::frame(&message).unwrap_or_default()
    }

    /// Whether an answer passes, or why not. `grpc_status` comes from its head or its trailers.
    pub fn judge(&self, status: u16, grpc_status: Option<&[u8]>, body: &[u8]) -> Result<(), String> {
        if status != 200 {
            return Err(format!("the HTTP status is {status}, but gRPC answers have 200"));
        }
        let code =
            grpc_status.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<u16>().ok());
        match code {
            None => Err("the answer has no gRPC status".to_owned()),
            Some(0) if grpc::message(body).and_then(|message| protobuf::first_number(1, message)) == Some(SERVING) => {
                Ok(())
            }
            Some(0) => Err("the service is not serving".to_owned()),
            Some(code) if code == self.status => Ok(()),
            Some(code) => Err(format!("the gRPC status {code} does not pass")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_what_grpc_writes() {
        assert_eq!(Call::default().message(), [0, 0, 0, 0, 0]);
        let call = Call { service: "a.B".to_owned(), status: 0 };
        assert_eq!(call.message(), [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
        let long = Call { service: "s".repeat(300), status: 0 }.message();
        assert_eq!(long.get(..8), Some(&[0, 0, 0, 1, 47, 0x0a, 0xac, 2][..]));
    }

    #[test]
    fn only_serving_passes_or_the_status_that_is_named() {
        let serving: &[u8] = &[0, 0, 0, 0, 2, 8, 1];
        let (any, unimplemented) = (Call::default(), Call { status: 12, ..Call::default() });
        assert_eq!(any.judge(200, Some(b"0"), serving), Ok(()));
        assert_eq!(unimplemented.judge(200, Some(b"0"), serving), Ok(()));
        assert_eq!(unimplemented.judge(200, Some(b"12"), b""), Ok(()));
        for (call, status, grpc_status, body) in [
            (&any, 503, Some(&b"0"[..]), serving),
            (&any, 200, None, serving),
            (&any, 200, Some(b"x"), serving),
            (&any, 200, Some(b"12"), b""),
            (&unimplemented, 200, Some(b"14"), b""),
            (&any, 200, Some(b"0"), &[0, 0, 0, 0, 2, 8, 2]),
            (&any, 200, Some(b"0"), &[0, 0, 0, 0, 0]),
            (&any, 200, Some(b"0"), &[1, 0, 0, 0, 2, 8, 1]),
            (&any, 200, Some(b"0"), &[0, 0, 0, 0, 2, 8]),
            (&any, 200, Some(b"0"), &[0, 0, 0, 0, 3, 8, 0x81, 0x80]),
            (&any, 200, Some(b"0"), &[0, 0, 0, 0, 2, 0x10, 1]),
            (&any, 200, Some(b"0"), b""),
        ] {
            assert!(call.judge(status, grpc_status, body).is_err(), "{status} {grpc_status:?} {body:?}");
        }
    }

    mod mutate {
        use super::*;
        /// Only an answer that says that the service serves passes.
        #[test]
        fn answers() {
            let seeds: [&[u8]; 4] =
                [b"\0\0\0\0\x02\x08\x01", b"\0\0\0\0\x02\x08\x02", b"\0\0\0\0\x04\x12\0\x08\x01", b"\0\0\0\0\0"];
            let words: [&[u8]; 5] =
                [b"\x08\x01", b"\xff\xff\xff\xff", b"\x12\x7f", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", b"\x0d"];
            weir_mutate::mutate(&seeds, &words, |body| {
                let call = Call::default();
                let passes = call.judge(200, Some(b"0"), body).is_ok();
                // A number may be longer than it must: 81 00 is 1 too.
                assert!(!passes || body.iter().any(|byte| byte & 0x7f == 1));
                assert!(call.judge(200, Some(body), b"").is_err() && call.judge(404, Some(b"0"), body).is_err());
            });
        }
    }
}
