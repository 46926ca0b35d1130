#!/bin/sh
# Verifies the files of a release with a POSIX shell and OpenSSH 8.1 or newer, without Countersign:
#
#     sh verify.sh [DIRECTORY OF THE FILES]        the default is the current directory
#
# It believes what stands in this file, and nothing else. So compare the SHA-256 of this file with the one that
# `countersign export` printed for the project, or compare the keys and thresholds below with those of the project.
#
# The last line begins with VERIFIED, and the exit code is 0, only if
#   - every signature below holds: `ssh-keygen -Y verify` over SHA256SUMS, namespace `file`,
#   - in each group, as many different keys have signed as it needs,
#   - each file of SHA256SUMS that is in the directory is the one that was signed, and at least one is there.
# Otherwise it says why, and the exit code is 1.
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
set -euf
LC_ALL=C
export LC_ALL

# What was signed, by whom, and how many have to. Names of people are comments only.
release() {
@RELEASE@
}

tool=${SSH_KEYGEN:-ssh-keygen}
tool_hint='install OpenSSH, or name its program as SSH_KEYGEN=PROGRAM'

# key NAME BASE64: allowed_signers has this key under this name.
key() {
    new_key "$1" "$2"
    grep -qxF -e "$1 namespaces=\"file\" ssh-ed25519 $2" "$here/allowed_signers" || fail "allowed_signers has no such $1"
}

# signature NAME
signature() {
    case $names in *" $1 "*) ;; *) fail "$1 has no key" ;; esac
    [ -f "$here/signatures/$1.sig" ] || fail "signatures/$1.sig cannot be read"
    "$tool" -Y verify -f "$here/allowed_signers" -I "$1" -n file -s "$here/signatures/$1.sig" <"$here/SHA256SUMS" \
        >/dev/null 2>&1 || fail "signatures/$1.sig is no signature of $1 on SHA256SUMS"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}
