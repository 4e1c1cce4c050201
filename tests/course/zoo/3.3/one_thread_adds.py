"""one thread does the work of its block"""


def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    if t == 0:
        total = 0.0
        for i in range(THREADS):
            total += cells[i]
        out[cuda.blockIdx.x] = total
