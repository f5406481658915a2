// libFuzzer target: everything that reads a trace (trace_entry.h).
//
//   cmake --preset asan && cmake --build build-asan --target trace_reader_fuzz
//   build-asan/tests/trace_reader_fuzz -max_len=65536 -timeout=10 new/ tests/fuzz/corpus
//
// Half of the mutations are made inside the payload of one block, so that blocks
// stay where they are; the entry makes the checksums right.

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "format/trace_format.h"
#include "report/trace/block_scanner.h"
#include "tests/fuzz/trace_entry.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using memtrace::format::BlockHeader;
using memtrace::format::FileHeader;

std::vector<size_t> BlocksOf(const uint8_t* data, size_t size) {
  std::vector<size_t> blocks;
  for (size_t at = sizeof(FileHeader); at + sizeof(BlockHeader) <= size;) {
    BlockHeader header;
    memcpy(&header, data + at, sizeof(header));
    const bool block = header.magic == memtrace::format::kBlockMagic &&
                       header.payload_bytes <= size - at - sizeof(header);
    if (block) blocks.push_back(at);
    at = block ? memtrace::report::AlignToBlock(at + sizeof(header) + header.payload_bytes)
               : at + memtrace::format::kBlockAlignment;
  }
  return blocks;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  const std::vector<size_t> blocks = BlocksOf(data, size);
  if (blocks.empty() || random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const size_t at = blocks[random() % blocks.size()];
  BlockHeader header;
  memcpy(&header, data + at, sizeof(header));
  const size_t begin = at + sizeof(header);
  const size_t end = std::min<size_t>(
      memtrace::report::AlignToBlock(begin + header.payload_bytes), size);
  const std::string tail(reinterpret_cast<const char*>(data + end), size - end);
  const size_t room = (max_size - begin - tail.size()) & ~size_t{63};
  if (begin + tail.size() >= max_size || room < 64) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<uint8_t> payload(room);
  size_t bytes = std::min<size_t>(header.payload_bytes, room);
  memcpy(payload.data(), data + begin, bytes);
  bytes = LLVMFuzzerMutate(payload.data(), bytes, room);
  const bool raw = header.codec == memtrace::format::Codec::kRaw;
  if (header.kind == memtrace::format::BlockKind::kEvents && raw) bytes &= ~size_t{7};
  header.payload_bytes = static_cast<uint32_t>(bytes);
  if (raw) header.content_bytes = header.payload_bytes;
  memcpy(data + at, &header, sizeof(header));
  memcpy(data + begin, payload.data(), bytes);
  const size_t aligned = memtrace::report::AlignToBlock(begin + bytes);
  memset(data + begin + bytes, 0, aligned - begin - bytes);
  memcpy(data + aligned, tail.data(), tail.size());
  return aligned + tail.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  memtrace::report::FuzzTrace(data, size);
  return 0;
}
