#include "tests/fuzz/valgrind_xml_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 1 << 16) memtrace::report::FuzzValgrindXml(data, size);
  return 0;
}
