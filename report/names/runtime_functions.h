// Functions of the C library's that keep what they allocate until the program ends: programs call
// them, and Valgrind frees their memory (__libc_freeres) before it looks for leaks. glibc 2.36, and
// what is different in 2.31 and 2.43.

#ifndef MEMTRACE_REPORT_NAMES_RUNTIME_FUNCTIONS_H_
#define MEMTRACE_REPORT_NAMES_RUNTIME_FUNCTIONS_H_

#include "absl/strings/string_view.h"

namespace memtrace::report {

struct RuntimeFunction {
  absl::string_view name;
  absl::string_view keeps;
};

inline constexpr RuntimeFunction kRuntimeFunctions[] = {
    {"getpwnam", "name service"},        {"getpwuid", "name service"},
    {"getpwent", "name service"},        {"fgetpwent", "name service"},
    {"getgrnam", "name service"},        {"getgrgid", "name service"},
    {"getgrent", "name service"},        {"fgetgrent", "name service"},
    {"getspnam", "name service"},        {"getspent", "name service"},
    {"fgetspent", "name service"},       {"sgetspent", "name service"},
    {"gethostbyname", "name service"},   {"gethostbyname2", "name service"},
    {"gethostbyaddr", "name service"},   {"gethostent", "name service"},
    {"getnetbyname", "name service"},    {"getnetbyaddr", "name service"},
    {"getnetent", "name service"},       {"getservbyname", "name service"},
    {"getservbyport", "name service"},   {"getservent", "name service"},
    {"getprotobyname", "name service"},  {"getprotobynumber", "name service"},
    {"getprotoent", "name service"},     {"getaliasbyname", "name service"},
    {"getaliasent", "name service"},     {"getrpcbyname", "name service"},
    {"getrpcbynumber", "name service"},  {"getrpcent", "name service"},
    {"get_locked_global", "resolver"},   {"__resolv_conf_attach", "resolver"},
    {"getutent", "who is logged in"},    {"getutid", "who is logged in"},
    {"getutline", "who is logged in"},   {"ttyname", "names of terminals"},
    {"register_printf_specifier", "conversions of printf"},
    {"register_printf_modifier", "conversions of printf"},
    {"register_printf_type", "conversions of printf"},
    {"register_printf_function", "conversions of printf"},
    {"__register_printf_specifier", "conversions of printf"},
    {"__register_printf_modifier", "conversions of printf"},
    {"__register_printf_type", "conversions of printf"},
    {"__wcsmbs_load_conv", "character sets"},
    // In trees of tsearch(), which keeps the color of a node in its pointer to the left: the blocks
    // there are found by pointers into them alone.
    {"__gconv_find_shlib", "character sets"},
    {"__nss_lookup_function", "name service"},
    {"__dcigettext", "message catalogs"},
    {"_dlerror_run", "messages of dlerror"}, {"dlerror", "messages of dlerror"},
    {"re_comp", "the pattern of re_comp"}, {"re_exec", "the pattern of re_comp"},
    {"hcreate", "the table of hcreate"},  {"hcreate_r", "the table of hcreate"},
    {"addseverity", "severities of fmtmsg"},
    {"__aio_enqueue_request", "asynchronous input and output"},
    {"__gai_enqueue_request", "asynchronous look-ups of names"},
    {"pthread_setattr_default_np", "attributes of threads"},
};

// Those that keep what they allocate themselves, and not what they call does: the stream of a
// setfsent() is its caller's, to close by endfsent().
inline constexpr RuntimeFunction kRuntimeBuffers[] = {
    {"fcvt", "digits of fcvt"},          {"qfcvt", "digits of fcvt"},
    {"fstab_init", "lines of fstab"},    {"setfsent", "lines of fstab"},
    {"getfsent", "lines of fstab"},      {"getfsspec", "lines of fstab"},
    {"getfsfile", "lines of fstab"},
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_RUNTIME_FUNCTIONS_H_
