"""Arrays with labels of xarray whose data are tensors: select, combine and reduce by the names of dims."""

import numpy as np
import xarray as xr

import minifuse as mf


def results(x):
    """Return the results of some methods."""
    yield x + x.sel(time=20)
    yield x.isel(place=[2, 0]).transpose("place", "time")
    yield x.mean("time")
    yield x.std("place")
    yield x.max("place") - x.min("place")
    yield x.cumsum("time")
    yield x.groupby("half").sum()
    yield x.where(x > 0, 0.0)
    yield x.where(x > 0, np.nan).mean("place")
    yield xr.concat([x, 2 * x], "time")
    yield xr.dot(x, x, dim="place")
    yield x.coarsen(time=2).mean()
    yield np.exp(x).pad(time=1, constant_values=0)


def main():
    """Compare with NumPy's arrays."""
    array = np.random.default_rng(0).normal(size=(4, 3))
    coords = {"time": [10, 20, 30, 40], "half": ("time", [0, 0, 1, 1])}
    arrays = [xr.DataArray(data, dims=("time", "place"), coords=coords) for data in (mf.tensor(array), array)]
    for a, b in zip(*map(results, arrays), strict=True):
        assert isinstance(a.data, mf.Tensor), type(a.data)
        assert a.dims == b.dims
        np.testing.assert_allclose(a.data.numpy(), b.data)


if __name__ == "__main__":
    main()
