/* A reader of JSON (RFC 8259).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { DEEPEST = 32 };

static void fail(clattn__json *json, const char *problem) {
    if (!json->problem) json->problem = problem;
}

/* The next character that is no white space; 0 at the end and after a problem. */
static char peek(clattn__json *json) {
    json->at += strspn(json->at, " \t\r\n");
    return json->problem ? 0 : *json->at;
}

static bool pass(clattn__json *json, char c) {
    if (peek(json) != c || c == 0) return false;
    json->at++;
    return true;
}

bool clattn__json_open(clattn__json *json, char bracket) {
    if (!pass(json, bracket)) {
        fail(json, bracket == '{' ? "an object is expected" : "an array is expected");
        return false;
    }
    return !pass(json, (char)(bracket + 2)); /* in ASCII, '{' and '}' are two apart, and so are '[' and ']' */
}

bool clattn__json_more(clattn__json *json, char bracket) {
    if (pass(json, ',')) return true;
    if (!pass(json, bracket)) fail(json, "a comma or the closing bracket is expected");
    return false;
}

/* ---- texts --------------------------------------------------------------------------------------------------------- */

/* What has room; `length` counts all. */
typedef struct sink {
    char *data;
    size_t size, length;
} sink;

static void put(sink *out, unsigned byte) {
    if (out->length + 1 < out->size) out->data[out->length] = (char)byte;
    out->length++;
}

static void put_utf8(sink *out, uint32_t code) {
    if (code < 0x80) {
        put(out, code);
        return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned first[] = {0, 0xc0, 0xe0, 0xf0};
    put(out, first[more] | code >> (6 * more));
    for (int n = more; n-- > 0;) put(out, 0x80 | (code >> (6 * n) & 0x3f));
}

/* Four hexadecimal digits. */
static uint32_t hex4(clattn__json *json) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t code = 0;
    for (int n = 0; n < 4; n++, json->at++) {
        const char *digit = *json->at ? strchr(digits, *json->at) : NULL;
        if (!digit) {
            fail(json, "\\u wants four hexadecimal digits");
            return 0;
        }
        code = code * 16 + (uint32_t)(digit - digits) % 16;
    }
    return code;
}

static bool is_half(uint32_t code, uint32_t first) {
    return code >= first && code < first + 0x400;
}

/* What follows a backslash. */
static void escape(clattn__json *json, sink *out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name = *json->at ? strchr(names, *json->at) : NULL;
    if (name) {
        put(out, (unsigned char)values[name - names]);
        json->at++;
        return;
    }
    if (*json->at != 'u') {
        fail(json, "there is no such escape");
        return;
    }
    json->at++;
    uint32_t code = hex4(json);
    if (is_half(code, 0xd800) && json->at[0] == '\\' && json->at[1] == 'u') {
        json->at += 2;
        const uint32_t low = hex4(json);
        if (is_half(low, 0xdc00)) code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code == 0 || is_half(code, 0xd800) || is_half(code, 0xdc00)) fail(json, "\\u names no character");
    if (!json->problem) put_utf8(out, code);
}

static void read_text(clattn__json *json, sink *out) {
    if (!pass(json, '"')) {
        fail(json, "a text is expected");
        return;
    }
    while (!json->problem && *json->at != '"') {
        const unsigned char c = (unsigned char)*json->at;
        if (c < ' ') {
            fail(json, c ? "a control character stands in a text" : "it ends within a text");
        } else {
            json->at++;
            if (c == '\\')
                escape(json, out);
            else
                put(out, c);
        }
    }
    if (!json->problem) json->at++;
}

/* The text, ended by a 0; whether it is whole. */
static bool take_text(clattn__json *json, char *text, size_t size) {
    sink out = {text, size, 0};
    read_text(json, &out);
    text[json->problem ? 0 : out.length < size ? out.length : size - 1] = 0;
    return out.length < size;
}

void clattn__json_name(clattn__json *json, char *name, size_t size) {
    if (!take_text(json, name, size)) name[0] = 0;
    if (!pass(json, ':')) fail(json, "a colon is expected");
}

void clattn__json_text(clattn__json *json, char *text, size_t size) {
    if (!take_text(json, text, size)) fail(json, "a text is too long");
}

/* ---- numbers: strtod would take what JSON does not, and ask the locale for the decimal point ------------------------- */

static int digits(clattn__json *json, double *value) {
    int count = 0;
    for (; *json->at >= '0' && *json->at <= '9'; json->at++, count++) *value = *value * 10 + (*json->at - '0');
    return count;
}

void clattn__json_number(clattn__json *json, double *number) {
    double value = 0, exponent = 0;
    int fraction = 0;
    const char first = peek(json);
    const bool negative = pass(json, '-');
    const bool zero = *json->at == '0';
    const int whole = digits(json, &value);
    if ((first != '-' && (first < '0' || first > '9')) || whole == 0 || (zero && whole > 1)) {
        fail(json, "a number is expected");
        return;
    }
    if (*json->at == '.') {
        json->at++;
        fraction = digits(json, &value);
        if (fraction == 0) fail(json, "digits are expected after a point");
    }
    if (*json->at == 'e' || *json->at == 'E') {
        json->at++;
        const bool below = *json->at == '-';
        if (below || *json->at == '+') json->at++;
        if (digits(json, &exponent) == 0) fail(json, "digits are expected in an exponent");
        if (below) exponent = -exponent;
    }
    value *= pow(10, exponent - fraction);
    if (!json->problem) *number = negative ? -value : value;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------ */

static bool pass_word(clattn__json *json) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++)
        if (strncmp(json->at, words[n], strlen(words[n])) == 0) {
            json->at += strlen(words[n]);
            return true;
        }
    return false;
}

static void skip(clattn__json *json, int depth) {
    char name[1];
    double number;
    const char first = peek(json);
    if (depth == DEEPEST) {
        fail(json, "it is nested too deeply");
    } else if (first == '{') {
        for (bool more = clattn__json_open(json, '{'); more; more = clattn__json_more(json, '}')) {
            clattn__json_name(json, name, sizeof name);
            skip(json, depth + 1);
        }
    } else if (first == '[') {
        for (bool more = clattn__json_open(json, '['); more; more = clattn__json_more(json, ']')) skip(json, depth + 1);
    } else if (first == '"') {
        take_text(json, name, sizeof name);
    } else if (!json->problem && !pass_word(json)) {
        clattn__json_number(json, &number);
        if (json->problem) json->problem = "a value is expected";
    }
}

void clattn__json_skip(clattn__json *json) {
    skip(json, 0);
}

bool clattn__json_end(clattn__json *json) {
    if (peek(json)) fail(json, "something follows the end");
    return !json->problem;
}
