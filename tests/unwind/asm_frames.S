// Functions whose CFI is unusual, absent or wrong. Each calls its first argument from
// one frame. See stack_unwinder_test.cc.

        .text

        .macro begin name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .endm
        .macro end name
        .size   \name, . - \name
        .endm

// No CFI at all.
begin FrameWithoutCfi
        subq    $8, %rsp
        call    *%rdi
        addq    $8, %rsp
        ret
end FrameWithoutCfi
        .p2align 4
        .fill   16, 1, 0x90

// The CFA does not move: cyclic.
begin FrameCyclic
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 0
        call    *%rdi
        .cfi_def_cfa_offset 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameCyclic

// The CFA moves inwards.
begin FrameDecreasing
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset -64
        call    *%rdi
        .cfi_def_cfa_offset 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameDecreasing

// The CFA is no multiple of eight.
begin FrameMisaligned
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 20
        call    *%rdi
        .cfi_def_cfa_offset 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameMisaligned

// The return address lies where nothing is mapped.
begin FrameUnreadable
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 0x70000000
        call    *%rdi
        .cfi_def_cfa_offset 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameUnreadable

// rbp is saved where nothing is mapped.
begin FrameUnreadableRbp
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, 0x70000000
        call    *%rdi
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameUnreadableRbp

// The CFA is said to come from a register that no call keeps, and that nothing tells.
begin FrameFromLostRegister
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa %rax, 16
        call    *%rdi
        .cfi_def_cfa %rsp, 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameFromLostRegister

// An operation CFI has no use for.
begin FrameUnsupported
        .cfi_startproc
        subq    $8, %rsp
        .cfi_escape 0x0f, 1, 0x9c
        call    *%rdi
        .cfi_def_cfa %rsp, 16
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameUnsupported

// The first frame, says its CFI.
begin FrameOutermost
        .cfi_startproc
        subq    $8, %rsp
        .cfi_undefined %rip
        call    *%rdi
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameOutermost

// The CFA comes from rbx, as in the lazy binding of ld.so.
begin FrameFromRbx
        .cfi_startproc
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        movq    %rsp, %rbx
        .cfi_def_cfa_register %rbx
        subq    $112, %rsp
        andq    $-64, %rsp
        call    *%rdi
        movq    %rbx, %rsp
        .cfi_def_cfa_register %rsp
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc
end FrameFromRbx

// The return address was taken off the stack into a kept register.
begin FrameReturnInRegister
        .cfi_startproc
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        movq    8(%rsp), %r13
        .cfi_register %rip, %r13
        movq    $0, 8(%rsp)
        // The caller's r13 is on the stack, the return address in r13.
        call    *%rdi
        movq    %r13, 8(%rsp)
        .cfi_restore %rip
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        ret
        .cfi_endproc
end FrameReturnInRegister

// The CFA is a stack word, plus eight: as OpenSSL has it.
begin FrameCfaOnStack
        .cfi_startproc
        movq    %rsp, %rax
        subq    $136, %rsp
        andq    $-64, %rsp
        movq    %rax, 40(%rsp)
        .cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 8
        call    *%rdi
        movq    40(%rsp), %rsp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
end FrameCfaOnStack

// The same by way of r12 and a sum, for the generic interpreter.
begin FrameCfaComputed
        .cfi_startproc
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        movl    $3, %r12d
        subq    $64, %rsp
        // breg7 64-3*8+8, breg12 0, lit8, mul, plus, plus_uconst 8:  rsp + 80
        .cfi_escape 0x0f, 9, 0x77, 0x30, 0x7c, 0, 0x38, 0x1e, 0x22, 0x23, 8
        call    *%rdi
        addq    $64, %rsp
        .cfi_def_cfa %rsp, 16
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        ret
        .cfi_endproc
end FrameCfaComputed

// rbp is saved in memory that the second argument points to, anywhere but on the stack.
begin FrameRbpElsewhere
        .cfi_startproc
        movq    %rbp, (%rsi)
        movq    %rsi, %rbp
        .cfi_escape 0x10, 6, 2, 0x76, 0
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    *%rdi
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        movq    (%rbp), %rbp
        .cfi_restore %rbp
        ret
        .cfi_endproc
end FrameRbpElsewhere

// The CFA and the return address are in memory that the second argument points to, as those of a
// frame on another stack: at 0 and 8. By way of r12, for the generic interpreter.
begin FrameOfOtherStack
        .cfi_startproc
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        movq    %rsi, %r12
        .cfi_remember_state
        // CFA: breg12 0, deref.  rip: at breg12 8.
        .cfi_escape 0x0f, 3, 0x7c, 0, 0x06
        .cfi_escape 0x10, 16, 2, 0x7c, 8
        call    *%rdi
        .cfi_restore_state
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        ret
        .cfi_endproc
end FrameOfOtherStack

// The call is the last instruction: its return address belongs to no function, or to
// the next one.
begin FrameEndsWithCall
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    *%rdi
        .cfi_endproc
end FrameEndsWithCall
begin FrameAfterTheCall
        .cfi_startproc
        .cfi_def_cfa_offset 4096
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
end FrameAfterTheCall

// The same pc is a return address, whose call belongs to one row of CFI, and the begin of
// another row, when the instruction there is interrupted: the callee pops its two arguments.
begin FrameSamePcTwice
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        call    PopsItsArguments
        .cfi_def_cfa_offset 16
        .globl  TheSamePc
TheSamePc:
        ud2
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
end FrameSamePcTwice
begin PopsItsArguments
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    *%rdi
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret     $16
        .cfi_endproc
end PopsItsArguments

// A signal trampoline without CFI, as other C libraries have it: rt_sigaction takes it
// as sa_restorer.
        .p2align 4
        .fill   16, 1, 0x90
begin BareTrampoline
        movq    $15, %rax
        syscall
end BareTrampoline
        .fill   16, 1, 0x90

// A word of zero stands where its CFI says that the return address is.
begin FrameReturnsNowhere
        .cfi_startproc
        pushq   $0
        .cfi_def_cfa_offset 8
        call    *%rdi
        addq    $8, %rsp
        ret
        .cfi_endproc
end FrameReturnsNowhere

// What the first function of a fiber would return to, without CFI: in make_fcontext() of Boost.Context,
// and the same where the call goes by the GOT and for processors that look at branches.
        .p2align 4
        .fill   16, 1, 0x90
        .globl  kFiberEnd, kFiberEndByGot, kNoFiberEnd
kFiberEnd:
        xorq    %rdi, %rdi
        call    _exit@PLT
        hlt
        .fill   16, 1, 0x90
kFiberEndByGot:
        endbr64
        xorq    %rdi, %rdi
        call    *_exit@GOTPCREL(%rip)
        hlt
        .fill   16, 1, 0x90
kNoFiberEnd:
        xorq    %rdi, %rdi
        call    _exit@PLT
        nop
        .fill   16, 1, 0x90

// __do_global_dtors_aux() of gcc's crtbeginS.o, without CFI: of today, and two older ones. What it calls
// here calls its argument. The last has all of the bytes, but sets another variable than it looks at.
        .macro calls_destructors name, push_first, push_last, pop_first, pop_last, completed
begin \name
        movq    %rdi, kCallee(%rip)
        movb    $0, kCompleted(%rip)
        cmpb    $0, kCompleted(%rip)
        jne     1f
        \push_first
        cmpq    $0, kCallee(%rip)
        \push_last
        movq    %rsp, %rbp
        je      0f
        movq    kCallee(%rip), %rdi
        call    CallsItsArgument
0:      call    DoesNothing
        \pop_first
        movb    $1, \completed(%rip)
        \pop_last
1:      ret
end \name
        .fill   16, 1, 0x90
        .endm
        .p2align 4
        .fill   16, 1, 0x90
        calls_destructors FrameOfDestructors, "pushq %rbp", "", "", "popq %rbp", kCompleted
        calls_destructors FrameOfOlderDestructors, "", "pushq %rbp", "", "popq %rbp", kCompleted
        calls_destructors FrameOfOldestDestructors, "", "pushq %rbp", "popq %rbp", ".byte 0xf3", kCompleted
        calls_destructors FrameLikeDestructors, "pushq %rbp", "", "", "popq %rbp", kOther

begin CallsItsArgument
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    *%rdi
        addq    $8, %rsp
        ret
        .cfi_endproc
end CallsItsArgument
begin DoesNothing
        .cfi_startproc
        ret
        .cfi_endproc
end DoesNothing

        .local  kCallee, kCompleted, kOther
        .comm   kCallee, 8, 8
        .comm   kCompleted, 1, 1
        .comm   kOther, 1, 1

        .section .note.GNU-stack,"",@progbits
