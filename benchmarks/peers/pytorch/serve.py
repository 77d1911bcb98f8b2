#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model on command: `serve.py MODEL THREADS CPU`, one line in, one answer out.

- `run eager`, `run jit`: runs the model, or a training step, once and answers the seconds that it took.
- `output`: answers the first output of the last run, raw f32.

It first writes `ready`. With more than one thread its calling thread is pinned to the CPU, and the others are kept off
it, like the benchmarks' own threads. It answers only when its threads have stopped spinning for work.
"""
import os
import sys
import time
import warnings

import torch

from models import TrainingStep, is_trained, make


def place(cpu):
    every = os.sched_getaffinity(0)
    if len(every - {cpu}) == 0:
        return
    for task in map(int, os.listdir("/proc/self/task")):
        try:
            os.sched_setaffinity(task, {cpu} if task == os.getpid() else every - {cpu})
        except ProcessLookupError:  # the thread has ended
            pass


def wait_until_quiet():
    for _ in range(20):
        before = time.process_time()
        time.sleep(0.012)
        if time.process_time() - before < 0.002:
            return


def main():
    name, threads, cpu = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.filterwarnings("ignore")
    torch.set_num_threads(threads)
    module, inputs, _ = make(name)
    inputs = tuple(value for _, value in inputs)
    if is_trained(name):
        forms = {"eager": TrainingStep(module, module), "jit": TrainingStep(module, torch.jit.trace(module, inputs))}
    else:
        forms = {"eager": module, "jit": torch.jit.optimize_for_inference(torch.jit.trace(module, inputs))}
    for form in forms.values():
        for _ in range(2):
            form(*inputs)
    if threads > 1:
        place(cpu)
    print("ready", flush=True)
    outputs = None
    for line in sys.stdin:
        command, *form = line.split()
        if command == "run":
            start = time.perf_counter()
            outputs = forms[form[0]](*inputs)
            seconds = time.perf_counter() - start
            wait_until_quiet()
            print(seconds, flush=True)
        else:
            sys.stdout.buffer.write(outputs[0].contiguous().numpy().tobytes())
            sys.stdout.buffer.flush()


with torch.no_grad():
    main()
