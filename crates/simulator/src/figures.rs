//! The figures of runs, for the table.

#[derive(Debug, Clone, Copy, Default)]
pub struct RunFigures {
    /// Steps of disks.
    pub steps: u64,
    pub crashes: usize,
    pub commits: usize,
    pub answered: usize,
}

impl RunFigures {
    pub fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.answered += other.answered;
    }
}
