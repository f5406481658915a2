#include "report/suppress/runtime_suppressions.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "report/names/runtime_functions.h"

namespace memtrace::report::suppress {
namespace {

// The first: the allocator's caller is the loader itself. Of thread-local storage a thread holds
// a pointer into the middle of its vector, so that memcheck finds it possibly lost. What the
// constructors of GLib and GObject make is called by the loader; a stripped library has no other
// name for it. Slices of older ones are aligned.
constexpr char kText[] = R"(
{
   runtime: blocks of the dynamic loader (thread-local storage, loaded objects)
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   obj:*/ld-linux*.so*
}
{
   runtime: thread-local storage of a thread
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   ...
   fun:_dl_allocate_tls
}
{
   runtime: dynamic thread-local storage
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc*
   ...
   fun:__tls_get_addr
}
{
   runtime: types of GObject, which are never taken back
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc*
   ...
   fun:g_type_register_*
}
{
   runtime: what GObject makes when it is loaded
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*al*
   ...
   obj:*/libgobject-2.0.so*
   obj:*/ld-linux*.so*
}
{
   runtime: what GLib makes when it is loaded
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*al*
   ...
   obj:*/libglib-2.0.so*
   obj:*/ld-linux*.so*
}
{
   runtime: emergency pool for exceptions of libstdc++
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:malloc
   obj:*/libstdc++.so*
   ...
   obj:*/ld-linux*.so*
}
{
   runtime: buffers of stdio
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:malloc
   fun:_IO_file_doallocate
}
{
   runtime: functions to call at exit
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:calloc
   fun:__new_exitfn
}
{
   runtime: name service
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:__nss_*
}
{
   runtime: character sets
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:__gconv_*
}
{
   runtime: time zones
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:tzset_internal
}
{
   runtime: locales
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:setlocale
}
{
   runtime: environment
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   ...
   fun:setenv
}
{
   runtime: environment
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   ...
   fun:putenv
}
{
   runtime: environment
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   ...
   fun:__add_to_environ
}
{
   runtime: resolver
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:__res_*
}
{
   runtime: resolver
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:__resolv_*
}
{
   runtime: resolver
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:__check_pf
}
{
   runtime: mounted file systems
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:malloc
   ...
   fun:getmntent
}
{
   runtime: message catalogs
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:textdomain
}
{
   runtime: message catalogs
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:bindtextdomain
}
{
   runtime: GLib's main context
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:g_main_context_new
}
{
   runtime: GLib's threads
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:*alloc
   ...
   fun:g_thread_self
}
)";

}  // namespace

absl::string_view RuntimeSuppressions() {
  static const std::string& text = *new std::string([] {
    std::string all = kText;
    for (const RuntimeFunction& function : kRuntimeFunctions) {
      absl::StrAppend(
          &all, "{\n   runtime: ", function.keeps,
          "\n   Memcheck:Leak\n   match-leak-kinds: possible,reachable\n   fun:*alloc*\n   ...\n"
          "   fun:",
          function.name, "\n}\n");
    }
    for (const RuntimeFunction& function : kRuntimeBuffers) {
      absl::StrAppend(&all, "{\n   runtime: ", function.keeps,
                      "\n   Memcheck:Leak\n   match-leak-kinds: reachable\n   fun:malloc\n   fun:",
                      function.name, "\n}\n");
    }
    return all;
  }());
  return text;
}

}  // namespace memtrace::report::suppress
