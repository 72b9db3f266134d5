/* SPDX-License-Identifier: MIT
 * int pl_call_main(int argc, char **argv, char **envp, int (*main)(int, char **, char **))
 *
 * main is called with its stack pointer on a page boundary, so that a main that aligns its frame
 * itself (vector code) has the same frame in every process, and with callee-saved registers at
 * zero, so that what main saves of them is the same everywhere. */
        .text
        .globl  pl_call_main
        .hidden pl_call_main
        .type   pl_call_main, @function
pl_call_main:
        .cfi_startproc
        leaq    8(%rsp), %rax
        movq    pl_chain_floor@GOTPCREL(%rip), %r8
        movq    %rax, (%r8)
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        pushq   %rbx
        .cfi_offset 3, -24
        pushq   %r12
        .cfi_offset 12, -32
        pushq   %r13
        .cfi_offset 13, -40
        pushq   %r14
        .cfi_offset 14, -48
        pushq   %r15
        .cfi_offset 15, -56
        movq    %rcx, %rax
        andq    $-4096, %rsp
        movq    pl_chain_top@GOTPCREL(%rip), %rcx
        movq    %rsp, (%rcx)
        xorl    %ebx, %ebx
        xorl    %ecx, %ecx
        xorl    %r8d, %r8d
        xorl    %r9d, %r9d
        xorl    %r10d, %r10d
        xorl    %r11d, %r11d
        xorl    %r12d, %r12d
        xorl    %r13d, %r13d
        xorl    %r14d, %r14d
        xorl    %r15d, %r15d
        call    *%rax
        leaq    -40(%rbp), %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        .cfi_endproc
        .size   pl_call_main, .-pl_call_main
        .section .note.GNU-stack,"",@progbits
