//! Repairs the end of a file after a crash of its writer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use sendoff::envelope::Envelope;

const STEP: u64 = 64 * 1024;

/// Makes the file end with a line break, and returns its new length.
///
/// A partial line of this sink is removed: it was never confirmed, so its message is sent again. Any other text without
/// a line break at its end is kept.
pub(crate) fn repair(file: &File, len: u64) -> io::Result<u64> {
    let start = last_line_start(file, len)?;
    if start == len {
        return Ok(len);
    }
    let head = read_at(file, start, (len - start).min(Envelope::START.len() as u64))?;
    let ours = Envelope::START.as_bytes().starts_with(&head);
    // A file system may have extended the file without writing the data.
    let never_written = head.iter().all(|byte| *byte == 0);
    if ours || never_written {
        file.set_len(start)?;
        return Ok(start);
    }
    let mut file = file;
    file.seek(SeekFrom::End(0))?;
    file.write_all(b"\n")?;
    Ok(len + 1)
}

/// The start of the last line: `len` when the file is empty or ends with a line break.
fn last_line_start(file: &File, len: u64) -> io::Result<u64> {
    let mut end = len;
    while end > 0 {
        let from = end.saturating_sub(STEP);
        let piece = read_at(file, from, end - from)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

fn read_at(mut file: &File, from: u64, count: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(before: &[u8]) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(before).unwrap();
        let len = repair(&file, before.len() as u64).unwrap();
        let after = read_at(&file, 0, u64::MAX).unwrap();
        assert_eq!(after.len() as u64, len);
        after
    }

    #[test]
    fn a_whole_file_stays_as_it_is() {
        for whole in ["", "\n", "{\"id\":\"1\"}\n", "a\nb\n"] {
            assert_eq!(repaired(whole.as_bytes()), whole.as_bytes());
        }
    }

    #[test]
    fn a_piece_of_our_line_goes_at_whatever_byte_it_was_cut() {
        let line = format!("{}1\",\"payload\":\"{}\"}}", Envelope::START, "x".repeat(200_000));
        for cut in (1..20).chain([line.len() - 1, line.len()]) {
            assert_eq!(repaired(&line.as_bytes()[..cut]), b"", "{cut}");
            let after_others = [b"{}\n{}\n", &line.as_bytes()[..cut]].concat();
            assert_eq!(repaired(&after_others), b"{}\n{}\n", "{cut}");
        }
    }

    #[test]
    fn space_that_was_never_written_goes() {
        assert_eq!(repaired(b"{}\n\0\0\0\0\0\0\0\0\0\0"), b"{}\n");
    }

    #[test]
    fn what_others_wrote_is_kept_and_ended() {
        assert_eq!(repaired(b"a\nlast words"), b"a\nlast words\n");
        assert_eq!(repaired(b"{\"id\":7}"), b"{\"id\":7}\n");
    }
}
