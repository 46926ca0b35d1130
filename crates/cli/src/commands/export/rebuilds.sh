
# rebuild CHECK NAME SHA512: what a builder got from the source. It is signed, and about this index.
rebuild() {
    text=rebuilds/$2.json
    signed_text "$text" "$3"
    grep -qF -e "\"sha512:$subject\"" "$here/$text" || fail "$text is about another index"
    "$1" "$2" "$text"
    unset text
}

# reproduced THRESHOLD DIGEST NAME...: so many of these builders got the file with this digest.
reproduced() {
    needed=$1 sum=$2 count=0
    shift 2
    for name in "$@"; do
        case $signed in *" $name "*) ;; *) continue ;; esac
        if grep -qF -e "\"$sum\"" "$here/rebuilds/$name.json"; then count=$((count + 1)); fi
    done
    [ "$needed" -ge 1 ] || fail 'a group of builders has no threshold'
    [ "$count" -ge "$needed" ] || fail "$count builders got the file with the digest $sum, and $needed are needed"
}
