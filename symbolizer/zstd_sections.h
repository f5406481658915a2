// DecompressZstdSections(): an ELF file as if its debug sections were plain.
//
// Newer distributions compress debug information with zstd, which elfutils reads
// only since 0.189. Files without such sections are not copied.

#ifndef MEMTRACE_SYMBOLIZER_ZSTD_SECTIONS_H_
#define MEMTRACE_SYMBOLIZER_ZSTD_SECTIONS_H_

#include <libelf.h>

#include <string>

namespace memtrace::symbolizer {

// A copy of the file in which every section that zstd compressed is decompressed
// behind its old end; empty when there is none, or when one is damaged.
std::string DecompressZstdSections(Elf* elf);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ZSTD_SECTIONS_H_
