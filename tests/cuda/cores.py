"""Plans that take a certain kernel on tensor cores, where they would choose another one for such sizes."""

from minifuse.backends.cuda.matmul import launches as planning
from minifuse.backends.cuda.matmul.mma import MMA_LARGE, MMA_SMALL
from minifuse.backends.cuda.matmul.tensor_core_heuristics import WgmmaConfig, mma_configs, wgmma_configs

WGMMA = {
    "along k": lambda way: (way.a, way.b) == ("k", "k"),
    "crosswise": lambda way: (way.a, way.b) == ("x", "k"),
    "crosswise, turned": lambda way: (way.a, way.b) == ("k", "x"),
    "one made ready": lambda way: sorted((way.a, way.b)) == ["packed", "x"],
    "both made ready": lambda way: (way.a, way.b) == ("packed", "packed"),
}
MMA = {"large": MMA_LARGE, "small": MMA_SMALL}


def take(monkeypatch, name, parts=1, right=None):
    """Let plans take the kernel of this name: by `wgmma` one of WGMMA, in tiles so wide, by `mma.sync` one of MMA."""

    def fits(way):
        if way.parts != parts:
            return False
        if isinstance(way, WgmmaConfig):
            return WGMMA[name](way) and right in (None, way.right_rows)
        return name in MMA and way.shape is MMA[name]

    def way_of(p, gpu):
        configs = mma_configs if name in MMA else wgmma_configs
        known = [way for product in (p, p.transposed()) for way in configs(product, gpu) if fits(way)]
        assert known, f"{name} does not compute {p}"
        return min(known, key=lambda way: way.cycles)

    monkeypatch.setattr(planning, "choose_rounded_config", way_of)
