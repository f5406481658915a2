// Names that glibc has and other C libraries have not. Weak in every file of the library
// (see CMakeLists.txt), so that it loads there too and can say why it stays off, where the
// loader would end the program with a line for each. Nothing of it is called then:
// foreign_runtime.h is asked first.
#pragma weak __curbrk
#pragma weak __cxa_at_quick_exit
#pragma weak _dl_find_object
#pragma weak _r_debug
#pragma weak dladdr1
#pragma weak gnu_get_libc_version
#pragma weak makecontext
#pragma weak on_exit
