// The strongest logits of a row that a mask allows, by one block of threads.
//
// A logit becomes an unsigned key of the same order. Four passes over the row
// find the k-th greatest key, eight bits each, with a histogram (radix
// select); a fifth writes what is at least as great. Threads meet in shared
// memory only.

#define N_THREADS 1024

__device__ __forceinline__ unsigned key_of(float x) {
    // Minus zero ties with zero.
    unsigned bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ bool is_allowed(
    const unsigned* mask, unsigned n_words, unsigned index
) {
    unsigned word = index >> 5;
    return word < n_words && (mask[word] >> (index & 31) & 1u);
}

// found: how many there are, whether a logit is NaN or positive infinity,
// then `capacity` pairs of a token and the bits of its logit. All zero before.
extern "C" __global__ void strongest(
    const float* __restrict__ row,
    const unsigned* __restrict__ mask,
    unsigned* __restrict__ found,
    unsigned n_logits,
    unsigned n_words,
    unsigned k,
    unsigned capacity
) {
    __shared__ unsigned histogram[256];
    __shared__ unsigned prefix, n_wanted, is_short;
    const float infinity = __int_as_float(0x7f800000);
    if (threadIdx.x == 0) {
        prefix = 0;
        n_wanted = k;
        is_short = 0;
    }
    unsigned known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (unsigned i = threadIdx.x; i < 256; i += N_THREADS) {
            histogram[i] = 0;
        }
        __syncthreads();
        for (unsigned i = threadIdx.x; i < n_logits; i += N_THREADS) {
            float x = row[i];
            if (shift == 24 && !(x < infinity)) {
                found[1] = 1;
            }
            if (x > -infinity && is_allowed(mask, n_words, i)) {
                unsigned key = key_of(x);
                if ((key & known) == prefix) {
                    atomicAdd(&histogram[key >> shift & 255u], 1u);
                }
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned n_above = 0;
            int bin = 255;
            while (bin > 0 && n_above + histogram[bin] < n_wanted) {
                n_above += histogram[bin];
                --bin;
            }
            // Only the first pass can find fewer than were asked for.
            is_short |= shift == 24 && n_above + histogram[bin] < n_wanted;
            n_wanted -= n_above;
            prefix |= static_cast<unsigned>(bin) << shift;
        }
        known |= 255u << shift;
        __syncthreads();
        if (is_short) {
            break;
        }
    }
    unsigned least = is_short ? 0 : prefix;
    for (unsigned i = threadIdx.x; i < n_logits; i += N_THREADS) {
        float x = row[i];
        if (x > -infinity && is_allowed(mask, n_words, i)
            && key_of(x) >= least) {
            unsigned place = atomicAdd(&found[0], 1u);
            if (place < capacity) {
                found[2 + 2 * place] = i;
                found[3 + 2 * place] = __float_as_uint(x);
            }
        }
    }
}
