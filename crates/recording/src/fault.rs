//! The faults of a recording, each with its place and its remedy.

use std::fmt;
use std::io::ErrorKind;

use weir_words::{Said, said};

/// A fault of a recording. The parts before it are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingFault {
    /// The place in the file: the first byte of the frame, or of the head, that is wrong.
    pub at: u64,
    /// The place in the unpacked block, if the frame itself is whole.
    pub inside: Option<u32>,
    /// Its kind.
    pub kind: FaultKind,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The file does not begin as a recording.
    Foreign,
    /// Another version of the format.
    Version(u32),
    /// The file ends within a frame.
    Cut,
    /// A frame is longer than a frame may be.
    Length,
    /// The bytes of a frame are not those that were written.
    Checksum,
    /// A frame's bytes are not zstd, or unpack to another length than the frame says.
    Unpacking,
    /// A block has an item that the format does not have at this place.
    Form,
    /// A block names a string or a list of fields that it does not have.
    Reference,
    /// A part, or the lists of fields of a block, need more memory than they may.
    Large,
    /// The file has another part before a beginning.
    Beginning,
    /// The file cannot be read.
    Reading(ErrorKind),
}

impl RecordingFault {
    pub(crate) fn at(at: u64, kind: FaultKind) -> RecordingFault {
        RecordingFault { at, inside: None, kind }
    }

    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self.kind {
            FaultKind::Foreign => "foreign",
            FaultKind::Version(_) => "version",
            FaultKind::Cut => "cut",
            FaultKind::Length => "length",
            FaultKind::Checksum => "checksum",
            FaultKind::Unpacking => "unpacking",
            FaultKind::Form => "form",
            FaultKind::Reference => "reference",
            FaultKind::Large => "large",
            FaultKind::Beginning => "beginning",
            FaultKind::Reading(_) => "reading",
        }
    }

    /// The fault with its place and its remedy.
    pub fn said(&self) -> Said {
        let at = self.at;
        match self.kind {
            FaultKind::Foreign => said!(
                "not a recording of weir: at byte {} the bytes \"weir-rec\" are missing; name a file that `record` wrote",
                "weir의 기록이 아닙니다. {}바이트 위치에 \"weir-rec\"이 없습니다. `record`가 쓴 파일을 지정하세요",
                at
            ),
            FaultKind::Version(version) => said!(
                "the recording at byte {} has version {} of the format, and this weir reads version {}; use the weir that wrote it",
                "{}바이트 위치의 기록은 형식 버전이 {}이고, 이 weir는 버전 {}을(를) 읽습니다. 기록을 쓴 weir를 사용하세요",
                at,
                version,
                crate::frame::VERSION
            ),
            FaultKind::Cut => said!(
                "the recording ends within the frame at byte {}: its writer was stopped, or the copy is not whole; the parts before it are usable",
                "기록이 {}바이트 위치의 프레임 중간에서 끝납니다. 쓰던 프로세스가 멈췄거나 복사가 끝나지 않았습니다. 그 앞까지는 사용할 수 있습니다",
                at
            ),
            FaultKind::Length => said!(
                "the frame at byte {} says that it is longer than a frame may be: the file is damaged; copy it again",
                "{}바이트 위치의 프레임에 쓰인 길이가 한도보다 큽니다. 파일이 손상되었으니 다시 복사하세요",
                at
            ),
            FaultKind::Checksum => said!(
                "the frame at byte {} has a wrong checksum: the file is damaged; copy it again",
                "{}바이트 위치의 프레임은 체크섬이 다릅니다. 파일이 손상되었으니 다시 복사하세요",
                at
            ),
            FaultKind::Unpacking => said!(
                "the frame at byte {} does not unpack to the length that it says; another program wrote it wrongly: make a new recording",
                "{}바이트 위치의 프레임은 압축을 풀면 쓰인 길이와 다릅니다. 다른 프로그램이 잘못 쓴 파일이니 다시 기록하세요",
                at
            ),
            FaultKind::Form => said!(
                "the frame at byte {} has an item that the format does not have, at byte {} of its block; another program wrote it wrongly: make a new recording",
                "{}바이트 위치의 프레임에서 블록의 {}바이트 위치에 형식에 없는 항목이 있습니다. 다른 프로그램이 잘못 쓴 파일이니 다시 기록하세요",
                at,
                self.inside.unwrap_or_default()
            ),
            FaultKind::Reference => said!(
                "the frame at byte {} names a string or a list that it does not have, at byte {} of its block; another program wrote it wrongly: make a new recording",
                "{}바이트 위치의 프레임에서 블록의 {}바이트 위치가 없는 문자열이나 목록을 가리킵니다. 다른 프로그램이 잘못 쓴 파일이니 다시 기록하세요",
                at,
                self.inside.unwrap_or_default()
            ),
            FaultKind::Large => said!(
                "the frame at byte {} needs more memory than a block may, at byte {} of its block; another program wrote it: write smaller parts",
                "{}바이트 위치의 프레임은 블록의 {}바이트 위치에서 메모리 한도를 넘습니다. 다른 프로그램이 쓴 파일이니 더 작은 단위로 쓰세요",
                at,
                self.inside.unwrap_or_default()
            ),
            FaultKind::Beginning => said!(
                "the frame at byte {} is before any beginning of a recorder: the first frames are missing; copy the whole file",
                "{}바이트 위치의 프레임 앞에 기록의 시작이 없습니다. 처음 프레임이 빠졌으니 파일 전체를 복사하세요",
                at
            ),
            FaultKind::Reading(kind) => said!(
                "the recording cannot be read behind byte {}: {}; look at the disk and at the rights of the file",
                "{}바이트 뒤의 기록을 읽을 수 없습니다. {}. 디스크와 파일 권한을 확인하세요",
                at,
                kind
            ),
        }
    }
}

impl fmt::Display for RecordingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.said().en())
    }
}

impl std::error::Error for RecordingFault {}
