// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Symbols that Windows compilers reference implicitly; the C libraries there have them under different names, or not
 * at all. */

/* Stack probe: a function that uses more than a page of stack first calls this with its size: the bytes in rax, or 16
 * bytes for each of x15. It touches all pages in order, since the system grows the stack only at the guard page below
 * those in use. It preserves all registers; on Arm all but x16 and x17. (Named __chkstk and ___chkstk_ms until the
 * archive is created.) */
__asm__(".text\n"
        ".globl kiln_stack_probe\n"
        ".def kiln_stack_probe; .scl 2; .type 32; .endef\n"
        "kiln_stack_probe:\n"
#if defined(__aarch64__)
        "  sub x16, sp, x15, uxtx #4\n" /* the new stack pointer */
        "  mov x17, sp\n"
        "1:\n"
        "  sub x17, x17, #1, lsl #12\n"
        "  cmp x17, x16\n"
        "  b.ls 2f\n"
        "  ldr xzr, [x17]\n"
        "  b 1b\n"
        "2:\n"
        "  ldr xzr, [x16]\n"
        "  ret\n"
#else
        "  pushq %rax\n"
        "  pushq %rcx\n"
        "  leaq 24(%rsp), %rcx\n" /* the caller's stack pointer */
        "1:\n"
        "  cmpq $4096, %rax\n"
        "  jb 2f\n"
        "  subq $4096, %rcx\n"
        "  testb %al, (%rcx)\n"
        "  subq $4096, %rax\n"
        "  jmp 1b\n"
        "2:\n"
        "  subq %rax, %rcx\n"
        "  testb %al, (%rcx)\n"
        "  popq %rcx\n"
        "  popq %rax\n"
        "  retq\n"
#endif
);

/* Referenced by objects with floating-point arithmetic (_fltused). */
const int kiln_floats_used = 1;
