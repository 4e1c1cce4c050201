"""minifuse with the functions that a student wrote: operators, loops, derivatives and backpropagation are theirs.

    use_engine          makes a folder the engine of this process                                    use
    StudentEngine       the functions of a folder: which are written, and how often each was called  engine
    StudentBackend      the backend "yours": map, zip, reduce and matmul by the student's loops      backend
    Backpropagation     backward passes by the student's `backpropagate`                             backpropagation
    apply_function      operators of Scalars by the student's classes with `forward` and `backward`  scalar_functions
    StudentCalls        calls with tensors by the student's classes, convolutions and pooling        dispatch_hook
    SUBSTITUTES         the calls that these can compute                                             substitutes
    TensorFunctions     the student's classes, applied to tensors and recorded                       tensor_functions
    StudentValueEngine  the loops of these classes, and of the digit network of task 4.5             value_engine

What is not written yet is lent by the library, and counted.
"""

from .engine import StudentEngine as StudentEngine
from .use import use_engine as use_engine
from .use import use_engine_once as use_engine_once
