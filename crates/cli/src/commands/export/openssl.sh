#!/bin/sh
# Verifies the files of a release with a POSIX shell and OpenSSL 3, without Countersign:
#
#     sh verify.sh [DIRECTORY OF THE FILES]        the default is the current directory
#
# It believes what stands in this file, and nothing else. So compare the SHA-256 of this file with the one that
# `countersign export` printed for the project, or compare the keys and thresholds below with those of the project.
#
# The last line begins with VERIFIED, and the exit code is 0, only if
#   - every signature below holds: Ed25519 over the 64 bytes of the SHA-512 of svc.index.json,
#   - in each group, as many different keys have signed as it needs,
#   - SHA256SUMS is the one of this release, and the signed index has each of its digests,
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

fail() {
    printf 'verify.sh: %s\n' "$1" >&2
    printf 'NOT VERIFIED. Do not use the files.\n' >&2
    exit 1
}

# digest ALGORITHM FILE: prints the digest in hexadecimal.
digest() {
    [ -f "$2" ] || return 1
    digest_line=$("$openssl" dgst "-$1" -r <"$2") || return 1
    printf '%s\n' "${digest_line%% *}"
}

# expect ALGORITHM DIGEST FILE
expect() {
    found=$(digest "$1" "$here/$3") || fail "$3 cannot be read"
    [ "$found" = "$2" ] || fail "$3 was changed"
}

# index SHA512: signers sign this digest, which OpenSSL reads from a file of its own.
index() {
    expect sha512 "$1" svc.index.json
    found=$(od -A n -v -t x1 "$here/svc.index.json.sha512" | tr -d ' \n') || fail 'svc.index.json.sha512 cannot be read'
    [ "$found" = "$1" ] || fail 'svc.index.json.sha512 was changed'
}

# key NAME BASE64: keys/NAME.pem is this key and nothing else.
key() {
    case $keys in *" $2 "*) fail "$1 has the key of another signer" ;; esac
    keys="$keys$2 "
    names="$names$1 "
    pem=$(printf '%s\n' '-----BEGIN PUBLIC KEY-----' "$2" '-----END PUBLIC KEY-----' | "$openssl" dgst -sha256 -r) ||
        fail 'openssl cannot compute a SHA-256'
    expect sha256 "${pem%% *}" "keys/$1.pem"
}

# signature NAME
signature() {
    case $names in *" $1 "*) ;; *) fail "$1 has no key" ;; esac
    [ -f "$here/signatures/$1.sig" ] || fail "signatures/$1.sig cannot be read"
    "$openssl" pkeyutl -verify -pubin -inkey "$here/keys/$1.pem" -rawin -in "$here/svc.index.json.sha512" \
        -sigfile "$here/signatures/$1.sig" >/dev/null 2>&1 || fail "signatures/$1.sig is no signature of $1 on the index"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}

# group THRESHOLD NAME...: a name counts once, however often it stands here.
group() {
    needed=$1 count=0 counted=' '
    shift
    [ "$needed" -ge 1 ] || fail 'a group has no threshold'
    for name in "$@"; do
        case $counted in *" $name "*) continue ;; esac
        counted="$counted$name "
        case $signed in *" $name "*) count=$((count + 1)) ;; esac
    done
    [ "$count" -ge "$needed" ] || fail "a group needs $needed signers and has $count"
    groups=$((groups + 1))
    printf 'Group %s: %s signed, %s needed.\n' "$groups" "$count" "$needed"
}

# Each line is 64 digits, two spaces and a name.
files() {
    while IFS= read -r line; do
        sum=${line%%  *} name=${line#*  }
        [ "${#sum}" -eq 64 ] || fail 'SHA256SUMS has a line of another form'
        grep -qF -e "\"$sum\"" "$here/svc.index.json" || fail "the signed index has no file with the digest of $name"
        if [ ! -e "$dir/$name" ] && [ ! -h "$dir/$name" ]; then
            printf '%s: not there, not checked\n' "$name"
            absent=$((absent + 1))
            continue
        fi
        found=$(digest sha256 "$dir/$name") || fail "$name cannot be read"
        [ "$found" = "$sum" ] || fail "$name is not the file that was signed"
        printf '%s: OK\n' "$name"
        present=$((present + 1))
    done <"$here/SHA256SUMS"
}

[ "$#" -le 1 ] || fail 'usage: sh verify.sh [DIRECTORY OF THE FILES]'
dir=${1-.}
[ -d "$dir" ] || fail "$dir is not a directory"
case $dir in -*) dir=./$dir ;; esac
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
case $here in -*) here=./$here ;; esac

openssl=${OPENSSL:-openssl}
version=$("$openssl" version 2>/dev/null) || fail "$openssl does not run: install OpenSSL 3, or name it as OPENSSL=PROGRAM"
case $version in
'OpenSSL '[3-9].* | 'OpenSSL '[1-9][0-9].*) ;;
*) fail "$openssl is $version: install OpenSSL 3 or newer, or name it as OPENSSL=PROGRAM" ;;
esac

keys=' ' names=' ' signed=' ' groups=0 present=0 absent=0
release
[ "$groups" -ge 1 ] || fail 'there is no group of signers'
files
[ "$present" -ge 1 ] || fail "$dir has none of the $absent files of the release"

printf '\nThis does not check that this script was not changed, how the project came to have these signers, whether the\n'
printf 'release was revoked since, or whether it is the newest. Countersign itself does. Files that SHA256SUMS does not\n'
printf 'list were not looked at.\n\n'
printf 'VERIFIED: enough signers have signed the release, and %s of its %s files are there and unchanged.\n' \
    "$present" "$((present + absent))"
exit 0
}
