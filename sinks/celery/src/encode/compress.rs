//! Compression of bodies, with kombu's names.

use std::io::{self, Write};

use sendoff::Result;

use crate::error::invalid;

/// Compresses `body`. Returns it with the content type for the header `compression`.
pub(super) fn compress(name: &str, body: &[u8]) -> Result<(&'static str, Vec<u8>)> {
    let (content_type, compressed) = match name {
        // kombu's gzip is zlib.
        "gzip" | "zlib" | "application/x-gzip" => ("application/x-gzip", zlib(body)),
        "bzip2" | "bzip" | "application/x-bz2" => ("application/x-bz2", bzip2(body)),
        // In one call: then the frame has the length of the body, which kombu before 5.7 requires.
        "zstd" | "zstandard" | "application/zstd" => ("application/zstd", zstd::bulk::compress(body, 0)),
        other => {
            return Err(invalid(
                format!("the compression {other:?} of the task is not supported"),
                "the relay supports gzip, zlib, bzip2 and zstd",
                "use one of them for this task, or none",
            ));
        }
    };
    match compressed {
        Ok(bytes) => Ok((content_type, bytes)),
        Err(error) => Err(invalid(
            "the task cannot be compressed",
            error.to_string(),
            "emit it without compression",
        )
        .with_source(error)),
    }
}

fn zlib(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}

fn bzip2(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn bodies_come_back_from_every_compression() {
        let body = b"[[1, 2], {}, {}]".repeat(50);
        for name in [
            "gzip",
            "zlib",
            "bzip2",
            "bzip",
            "zstd",
            "zstandard",
            "application/x-gzip",
        ] {
            let (content_type, bytes) = compress(name, &body).unwrap();
            assert!(bytes.len() < body.len(), "{name}");
            let mut read = Vec::new();
            match content_type {
                "application/x-gzip" => flate2::read::ZlibDecoder::new(&*bytes).read_to_end(&mut read).unwrap(),
                "application/x-bz2" => bzip2::read::BzDecoder::new(&*bytes).read_to_end(&mut read).unwrap(),
                _ => zstd::stream::copy_decode(&*bytes, &mut read).map(|()| 0).unwrap(),
            };
            assert_eq!(read, body, "{name}");
        }
    }

    #[test]
    fn a_frame_of_zstd_says_how_long_the_body_is() {
        for length in [0, 1, 300, 100_000] {
            let (_, frame) = compress("zstd", &vec![b'x'; length]).unwrap();
            let told = zstd::zstd_safe::get_frame_content_size(&frame).ok().flatten();
            assert_eq!(told, Some(length as u64));
        }
    }

    #[test]
    fn an_unknown_compression_names_those_that_work() {
        let error = compress("lzma", b"").unwrap_err().to_string();
        assert!(error.contains("\"lzma\"") && error.contains("zlib"), "{error}");
    }
}
