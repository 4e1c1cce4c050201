"""a barrier stands where not all threads come by"""


def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
            cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]
