# One writable input section makes all of .eh_frame writable, in a segment apart from .eh_frame_hdr.
    .section .eh_frame, "aw", @progbits
    .section .note.GNU-stack, "", @progbits
