#!/bin/sh
# Measures everything and writes bench/RESULTS.md.
#
#   sh bench/results.sh [options of maskbench, such as --quick or --xgrammar]
#
# The options go to the runs over MaskBench but for those of the whole dev half,
# which have the main columns only. XGrammar is found with the Python
# that $PYTHON names. $BENCH is the program, if it is built already; $OUT is
# where the tables go. $COMMANDS says what to run, by default
# "llama again qwen whole rewhole warm depth batch load".
set -eu

here=$(dirname "$0")
out=${OUT:-$here/RESULTS.md}
commands=${COMMANDS:-llama again qwen whole rewhole warm depth batch load}
if [ -z "${BENCH:-}" ]; then
    cargo build --release --manifest-path "$here/Cargo.toml"
    BENCH=${CARGO_TARGET_DIR:-$here/target}/release/maskwright-bench
fi
qwen=$(sh "$here/fetch-tokenizer.sh" qwen3)
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# What a field of a file of the system says, the first time.
field() {
    sed -n "s/^$1[^:]*: *//p" "$2" 2>/dev/null | head -n 1
}

# section TITLE COMMAND [OPTIONS]: a heading, the command and its tables.
section() {
    title=$1
    shift
    shown=$(echo "$*" | sed "s#$qwen#qwen3.json#")
    echo "$title: $shown" >&2
    {
        printf '\n## %s\n\n' "$title"
        printf '`maskwright-bench %s`, load %s when it began\n\n' \
            "$shown" "$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo '?')"
    } >>"$new"
    "$BENCH" "$@" >>"$new"
}

rev=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
if ! git -C "$here" diff --quiet HEAD -- ':/' ':(exclude,top)bench/RESULTS.md' 2>/dev/null; then
    rev="$rev with changes"
fi
cat >"$new" <<END
# Results

Written by \`sh bench/results.sh $*\` on $(date -u +%Y-%m-%d), at revision
$rev, with $(rustc --version | cut -d' ' -f1,2). The peers' versions are those
in the tables. Machine: $(nproc 2>/dev/null || echo '?') cores,
$(field 'model name' /proc/cpuinfo), $(field MemTotal /proc/meminfo) of memory,
$(uname -sm).

README.md says what each table means and how it is measured; NOTES.md has
earlier measurements and what was tried. In short: times are in µs, of the
thread's processor time unless they say wall, with the clock's own cost
subtracted. Ratios are the peer's figure divided by ours in the same run, above
1 where ours is faster. Caches are empty at each schema. The lines of
*Maskwright* have one compiled grammar for the tests of a schema, those of
*each test cold* a grammar compiled anew for each test; llguidance has a cold
copy for each test in both.
END
for command in $commands; do
    case $command in
    llama) section "MaskBench, Llama-3.1" maskbench "$@" ;;
    again) section "MaskBench, Llama-3.1, once more" maskbench --no-memory "$@" ;;
    qwen) section "MaskBench, Qwen3" maskbench --tokenizer "$qwen" "$@" ;;
    whole)
        section "The whole dev half, Llama-3.1" \
            maskbench --main-only --no-memory
        ;;
    rewhole)
        section "The whole dev half, once more" \
            maskbench --main-only --no-memory
        ;;
    warm) section "Known states" warm ;;
    depth) section "Depth of nesting and length of output" depth ;;
    batch) section "Batches" batch ;;
    load) section "Loading the vocabulary" load ;;
    *)
        echo "nothing to run is named $command" >&2
        exit 2
        ;;
    esac
done
cat "$new" >"$out"
echo "$out" >&2
