// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What code for Windows refers to by itself; the C libraries there have it under different names, or not at all. */

/* Before a function uses more than a page of stack it calls this with the number of bytes in rax: all pages are touched
 * in order, since the one below those in use is where the system notices. No register changes. (__chkstk and
 * ___chkstk_ms until the archive is made.) */
__asm__(".text\n"
        ".globl kiln_stack_probe\n"
        ".def kiln_stack_probe; .scl 2; .type 32; .endef\n"
        "kiln_stack_probe:\n"
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
        "  retq\n");

/* Objects with arithmetic of floats ask for it (_fltused). */
const int kiln_floats_used = 1;
