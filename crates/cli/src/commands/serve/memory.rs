//! Memory of large answers goes back to the system.
//!
//! glibc raises the size above which it asks the system for each piece of memory, up to 32 MiB, and then keeps what was
//! freed in many half-filled heaps. Under 28 clients that register and read indexes of 1 to 2 MiB, a server took 394 MiB
//! where 140 were enough. Only the environment at the start of a program can set that size without `unsafe`, so the
//! server starts itself once more with it: the same process, under the same id. docs/performance.md has newer figures. The
//! log says if it fails.

use std::{env, io, os::unix::process::CommandExt as _, process::Command};

const SETTING: &str = "MALLOC_MMAP_THRESHOLD_";
const BYTES: &str = "131072";

/// Whether this C library is meant, and the operator has not chosen for themselves.
fn is_wanted() -> bool {
    cfg!(all(target_os = "linux", target_env = "gnu"))
        && env::var_os(SETTING).is_none()
        && env::var_os("GLIBC_TUNABLES").is_none()
}

/// Returns if there is nothing to do, or with the reason why it cannot be done. Then the server needs more memory, and
/// works the same.
pub(super) fn settle() -> io::Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| "countersign".into());
    Err(Command::new(env::current_exe()?).arg0(name).args(arguments).env(SETTING, BYTES).exec())
}
