//! The program on a real pseudo-terminal, by way of `script` of util-linux.

use std::process::{Child, Command, Stdio};
use std::{io::Read as _, io::Write as _, sync::mpsc, sync::mpsc::Receiver, thread, time::Duration};

use super::environment::clear_environment;

const TIMEOUT: Duration = Duration::from_secs(30);

/// All that a person would see there is in `seen`.
pub(crate) struct Terminal {
    script: Child,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// Up to here it was waited for already.
    done: usize,
}

impl Terminal {
    /// Runs the program with `args`; `prepare` gives the command its environment. `None`, with a message, where there
    /// is no `script`, or another one than that of util-linux.
    pub(crate) fn start(args: &[&str], prepare: impl FnOnce(&mut Command)) -> Option<Self> {
        let version = Command::new("script").arg("--version").stdin(Stdio::null()).output();
        if !version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("util-linux")) {
            println!("skipped: there is no `script` of util-linux");
            return None;
        }
        let words = [&[env!("CARGO_BIN_EXE_countersign")], args].concat();
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", &line, "/dev/null"]);
        clear_environment(&mut command);
        prepare(&mut command);
        command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().unwrap();
        let mut stdout = script.stdout.take().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                let _ = sender.send(buffer[..length].to_vec());
            }
        });
        Some(Self { script, screen, seen: String::new(), done: 0 })
    }

    /// Waits for text after the one that was waited for last.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, question: &str) {
        while !self.seen[self.done..].contains(question) {
            let text = self.screen.recv_timeout(TIMEOUT);
            let text = text.unwrap_or_else(|_| panic!("{question:?} is not asked: {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&text));
        }
        self.done += self.seen[self.done..].find(question).map_or(0, |at| at + question.len());
    }

    /// Waits for a question, and types the answer.
    #[track_caller]
    pub(crate) fn answer(&mut self, question: &str, answer: &str) {
        self.wait_for(question);
        self.press(answer);
    }

    /// What was to be seen so far.
    pub(crate) fn seen(&self) -> &str {
        &self.seen
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.script.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// The exit code, and all that was to be seen.
    pub(crate) fn end(mut self) -> (i32, String) {
        drop(self.script.stdin.take());
        while let Ok(text) = self.screen.recv_timeout(TIMEOUT) {
            self.seen.push_str(&String::from_utf8_lossy(&text));
        }
        (self.script.wait().unwrap().code().unwrap_or(-1), std::mem::take(&mut self.seen))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
