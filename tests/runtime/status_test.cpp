// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <gtest/gtest.h>
#include <set>

namespace {

TEST(Status, EveryCodeHasASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (int code = KILN_OK; code <= KILN_SESSION_NOT_BEGUN; ++code) {
    std::string text = kiln_status_text(static_cast<kiln_status_t>(code));
    EXPECT_GT(text.size(), 15u) << code;
    EXPECT_EQ(text.back(), '.') << code;
    EXPECT_TRUE(sentences.insert(text).second) << code << " repeats: " << text;
    EXPECT_EQ(text.find("not a status"), std::string::npos) << code;
  }
}

// A status is an int in C, so any value must be safe.
TEST(Status, UnknownCodesHaveText) {
  for (int code : {KILN_SESSION_NOT_BEGUN + 1, 31})
    EXPECT_STREQ(kiln_status_text(static_cast<kiln_status_t>(code)),
                 "not a status of Kiln; check that header and library belong together.");
}

TEST(Status, MessagesAreCutAndTerminated) {
  kiln_error_t error;
  std::memset(&error, 'x', sizeof error);
  std::string text(1000, 'a');
  EXPECT_EQ(kiln_error_set(&error, KILN_FILE_ERROR, "%s", text.c_str()), KILN_FILE_ERROR);
  EXPECT_EQ(error.status, KILN_FILE_ERROR);
  EXPECT_EQ(std::string(error.message), text.substr(0, sizeof error.message - 1));
  EXPECT_EQ(kiln_error_set(nullptr, KILN_FILE_ERROR, "unheard"), KILN_FILE_ERROR);
}

TEST(Status, ShapesAsText) {
  char text[KILN_SHAPE_TEXT_BYTES];
  const int64_t shape[KILN_MAX_RANK] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                                        INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  const int64_t small[] = {3, 0};
  EXPECT_STREQ(kiln_shape_text(text, 0, shape), "[]");
  EXPECT_STREQ(kiln_shape_text(text, 1, small), "[3]");
  EXPECT_STREQ(kiln_shape_text(text, 2, small), "[3, 0]");
  const std::string most = "9223372036854775807";
  std::string all;
  for (int i = 0; i < KILN_MAX_RANK; ++i)
    all += most + ", ";
  EXPECT_EQ(kiln_shape_text(text, KILN_MAX_RANK + 1, shape), "[" + all + "...]");
}

} // namespace
