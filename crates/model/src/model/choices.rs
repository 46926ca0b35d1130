//! Decisions of a generator, taken from bytes. Each byte decides one thing, so a fuzzer that changes one byte changes
//! one decision. Zeros and missing bytes select the ordinary case.

#[derive(Debug, Clone)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// True about once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn of<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }
}
