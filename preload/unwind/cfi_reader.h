// From a pc to its row of unwind rules: .eh_frame_hdr, .eh_frame, the CFA program.
//
//   FindFde   binary search in the table of .eh_frame_hdr (a scan of .eh_frame where
//             a linker wrote none; a look at those behind where the one found is of a
//             function without code), then the *end* of the FDE: the search alone
//             would give padding to the function before it
//   FindRow   runs the CFA program up to the pc
//
// It reads a CfiImage: the bytes of a loaded segment, or of a file that is not
// loaded. Every read stays inside the image, and inside the FDE it belongs to.
//
// Threads: any, in any state. No lock, no allocation, nothing kept between calls.

#ifndef MEMTRACE_PRELOAD_UNWIND_CFI_READER_H_
#define MEMTRACE_PRELOAD_UNWIND_CFI_READER_H_

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/unwind/byte_reader.h"

namespace memtrace::unwind {

struct CfiImage {
  const uint8_t* data = nullptr;  // bytes of the segment of .eh_frame, as they lie here
  uintptr_t address = 0;          // what the code calls the address of data[0]
  size_t size = 0;
  uintptr_t hdr = 0;              // address of .eh_frame_hdr
  // From there to the end of its segment, where that is another one: one writable input makes all
  // of .eh_frame writable. 0: it is inside this one.
  size_t hdr_bytes = 0;

  ByteReader HdrReader() const;
  // A reader from `at` to the end of the image; empty and failed when outside.
  ByteReader ReaderAt(uintptr_t at) const;
  uintptr_t AddressOf(const uint8_t* byte) const {
    return address + static_cast<size_t>(byte - data);
  }
};

// The image of a module of this process; false: it has no .eh_frame_hdr.
bool LiveImage(const dl_find_object& object, CfiImage* image);

enum class CfiStatus : uint8_t {
  kOk,
  kNoFde,        // no FDE covers the pc
  kMalformed,    // the bytes contradict themselves
  kUnsupported,  // well formed, but not for us
};

struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t ra_register = kRip;
  uint8_t fde_encoding = 0;
  bool has_augmentation_data = false;
  bool signal_frame = false;
  ByteReader program;
};

struct Fde {
  uintptr_t start = 0;  // the pcs [start, end)
  uintptr_t end = 0;
  Cie cie;
  ByteReader program;
};

enum class RuleKind : uint8_t {
  kUnspecified,    // CFI says nothing: by the ABI the value is unchanged, or lost
  kUndefined,
  kSame,
  kOffset,         // saved at CFA + value
  kValOffset,      // is CFA + value
  kRegister,       // is in register `value`
  kExpression,     // saved at the address the expression gives
  kValExpression,  // is what the expression gives
};

struct CfiRule {
  RuleKind kind = RuleKind::kUnspecified;
  // By kind. An expression is named by the offset in the image of its ULEB128
  // length, in unsigned.
  int32_t value = 0;
};

struct CfaRule {
  bool is_expression = false;
  uint8_t reg = kRsp;
  int64_t value = 0;  // offset, or the expression as in CfiRule
};

struct CfiRow {
  uintptr_t start = 0;  // the rules hold for the pcs [start, end)
  uintptr_t end = 0;
  uintptr_t fde_start = 0;
  uintptr_t fde_end = 0;
  uint8_t ra_register = kRip;
  bool signal_frame = false;
  CfaRule cfa;
  CfiRule registers[kRegisterCount];
};

CfiStatus FindFde(const CfiImage& image, uintptr_t pc, Fde* fde);
CfiStatus RunProgram(const CfiImage& image, const Fde& fde, uintptr_t pc, CfiRow* row);
CfiStatus FindRow(const CfiImage& image, uintptr_t pc, CfiRow* row);

// The bytes of an expression that a rule names.
ByteReader ExpressionBytes(const CfiImage& image, int64_t expression);

// How deep DW_CFA_remember_state may nest. Compilers use one level.
inline constexpr int kMaxRememberedStates = 4;

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_CFI_READER_H_
