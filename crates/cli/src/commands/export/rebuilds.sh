
required=''

# rebuild NAME SHA512: what a builder states is about this index.
rebuild() {
    signed_text "rebuilds/$1.json" "$2"
    subject=$(hex svc.index.json.sha512) || fail 'svc.index.json.sha512 cannot be read'
    grep -qF -e "\"sha512:$subject\"" "$here/rebuilds/$1.json" || fail "rebuilds/$1.json is about another index"
}

# reproduced THRESHOLD DIGEST NAME... [DIGEST NAME...]: how many of these builders state a file of the index, each by the digest
# before its name. A name counts once.
reproduced() {
    needed=$1 count=0 counted=' ' sum=''
    shift
    [ "$needed" -ge 1 ] || fail 'a group of builders has no threshold'
    for word in "$@"; do
        case $word in
        builder-*)
            case $counted in *" $word "*) continue ;; esac
            case $signed in *" $word "*) ;; *) continue ;; esac
            if grep -qF -e "\"$sum\"" "$here/rebuilds/$word.json"; then
                counted="$counted$word "
                count=$((count + 1))
            fi
            ;;
        *)
            sum=$word
            check_line "$sum" 'a file that builders make'
            ;;
        esac
    done
    [ "$count" -lt "$needed" ] || return 0
    [ -z "$required" ] || fail "$count builders got the file with the digest $sum, and the project requires $needed"
    [ -n "$lacks" ] || lacks="$count of $needed builders who got the file with the digest $sum"
}
