#!/bin/sh
# Verifies the files of a release with a POSIX shell and minisign 0.10 or newer, without Countersign:
#
#     sh verify.sh [DIRECTORY OF THE FILES]        the default is the current directory
#
# It believes what stands in this file, and nothing else. So compare the SHA-256 of this file with the one that
# `countersign export` printed for the project, or compare the keys and thresholds below with those of the project.
#
# The last line begins with VERIFIED, and the exit code is 0, only if
#   - every signature below holds: `minisign -V -H` over SHA256SUMS, with the trusted comment of this release,
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

tool=${MINISIGN:-minisign}
tool_hint='install minisign, or name it as MINISIGN=PROGRAM'
comment='' owner='' public=''

# comment SHA256: of the trusted comment, which names the release.
comment() {
    comment=$1
}

# key NAME BASE64
key() {
    new_key "$1" "$2"
    owner=$1 public=$2
}

# signature NAME: by the key before it.
signature() {
    [ "$1" = "$owner" ] || fail "$1 has no key"
    [ -f "$here/signatures/$1.minisig" ] || fail "signatures/$1.minisig cannot be read"
    said=$("$tool" -V -H -Q -P "$public" -m "$here/SHA256SUMS" -x "$here/signatures/$1.minisig" 2>/dev/null) ||
        fail "signatures/$1.minisig is no signature of $1 on SHA256SUMS"
    found=$(printf '%s' "$said" | sha256) || fail 'no SHA-256 can be computed'
    [ "$found" = "$comment" ] || fail "signatures/$1.minisig is of another release"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}
