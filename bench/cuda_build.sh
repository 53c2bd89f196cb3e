#!/usr/bin/env bash
# Builds everything with CUDA on a machine without a GPU, and so checks what
# no other build sees: candle's kernels, ours, and the code that calls them.
# `gpu.sh` then runs what this leaves on a machine that has one.
#
#   bench/cuda_build.sh [FOLDER]
#
# The compilers come from PyPI, into FOLDER (target/cuda by default, 2 GB),
# and nothing else of the machine is touched. The driver's library is only
# found where the driver is, so the programs are linked against an empty one
# of the same name. CUDA_COMPUTE_CAP is the oldest card that they are for
# (80: A100 and later).
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mkdir -p "${1:-target/cuda}" && cd "${1:-target/cuda}" && pwd)
export CUDA_COMPUTE_CAP="${CUDA_COMPUTE_CAP:-80}"

echo "== the compilers"
if [ ! -x "$folder/venv/bin/pip" ]; then
    python3 -m venv "$folder/venv"
fi
"$folder/venv/bin/pip" install --quiet \
    nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 \
    nvidia-cuda-nvrtc==13.0.88 nvidia-cublas==13.0.2.14 nvidia-curand==10.4.0.35
CUDA_HOME=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia/cu13)
export CUDA_HOME CUDA_PATH="$CUDA_HOME" CUDA_TOOLKIT_ROOT_DIR="$CUDA_HOME"
export PATH="$CUDA_HOME/bin:$PATH"

echo "== what to link against"
# Wheels have no names without a version.
for library in cudart cublas cublasLt curand nvrtc; do
    ln -sf "$(basename "$CUDA_HOME"/lib/lib$library.so.*)" \
        "$CUDA_HOME/lib/lib$library.so"
done
echo | cc -shared -x c - -o "$CUDA_HOME/lib/libcuda.so" \
    -Wl,-soname,libcuda.so.1
ln -sfn lib "$CUDA_HOME/lib64"
export LIBRARY_PATH="$CUDA_HOME/lib"
# What the empty library lacks, the real one has.
export RUSTFLAGS="-L native=$CUDA_HOME/lib \
    -C link-arg=-Wl,--unresolved-symbols=ignore-all"

# One profile, so that the kernels are compiled once.
echo "== lints, tests and the command"
export CARGO_TARGET_DIR="$folder/target"
cargo clippy --release --locked -p maskwright --features cuda --all-targets \
    -- -D warnings
cargo test --release --locked -p maskwright --features cuda --lib --no-run \
    --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' \
    >"$folder/tests"
cargo build --release --locked -p maskwright --features cuda --bin maskwright
nm -D --undefined-only "$CARGO_TARGET_DIR/release/maskwright" |
    grep -c ' cu' | sed 's/$/ functions of CUDA are called/'
echo "done: $folder"
