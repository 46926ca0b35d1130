//! Random numbers from a seed: the same on every run.

/// A linear congruential generator, or SplitMix64.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    draw: fn(&mut u64) -> u64,
}

impl Random {
    /// A linear congruential generator. It gives the 31 upper bits, which are good enough for tests.
    pub fn congruential(seed: u64) -> Self {
        let draw = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *state >> 33
        };
        Self { state: seed, draw }
    }

    /// SplitMix64, which gives 64 bits.
    pub fn split_mix(seed: u64) -> Self {
        let draw = |state: &mut u64| {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self { state: seed, draw }
    }

    pub fn draw(&mut self) -> u64 {
        (self.draw)(&mut self.state)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A place in a list of this length.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is below a length")
    }
}
