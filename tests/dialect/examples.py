# SPDX-License-Identifier: Apache-2.0
#
# Collects the example of every op description from the documentation that mlir-tblgen writes, and prints each as a
# function whose arguments are the values that the example uses and does not define. Fails if an op has no example.
import re
import sys


def operand_types(text):
    """Splits types at the commas outside of brackets."""
    depth, parts = 0, [""]
    for previous, c in zip(" " + text, text):
        depth += (c in "<([") - (c in ">)]" and not (c == ">" and previous == "-"))
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def function(name, example):
    arguments, defined = {}, set()
    for statement in re.split(r"\n(?=\s*(?:%|kiln\.|\}))", example):
        defined.update(re.findall(r"(%\w+)(?=[^=()]*=\s*kiln)", statement))
        carried = re.findall(r"(%\w+) = (%\w+) : (tensor<[^>]*>)", statement)
        for inner, init, kind in carried:
            arguments[init] = kind
            defined.add(inner)
        if carried:
            continue
        body = re.sub(r"^\s*%\w+ =", "", statement)
        uses = re.findall(r"%\w+", body)
        signature = re.search(r":\s*\((.*?)\)\s*->", statement, re.S)
        if signature:
            types = operand_types(signature.group(1))
        else:
            single = re.search(r":\s*(tensor<.*?>)\s*(?:->|$)", statement.strip(), re.S)
            types = operand_types(single.group(1)) if single else []
            types *= len(uses) if len(types) == 1 else 1
        # Values that are not in the signature are the dimensions of a call.
        types = ["index"] * (len(uses) - len(types)) + types
        for use, kind in zip(uses, types):
            if use not in defined:
                arguments[use] = kind
    # Declares called kernels with the types of the call.
    kernels = ""
    for callee in re.findall(r"@(\w+)", example):
        call = re.search(r"\((%.*?)\)\s*:\s*\((.*)\)\s*->\s*(.*)", example, re.S)
        kernels += f"func.func private @{callee}(index, {call.group(2)}) -> {call.group(3).strip()} attributes {{kiln.kernel}}\n"
    parameters = ", ".join(f"{argument}: {kind}" for argument, kind in arguments.items())
    return f"{kernels}func.func @{name}({parameters}) {{\n{example}\n  return\n}}\n"


def main():
    missing = []
    documentation = sys.stdin.read()
    for op in re.split(r"^### ", documentation, flags=re.M)[1:]:
        name = re.match(r"`kiln\.(\w+)`", op)
        if not name:
            continue
        example = re.search(r"```mlir\n(.*?)```", op, re.S)
        if example:
            print(function("example_" + name.group(1), example.group(1).rstrip()))
        elif name.group(1) != "yield":  # part of the example of repeat
            missing.append(name.group(1))
    if missing:
        sys.exit("no example: " + ", ".join(missing))


main()
