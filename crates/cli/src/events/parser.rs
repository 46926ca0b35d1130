//! Server-Sent Events, read from bytes as they come. What one event may weigh is bounded: the server is not believed.

/// Several times what the longest path takes in JSON.
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// What stands between two empty lines, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) data: Option<String>,
    /// From which to go on, after being cut off.
    pub(crate) id: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    block: Block,
    /// Of all lines of the block.
    bytes: usize,
    /// A line feed that follows a carriage return ends no line of its own.
    after_return: bool,
    has_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Parser {
    /// The blocks that end within these bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Block>, TooLong> {
        let mut blocks = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => blocks.extend(self.end_line()),
                _ => {
                    self.bytes += 1;
                    if self.bytes > MAX_BLOCK_BYTES {
                        return Err(TooLong);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(blocks)
    }

    /// The block that the line ends, if it is an empty one.
    fn end_line(&mut self) -> Option<Block> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&line);
        if line.is_empty() {
            self.bytes = 0;
            let block = std::mem::take(&mut self.block);
            return (block != Block::default()).then_some(block);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(data: Option<&str>, id: Option<&str>) -> Block {
        Block { data: data.map(str::to_owned), id: id.map(str::to_owned) }
    }

    /// All blocks of a text, however it is cut.
    fn parse(text: &str) -> Vec<Block> {
        let mut parser = Parser::default();
        let whole = parser.push(text.as_bytes()).expect("short");
        for size in 1..text.len().min(7) {
            let mut parser = Parser::default();
            let pieces = text.as_bytes().chunks(size).flat_map(|piece| parser.push(piece).expect("short"));
            assert_eq!(pieces.collect::<Vec<_>>(), whole, "{text:?} in pieces of {size}");
        }
        whole
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ": hello\nretry: 2000\nid: 1\n\nevent: x\ndata: {\"a\": 1}\nid: 2\n\ndata: cut off"
                .replace('\n', end);
            assert_eq!(parse(&text), [block(None, Some("1")), block(Some("{\"a\": 1}"), Some("2"))]);
        }
    }

    #[test]
    fn fields_are_read_as_the_format_says() {
        for (text, expected) in [
            ("data: a\ndata: b\n\n", vec![block(Some("a\nb"), None)]),
            ("data:a\n\n", vec![block(Some("a"), None)]),
            ("data:  a \n\n", vec![block(Some(" a "), None)]),
            ("data\n\n", vec![block(Some(""), None)]),
            ("data: a:b\n\n", vec![block(Some("a:b"), None)]),
            ("\u{feff}data: a\n\ndata: b\n\n", vec![block(Some("a"), None), block(Some("b"), None)]),
            ("id\n\n", vec![block(None, Some(""))]),
            ("id: a\0b\n\n", vec![]),
            (": a comment\n\n\n\n:\n\n", vec![]),
            (" data: a\nDATA: b\nother: c\n\n", vec![]),
            ("data: a\n", vec![]),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_no_honest_event() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(&[b'x'; MAX_BLOCK_BYTES]), Ok(vec![]));
        assert_eq!(parser.push(b"x"), Err(TooLong));
        // Many short lines are as bad as a long one; an empty line begins anew.
        let mut parser = Parser::default();
        for _ in 0..MAX_BLOCK_BYTES / 8 {
            assert_eq!(parser.push(b"data:xyz\n"), Ok(vec![]));
        }
        assert_eq!(parser.push(b"y"), Err(TooLong));
        let mut parser = Parser::default();
        for _ in 0..MAX_BLOCK_BYTES {
            assert_eq!(parser.push(b": alive\n\n"), Ok(vec![]));
        }
    }
}
