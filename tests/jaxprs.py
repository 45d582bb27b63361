"""What a traced program multiplies and adds up, whatever it is nested in."""

import jax


def equations(program):
    """Yields all equations of what `jax.make_jaxpr` returned, inner programs' too."""
    jaxpr = getattr(program, "jaxpr", program)
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr"),
        ):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield from equations(inner)


def dtypes(program, primitive):
    """Lists (of the operands, of the result) for every use of a primitive."""
    return [
        (*(v.aval.dtype.name for v in e.invars), e.outvars[0].aval.dtype.name)
        for e in equations(program)
        if e.primitive.name == primitive
    ]


def shapes(program):
    """Lists the shapes of whatever is computed."""
    return [v.aval.shape for e in equations(program) for v in e.outvars]
