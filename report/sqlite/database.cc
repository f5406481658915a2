#include "report/sqlite/database.h"

#include <sqlite3.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/words/escape.h"

namespace memtrace::report::sqlite {

std::string Utf8(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    char32_t code;
    const size_t bytes = words::DecodeUtf8(text, &code);
    if (bytes == 0 || code == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD
      text.remove_prefix(1);
    } else {
      out.append(text.data(), bytes);
      text.remove_prefix(bytes);
    }
  }
  return out;
}

Database::Database(const std::string& path) : path_(path) {
  if (sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                      nullptr) != SQLITE_OK) {
    Fail("open");
    return;
  }
  // Nobody else knows the file, and it is thrown away if it is not finished.
  Execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
          "PRAGMA foreign_keys=ON; BEGIN");
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::Fail(absl::string_view doing) {
  if (!status_.ok()) return;
  status_ = absl::UnavailableError(
      absl::StrCat("cannot ", doing, " ", path_, ": ",
                   handle_ == nullptr ? "no memory" : sqlite3_errmsg(handle_)));
}

void Database::Execute(const char* sql) {
  if (!status_.ok()) return;
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) Fail("write");
}

absl::Status Database::Close() {
  Execute("COMMIT; ANALYZE");
  if (status_.ok() && sqlite3_close(handle_) != SQLITE_OK) {
    Fail("write");
  } else if (status_.ok()) {
    handle_ = nullptr;
  }
  return status_;
}

Insert::Insert(Database* database, absl::string_view table, int columns)
    : database_(database), columns_(columns) {
  if (!database_->status().ok()) return;
  std::string sql = absl::StrCat("INSERT INTO ", table, " VALUES (");
  for (int i = 0; i < columns; ++i) sql += i == 0 ? "?" : ",?";
  sql += ")";
  if (sqlite3_prepare_v2(database_->handle_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
    database_->Fail("write");
  }
}

Insert::~Insert() { sqlite3_finalize(statement_); }

Insert& Insert::Number(uint64_t value) {
  return Signed(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
}

Insert& Insert::Signed(int64_t value) {
  sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}

Insert& Insert::Real(double value) {
  sqlite3_bind_double(statement_, next_++, value);
  return *this;
}

Insert& Insert::Text(absl::string_view text) {
  const std::string utf8 = Utf8(text);
  sqlite3_bind_text(statement_, next_++, utf8.data(), static_cast<int>(utf8.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

Insert& Insert::TextOrNull(absl::string_view text) { return text.empty() ? Null() : Text(text); }

Insert& Insert::NumberOrNull(uint64_t value) { return value == 0 ? Null() : Number(value); }

Insert& Insert::Null() {
  sqlite3_bind_null(statement_, next_++);
  return *this;
}

void Insert::Row() {
  if (!database_->status().ok()) return;
  if (next_ != columns_ + 1) {
    database_->status_ = absl::InternalError("a row without all of its columns");
    return;
  }
  next_ = 1;
  if (sqlite3_step(statement_) != SQLITE_DONE) database_->Fail("write");
  sqlite3_reset(statement_);
}

}  // namespace memtrace::report::sqlite
