"""LLVM code of the intrinsics in `mma`. It is imported only if something is compiled, for sm_80 and later."""

from llvmlite import ir
from numba import types

from ..tile_shapes import MMA_DEPTH
from .base_llvm import F32, I32, Emitter, emits, first_type

PACK = ir.InlineAsm(ir.FunctionType(I32, [F32, F32]), "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f")  # $1 becomes the upper half
ROUND = ir.InlineAsm(ir.FunctionType(I32, [F32]), "cvt.rna.tf32.f32 $0, $1;", "=r,f")
SHAPES = {"tf32": "m16n8k8.row.col.f32.tf32.tf32.f32", "bf16": "m16n8k16.row.col.f32.bf16.bf16.f32"}
MULTIPLY = {  # without side effects, so LLVM may move loads of the next operands before it
    kind: ir.InlineAsm(
        ir.FunctionType(ir.LiteralStructType([F32] * 4), [I32] * 6 + [F32] * 4),
        f"mma.sync.aligned.{shape} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$10,$11,$12,$13}};",
        "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f",
    )
    for kind, shape in SHAPES.items()
}


@emits(lambda low, high: types.int32(types.float32, types.float32))
def pack_bf16(code: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
    """Pack two numbers as bf16 into 32 bits, the first one in the lower half."""
    return code.builder.call(PACK, [high, low])


def mma_products(warp: tuple[int, int], steps: int, pitch_a: int, pitch_b: int, kind: str) -> object:
    """Return an intrinsic: acc += A B for a warp's part of a tile. Every second row is reversed to reuse operands."""
    rows, columns = warp
    columns_per_lane = columns // 4
    traversal = [(m, n if m % 2 == 0 else columns // 16 - 1 - n) for m in range(rows // 16) for n in range(columns // 16)]

    def registers(code: Emitter, tile: ir.Value, start: int, pitch: int) -> list[list[ir.Value]]:
        """Load two adjacent elements at each k of the lane in this step, as registers of the instruction."""
        pairs = [code.load(code.at(tile, start + k * pitch), 2) for k in range(0, MMA_DEPTH[kind], 4)]
        lines = list(zip(*pairs, strict=True))
        if kind == "tf32":
            return [[code.builder.call(ROUND, [x]) for x in line] for line in lines]
        return [[code.builder.call(PACK, [line[k + 1], line[k]]) for k in (0, 2)] for line in lines]

    @emits(first_type)
    def multiply(code: Emitter, acc: ir.Value, a: ir.Value, i: ir.Value, b: ir.Value, j: ir.Value) -> list[ir.Value]:
        sums, tile_a, tile_b = code.unpack(acc), code.at(a, i), code.at(b, j)
        for k in range(0, steps, MMA_DEPTH[kind]):
            left = [registers(code, tile_a, k * pitch_a + row, pitch_a) for row in range(0, rows, 16)]
            right = [registers(code, tile_b, k * pitch_b + column, pitch_b) for column in range(0, columns, 16)]
            for m, n in traversal:
                upper, lower = left[m]
                for e, other in enumerate(right[n]):
                    places = [(2 * m + h) * columns_per_lane + 4 * n + e + f for h in range(2) for f in (0, 2)]
                    operands = [upper[0], lower[0], upper[1], lower[1], *other, *[sums[p] for p in places]]
                    results = code.builder.call(MULTIPLY[kind], operands)
                    for q, p in enumerate(places):
                        sums[p] = code.builder.extract_value(results, q)
        return sums

    return multiply
