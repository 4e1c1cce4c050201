"""Cases of minifuse/functions/fft.py."""

CASES = """
fft: mf.fft.fft(x) = @np.stack([np.fft.fft(x).real, np.fft.fft(x).imag], -1)
fft: mf.fft.fft(v, n=6, norm="ortho") = @np.fft.fft(v, 6, norm="ortho").view(float).reshape(6, 2)
ifft: mf.fft.ifft(y.reshape(2, 3, 2)) = @np.fft.ifft(y.reshape(2, 3, 2) @ [1, 1j]).view(float).reshape(2, 3, 2)
rfft: mf.fft.rfft(t, n=3) = @np.fft.rfft(t, 3).view(float).reshape(2, 3, 2, 2)
irfft: mf.fft.irfft(y.reshape(2, 3, 2)) = @np.fft.irfft(y.reshape(2, 3, 2) @ [1, 1j])
irfft: mf.fft.irfft(y.reshape(2, 3, 2), n=5, norm="forward") = @np.fft.irfft(y.reshape(2, 3, 2) @ [1, 1j], 5, norm="forward")
"""
