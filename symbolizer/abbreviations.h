// Abbreviations: one table of .debug_abbrev, compiled for skipping.
//
// A DIE is a code and then values whose forms the table gives. To find the few
// DIEs that are functions all others must be stepped over, millions of them.
// So each abbreviation is compiled once: neighbouring values of fixed size
// become one Skip; the rest say how their length is found.
//
// For the tags we look into (subprogram, inlined_subroutine) the plain list of
// attributes is kept as well.

#ifndef MEMTRACE_SYMBOLIZER_ABBREVIATIONS_H_
#define MEMTRACE_SYMBOLIZER_ABBREVIATIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/byte_cursor.h"

namespace memtrace::symbolizer {

// The facts about a unit that decide the size of a value, besides its form.
struct UnitShape {
  uint16_t version = 0;
  uint8_t address_bytes = 0;
  uint8_t offset_bytes = 0;
  friend bool operator==(const UnitShape&, const UnitShape&) = default;
};

struct Abbreviation {
  enum class Step : uint8_t { kSkip, kLeb, kString, kBlock1, kBlock2, kBlock4, kBlockLeb,
                              kIndirect };
  struct Op {
    Step step;
    uint32_t bytes;  // of kSkip, and that follow the number of kLeb
  };
  struct Attribute {
    uint16_t name;
    uint16_t form;
    int64_t implicit_const;
  };
  uint16_t tag = 0;
  bool has_children = false;
  bool is_function = false;  // subprogram or inlined_subroutine
  std::vector<Op> ops;
  std::vector<Attribute> attributes;  // only when is_function
};

class Abbreviations {
 public:
  // Reads the table at the start of `table`; false when it is damaged, or has a
  // form we do not know.
  bool Read(std::string_view table, const UnitShape& shape);
  const Abbreviation* Find(uint64_t code) const;

 private:
  // Codes are 1, 2, 3, ... in practice; others go to the map.
  std::vector<Abbreviation> dense_;
  absl::flat_hash_map<uint64_t, Abbreviation> sparse_;
};

// The step over one value of `form`; false when the form is not known.
bool StepOfForm(uint64_t form, const UnitShape& shape, Abbreviation::Op* op);
// Steps over one value. False when it does not fit.
bool TakeStep(const Abbreviation::Op& op, const UnitShape& shape, ByteCursor* cursor);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ABBREVIATIONS_H_
