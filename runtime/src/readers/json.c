// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The part of JSON that weight files need, parsed in place: punctuation, strings, integers, and skipped values.
 * Strict: UTF-8 and escapes are validated, and unexpected text is an error that states its position. */
#include "readers/json.h"
#include "base/status.h"

#include <string.h>

static void skip_space(kiln_json_t *json) {
  while (json->next != json->end &&
         (*json->next == ' ' || *json->next == '\n' || *json->next == '\r' || *json->next == '\t'))
    ++json->next;
}

kiln_status_t kiln_json_fail(const kiln_json_t *json, const char *what) {
  size_t at = (size_t)(json->next - json->begin);
  if (json->next == json->end)
    return kiln_error_set(json->error, KILN_FILE_MALFORMED,
                          "%s: malformed JSON; expected %s, got its end at byte " KILN_SIZE, json->document, what, at);
  unsigned char got = (unsigned char)*json->next;
  if (got > ' ' && got < 0x7F)
    return kiln_error_set(json->error, KILN_FILE_MALFORMED,
                          "%s: malformed JSON; expected %s, got '%c' at byte " KILN_SIZE, json->document, what, got,
                          at);
  return kiln_error_set(json->error, KILN_FILE_MALFORMED,
                        "%s: malformed JSON; expected %s, got 0x%02x at byte " KILN_SIZE, json->document, what, got,
                        at);
}

bool kiln_json_accept(kiln_json_t *json, char wanted) {
  skip_space(json);
  if (json->next == json->end || *json->next != wanted)
    return false;
  ++json->next;
  return true;
}

kiln_status_t kiln_json_expect(kiln_json_t *json, char wanted, const char *what) {
  return kiln_json_accept(json, wanted) ? KILN_OK : kiln_json_fail(json, what);
}

bool kiln_json_at_end(kiln_json_t *json) {
  skip_space(json);
  return json->next == json->end;
}

kiln_status_t kiln_json_read_integer(kiln_json_t *json, const char *what, int64_t *value) {
  skip_space(json);
  const char *start = json->next;
  uint64_t sum = 0;
  for (; json->next != json->end && *json->next >= '0' && *json->next <= '9'; ++json->next) {
    unsigned digit = (unsigned)(*json->next - '0');
    bool leading_zero = json->next != start && sum == 0;
    if (leading_zero || sum > ((uint64_t)INT64_MAX - digit) / 10)
      return kiln_json_fail(json, what);
    sum = sum * 10 + digit;
  }
  if (json->next == start)
    return kiln_json_fail(json, what);
  *value = (int64_t)sum;
  return KILN_OK;
}

static bool is_surrogate(uint32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

/* Length of the UTF-8 sequence at text, 0 if it is invalid. */
static size_t utf8_length(const unsigned char *text, size_t available) {
  unsigned char lead = text[0];
  if (lead < 0x80)
    return 1;
  size_t length = lead >= 0xC0 && lead < 0xE0   ? 2
                  : lead >= 0xE0 && lead < 0xF0 ? 3
                  : lead >= 0xF0 && lead < 0xF8 ? 4
                                                : 0;
  if (length == 0 || length > available)
    return 0;
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((text[i] & 0xC0) != 0x80)
      return 0;
    code = code << 6 | (text[i] & 0x3Fu);
  }
  uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  return code < least || code > 0x10FFFF || is_surrogate(code) ? 0 : length;
}

static size_t utf8_encode(uint32_t code, char utf8[4]) {
  if (code < 0x80) {
    utf8[0] = (char)code;
    return 1;
  }
  size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i, code >>= 6)
    utf8[i] = (char)(0x80 | (code & 0x3F));
  utf8[0] = (char)((0xF00u >> length & 0xF0) | code);
  return length;
}

/* Reads four hexadecimal digits. */
static bool read_unit(kiln_json_t *json, uint32_t *unit) {
  if (json->end - json->next < 4)
    return false;
  *unit = 0;
  for (int i = 0; i < 4; ++i) {
    char digit = *json->next;
    char lower = (char)(digit | 0x20);
    if (digit >= '0' && digit <= '9')
      *unit = *unit << 4 | (uint32_t)(digit - '0');
    else if (lower >= 'a' && lower <= 'f')
      *unit = *unit << 4 | (uint32_t)(lower - 'a' + 10);
    else
      return false;
    ++json->next;
  }
  return true;
}

/* Decodes the escape after a backslash to utf8; returns its length, 0 if it is invalid. */
static size_t read_escape(kiln_json_t *json, char utf8[4]) {
  static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  if (json->next == json->end)
    return 0;
  char kind = *json->next;
  if (kind == 'u') {
    uint32_t code, low;
    ++json->next;
    if (!read_unit(json, &code))
      return 0;
    if (is_surrogate(code)) {
      if (code >= 0xDC00 || json->end - json->next < 2 || json->next[0] != '\\' || json->next[1] != 'u')
        return 0;
      json->next += 2;
      if (!read_unit(json, &low) || low < 0xDC00 || low > 0xDFFF)
        return 0;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return utf8_encode(code, utf8);
  }
  const char *found = kind ? strchr(escapes, kind) : NULL;
  if (!found)
    return 0;
  ++json->next;
  utf8[0] = meanings[found - escapes];
  return 1;
}

/* Reads one character of a string, escaped or not; returns its length in UTF-8, 0 if it is invalid. */
static size_t read_character(kiln_json_t *json, char utf8[4]) {
  if (json->next == json->end || (unsigned char)*json->next < 0x20)
    return 0;
  if (*json->next == '\\') {
    ++json->next;
    return read_escape(json, utf8);
  }
  size_t length = utf8_length((const unsigned char *)json->next, (size_t)(json->end - json->next));
  for (size_t i = 0; i < length; ++i)
    utf8[i] = *json->next++;
  return length;
}

kiln_status_t kiln_json_read_string(kiln_json_t *json, const char *what, kiln_json_string_t *string) {
  if (!kiln_json_accept(json, '"'))
    return kiln_json_fail(json, what);
  string->text = json->next;
  string->decoded_length = 0;
  while (json->next == json->end || *json->next != '"') {
    char utf8[4];
    size_t length = read_character(json, utf8);
    if (length == 0)
      return kiln_json_fail(json, "a well-formed string");
    string->decoded_length += length;
  }
  string->length = (size_t)(json->next - string->text);
  ++json->next;
  return KILN_OK;
}

bool kiln_json_string_equals(const kiln_json_string_t *string, const char *text) {
  kiln_json_t json = {string->text, string->text, string->text + string->length, NULL, NULL};
  size_t length = strlen(text);
  if (string->decoded_length != length)
    return false;
  while (json.next != json.end) {
    char utf8[4];
    size_t step = read_character(&json, utf8);
    if (memcmp(utf8, text, step) != 0)
      return false;
    text += step;
  }
  return true;
}

char *kiln_json_string_copy(const kiln_json_string_t *string, char *to) {
  kiln_json_t json = {string->text, string->text, string->text + string->length, NULL, NULL};
  while (json.next != json.end) {
    char utf8[4];
    size_t length = read_character(&json, utf8);
    memcpy(to, utf8, length);
    to += length;
  }
  return to;
}

const char *kiln_json_string_place(const kiln_json_string_t *string, char **room) {
  const char *placed = *room;
  if (kiln_json_string_room(string) == 0)
    return string->text;
  *room = kiln_json_string_copy(string, *room);
  return placed;
}

/* Skips at least one digit. */
static bool skip_digits(kiln_json_t *json) {
  const char *start = json->next;
  while (json->next != json->end && *json->next >= '0' && *json->next <= '9')
    ++json->next;
  return json->next != start;
}

static bool skip_one_of(kiln_json_t *json, char first, char second) {
  if (json->next == json->end || (*json->next != first && *json->next != second))
    return false;
  ++json->next;
  return true;
}

static bool skip_number(kiln_json_t *json) {
  skip_one_of(json, '-', '-');
  if (!skip_one_of(json, '0', '0') && !skip_digits(json))
    return false;
  if (skip_one_of(json, '.', '.') && !skip_digits(json))
    return false;
  if (!skip_one_of(json, 'e', 'E'))
    return true;
  skip_one_of(json, '+', '-');
  return skip_digits(json);
}

/* Skips a value that is neither an object nor an array. */
static kiln_status_t skip_scalar(kiln_json_t *json, const char *what) {
  static const char words[3][6] = {"true", "false", "null"};
  kiln_json_string_t text;
  if (json->next != json->end && *json->next == '"')
    return kiln_json_read_string(json, what, &text);
  for (int i = 0; i < 3; ++i) {
    size_t length = strlen(words[i]);
    if ((size_t)(json->end - json->next) >= length && memcmp(json->next, words[i], length) == 0) {
      json->next += length;
      return KILN_OK;
    }
  }
  return skip_number(json) ? KILN_OK : kiln_json_fail(json, what);
}

static kiln_status_t skip_name(kiln_json_t *json) {
  kiln_json_string_t name;
  kiln_status_t status = kiln_json_read_string(json, "a name", &name);
  return status ? status : kiln_json_expect(json, ':', "':' after a name");
}

kiln_status_t kiln_json_skip(kiln_json_t *json, const char *what) {
  uint64_t objects = 0; /* one bit per enclosing value, the innermost lowest: whether it is an object */
  int depth = 0;
  kiln_status_t status;
  for (;;) {
    const bool is_object = kiln_json_accept(json, '{');
    if (is_object || kiln_json_accept(json, '[')) {
      if (++depth > 64)
        return kiln_json_fail(json, "values that nest at most 64 deep");
      objects = objects << 1 | is_object;
      if (!kiln_json_accept(json, is_object ? '}' : ']')) {
        if (is_object && (status = skip_name(json)))
          return status;
        continue;
      }
      --depth;
      objects >>= 1;
    } else if ((status = skip_scalar(json, what))) {
      return status;
    }
    for (; depth > 0 && !kiln_json_accept(json, ','); --depth, objects >>= 1)
      if ((status = objects & 1 ? kiln_json_expect(json, '}', "',' or '}' after a value")
                                : kiln_json_expect(json, ']', "',' or ']' after a value")))
        return status;
    if (depth == 0)
      return KILN_OK;
    if (objects & 1 && (status = skip_name(json)))
      return status;
  }
}
