#!/usr/bin/env bash
# Runs the GPU tests and timings, on a machine that has a CUDA device. It
# builds nothing: `cuda_build.sh` does, anywhere, and leaves FOLDER.
#
#   bench/gpu.sh [FOLDER [MODEL]]
#
# MODEL is what `maskwright --model` takes; the default model if none is named.
# One line of JSON a run goes to standard output.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(cd "${1:-target/cuda}" && pwd)
model=("${@:2:1}")
command="$folder/target/release/maskwright"
lib=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia/cu13/lib)
# The driver's own library comes first: ours of that name is empty.
driver=$(dirname "$(ldconfig -p | sed -n 's/.*=> \(.*libcuda\.so\.1\)$/\1/p' |
    head -1)")
if [ ! -e "$driver/libcuda.so.1" ]; then
    echo "no driver: libcuda.so.1 is not among the machine's libraries" >&2
    exit 1
fi
export LD_LIBRARY_PATH="$driver:$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

echo "== tests" >&2
while read -r tests; do
    MASKWRIGHT_TEST_DEVICE=cuda timeout 120 \
        "$tests" model::device --test-threads 1 >&2
done <"$folder/tests"

echo "== timings" >&2
schema=$(mktemp --suffix .json)
trap 'rm -f "$schema"' EXIT
echo '{"type": "object", "properties": {"mood": {"enum": ["good", "bad"]},
  "words": {"type": "array", "items": {"type": "string"}, "minItems": 20}},
  "required": ["mood", "words"], "additionalProperties": false}' >"$schema"
for device in cuda cpu; do
    for options in "--temperature 0" "--temperature 0.8 --top-k 40"; do
        for grammar in "--schema $schema" "--max-tokens 256"; do
            # shellcheck disable=SC2086
            timeout 60 "$command" generate ${model:+--model "${model[@]}"} \
                --device "$device" $options $grammar --json-output \
                --prompt "Say how your day was, in many words."
        done
    done
done
