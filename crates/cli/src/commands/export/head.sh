# Verifies the files of a release with a POSIX shell and @NEEDS@, without Countersign:
#
#     sh verify.sh [DIRECTORY OF THE FILES]        the default is the current directory
#
# It relies on what this file says, and on nothing else. So compare the SHA-256 of this file with the one that
# `countersign export` printed for the project, or compare the keys and thresholds below with those of the project.
#
# The last line begins with VERIFIED, and the exit code is 0, only if
@CHECKS@
#   - in each group, as many different keys have signed as it needs,
#   - each file of SHA256SUMS that is in the directory is the one that was signed, and at least one is there.
# Otherwise it says why, and the exit code is 1.
set -euf
LC_ALL=C
export LC_ALL

# What was signed, by whom, and how many have to. Names of people are comments only.
release() {
@RELEASE@
}
