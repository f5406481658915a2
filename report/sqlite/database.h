// Database: a new SQLite file, and statements that fill it.
//
// An error stays: everything after it does nothing, and status() tells the first. So a writer
// looks once, at the end. One thread.

#ifndef MEMTRACE_REPORT_SQLITE_DATABASE_H_
#define MEMTRACE_REPORT_SQLITE_DATABASE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace memtrace::report::sqlite {

// The text as Insert::Text() writes it: valid UTF-8 without NUL. A name from a trace may be any
// bytes, but SQL's functions count on UTF-8, and stop at a NUL.
std::string Utf8(absl::string_view text);

class Database {
 public:
  // Makes a database in the empty file at `path`. Nothing is safe before Close(): a
  // crash leaves rubbish.
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const absl::Status& status() const { return status_; }
  void Execute(const char* sql);  // one or several statements without values
  // Finishes the file, and returns the status of everything so far.
  absl::Status Close();

 private:
  friend class Insert;
  void Fail(absl::string_view doing);

  const std::string path_;
  sqlite3* handle_ = nullptr;
  absl::Status status_;
};

// A row at a time: Insert("modules", 3) takes Number(..).Text(..).Null().Row().
class Insert {
 public:
  Insert(Database* database, absl::string_view table, int columns);
  ~Insert();
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;

  // SQLite has 63 bits; what is more becomes the largest it has.
  Insert& Number(uint64_t value);
  Insert& Signed(int64_t value);
  Insert& Real(double value);
  Insert& Text(absl::string_view text);       // as UTF-8: other bytes are replaced
  Insert& TextOrNull(absl::string_view text);  // NULL when empty
  Insert& NumberOrNull(uint64_t value);        // NULL when 0
  Insert& NumberIf(bool known, uint64_t value) { return known ? Number(value) : Null(); }
  Insert& Null();
  void Row();

 private:
  Database* const database_;
  sqlite3_stmt* statement_ = nullptr;
  const int columns_;
  int next_ = 1;
};

}  // namespace memtrace::report::sqlite

#endif  // MEMTRACE_REPORT_SQLITE_DATABASE_H_
