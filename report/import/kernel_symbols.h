// KernelSymbols: the functions of a kernel and its modules, from System.map or a copy of
// /proc/kallsyms.
//
// Read once, then constant.

#ifndef MEMTRACE_REPORT_IMPORT_KERNEL_SYMBOLS_H_
#define MEMTRACE_REPORT_IMPORT_KERNEL_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::import {

struct KernelSymbol {
  uint64_t address = 0;
  std::string name;
  std::string module;  // empty: of the kernel itself
};

class KernelSymbols {
 public:
  // Adds the symbols of a file. An error if it is none of the two, or has no addresses.
  absl::Status Read(const std::string& path);

  // The function that an address lies in; nullptr: none. An address far behind the last
  // symbol of the code is in none.
  const KernelSymbol* Find(uint64_t address) const;
  // The address of a function; 0: not known, or there are several of the name.
  uint64_t AddressOf(absl::string_view name, absl::string_view module) const;

  bool empty() const { return symbols_.empty(); }

 private:
  std::vector<KernelSymbol> symbols_;  // of code, by address
  std::vector<std::pair<uint64_t, uint64_t>> code_;  // _stext to _etext, where they are told
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> by_name_;
};

}  // namespace memtrace::report::import

#endif  // MEMTRACE_REPORT_IMPORT_KERNEL_SYMBOLS_H_
