#include "preload/proc_text.h"

#include <cstddef>

#include "preload/text.h"

namespace memtrace {

bool ParseMapLine(std::string_view line, MapLine* map) {
  const size_t address_bytes = line.size();
  map->begin = TakeNumber(line, 16);
  if (line.size() == address_bytes || !line.starts_with('-')) return false;
  line.remove_prefix(1);
  map->end = TakeNumber(line, 16);
  map->permissions = TakeWord(line);
  if (map->permissions.size() != 4) return false;
  std::string_view offset = TakeWord(line);
  map->offset = TakeNumber(offset, 16);
  TakeWord(line);  // device
  std::string_view inode = TakeWord(line);
  map->inode = TakeNumber(inode, 10);
  while (line.starts_with(' ')) line.remove_prefix(1);
  map->path = line;
  return true;
}

uint64_t StatNumber(std::string_view stat, int field) {
  // The second field is the name in brackets, which may hold anything.
  size_t at = stat.rfind(')');
  for (int i = 2; i < field; ++i) {
    if (at == std::string_view::npos) return 0;
    at = stat.find(' ', at + 1);
  }
  if (at == std::string_view::npos) return 0;
  std::string_view rest = From(stat, at + 1);
  return TakeNumber(rest, 10);
}

bool StatusKb(std::string_view status, std::string_view name, uint64_t* kb) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return false;
  std::string_view value = From(status, at + name.size());
  while (value.starts_with('\t') || value.starts_with(' ')) value.remove_prefix(1);
  *kb = TakeNumber(value, 10);
  return true;
}

}  // namespace memtrace
