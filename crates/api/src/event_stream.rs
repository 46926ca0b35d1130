//! Server-Sent Events, read from bytes as they come. What one event may weigh is bounded: the server is not believed.

use countersign_core::values::bounds::EVENT_BYTES;

/// What stands between two empty lines, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventBlock {
    pub data: Option<String>,
    /// The id from which to go on, after being cut off.
    pub id: Option<String>,
}

#[derive(Debug, Default)]
pub struct EventStreamReader {
    line: Vec<u8>,
    block: EventBlock,
    /// The bytes of all lines of the block.
    bytes: usize,
    /// A line feed that follows a carriage return ends no line of its own.
    after_return: bool,
    has_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl EventStreamReader {
    /// The blocks that end within these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<EventBlock>, TooLong> {
        let mut blocks = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => blocks.extend(self.end_line()),
                _ => {
                    self.bytes += 1;
                    if self.bytes > EVENT_BYTES {
                        return Err(TooLong);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(blocks)
    }

    /// The block that the line ends, if it is an empty one.
    fn end_line(&mut self) -> Option<EventBlock> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&line);
        if line.is_empty() {
            self.bytes = 0;
            let block = std::mem::take(&mut self.block);
            return (block != EventBlock::default()).then_some(block);
        }
        // A comment is a field without a name.
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.block.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.block.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}
