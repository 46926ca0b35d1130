
# touched NAME [TEXT]: by a FIDO key, which signs 69 bytes of its own: the SHA-256 of `ssh:`, flags of which the last says that
# someone touched it, a counter, and the SHA-256 of what it was given.
touched() {
    # What it was given, as `ssh-keygen -Y sign -n countersign` does it.
    message=$({
        printf 'SSHSIG\000\000\000\013countersign\000\000\000\000\000\000\000\006sha512\000\000\000\100'
        cat "$here/${2-svc.index.json}.sha512"
    } | sha256) || fail 'no SHA-256 can be computed'
    plain "signatures/$1.signed"
    framed=$(hex "signatures/$1.signed") || fail "signatures/$1.signed cannot be read"
    [ "${#framed}" -eq 138 ] || fail "signatures/$1.signed has not 69 bytes"
    case $framed in
    e30610e8a162115960fe1ec223e6529c9f4b6e80200dcb5e5c321c8af1e2b1bf?[13579bdf]????????"$message") ;;
    *) fail "signatures/$1.signed is not about ${2-the index}" ;;
    esac
    signature_on "$1" "signatures/$1.signed" "${2-the index}"
}
