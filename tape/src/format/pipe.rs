//! Finds frames in a stream of bytes. It keeps at most one frame and one read in memory.

use crate::format::frame::{Frame, Header, MAGIC};

/// Bytes that were read but not yet taken.
#[derive(Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    at: usize,
    skipped: u64,
}

impl FrameBuffer {
    /// Adds bytes that were read.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Number of bytes that were not taken.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Moves to the next complete frame; returns false if there is none. Bytes that are not a frame
    /// are skipped and counted.
    pub fn find(&mut self) -> bool {
        loop {
            let rest = &self.bytes[self.at..];
            match Frame::parse(rest) {
                Ok(Some(_)) => return true,
                Ok(None) if Header::parse(rest).is_ok() => return false,
                _ => (),
            }
            let next = rest.iter().skip(1).position(|&b| b == MAGIC[0]);
            let skip = next.map_or(rest.len(), |n| n + 1);
            if skip == 0 {
                return false;
            }
            self.at += skip;
            self.skipped += skip as u64;
        }
    }

    /// The frame that [`FrameBuffer::find`] found; `None` without one.
    pub fn frame(&self) -> Option<Frame<'_>> {
        Frame::parse(&self.bytes[self.at..]).ok().flatten()
    }

    /// Moves behind this frame.
    pub fn advance(&mut self) {
        self.at += self.frame().map_or(0, |f| f.bytes.len());
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
            // Large frames are rare, so their memory is freed.
            self.bytes.shrink_to(1 << 20);
        }
    }

    /// Number of bytes skipped since the last call.
    pub fn skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Load, Sampler};

    #[test]
    fn frames_come_out_whole_however_they_come_in() {
        let mut sampler = Sampler::new(1, Load::default());
        let frames: Vec<Vec<u8>> = (0..20).map(|_| sampler.frame().0).collect();
        let stream = [&frames.concat()[..], b"rubbish \xF1", &frames[0], b"end"].concat();
        for step in [1, 7, 64, 5_000] {
            let mut buffer = FrameBuffer::default();
            let mut out = Vec::new();
            for piece in stream.chunks(step) {
                buffer.extend(piece);
                while buffer.find() {
                    out.push(buffer.frame().unwrap().bytes.to_vec());
                    buffer.advance();
                }
            }
            assert_eq!(out.len(), 21, "step {step}");
            assert_eq!(out[..20], frames);
            assert_eq!(out[20], frames[0]);
            assert_eq!(buffer.skipped() as usize + buffer.left(), 12);
        }
    }
}
