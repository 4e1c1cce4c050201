"""The device functions of generated kernels, in addition to those that all kernels may call."""

from ..intrinsics import shared_row_cache, vec4, warp_vote

DEVICE_FUNCTIONS: dict[str, object] = {
    **shared_row_cache.DEVICE_FUNCTIONS,
    **vec4.DEVICE_FUNCTIONS,
    **warp_vote.DEVICE_FUNCTIONS,
}
