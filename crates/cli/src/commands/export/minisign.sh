
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
    plain SHA256SUMS
    plain "signatures/$1.minisig"
    said=$("$tool" -V -H -Q -P "$public" -m "$here/SHA256SUMS" -x "$here/signatures/$1.minisig" 2>/dev/null) ||
        fail "signatures/$1.minisig is no signature of $1 on SHA256SUMS"
    found=$(printf '%s' "$said" | sha256) || fail 'no SHA-256 can be computed'
    [ "$found" = "$comment" ] || fail "signatures/$1.minisig is of another release"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}
