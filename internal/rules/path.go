package rules

import (
	"bytes"
	"strings"
)

// CanonicalPath returns the one spelling under which a request's path is matched, keyed and shown, so that no other
// spelling of a path dodges its rule. Query and fragment are cut off, `\` counts as `/`, escapes are decoded once, the
// `;parameters` of segments are cut, empty and `.` segments dropped, `..` resolved (never above the root), and only the
// root ends in a slash. Case is kept. The canonical form of a canonical path is itself.
//
// Escapes of / \ ? # % ; and of bytes below 0x21 or above 0x7E stay, in upper case, since decoding them would change the
// path's structure; raw bytes of that range become escapes.
//
// ok is false for a path that does not begin with a slash (also the empty one and `*`) or has a % without two hex digits;
// path is then raw without its query.
func CanonicalPath(raw string) (path string, ok bool) {
	path = raw
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		path = raw[:i]
	}
	switch {
	case path == "" || !isSlash(path[0]):
		return path, false
	case isCanonical(path):
		return path, true
	}
	if canonical, ok := canonicalize(path); ok {
		return canonical, true
	}
	return path, false
}

// isCanonical spares the usual path a copy.
func isCanonical(path string) bool {
	if path[0] != '/' {
		return false
	}
	start := 1
	for i := 1; i < len(path); i++ {
		switch c := path[i]; {
		case c == '/':
			if isDropped(path[start:i]) {
				return false
			}
			start = i + 1
		case c == '%':
			if b, ok := unescape(path[i:]); !ok || !staysEscaped(b) || path[i:i+3] != strings.ToUpper(path[i:i+3]) {
				return false
			}
			i += 2
		case staysEscaped(c):
			return false
		}
	}
	return len(path) == 1 || !isDropped(path[start:])
}

func isDropped(segment string) bool { return segment == "" || segment == "." || segment == ".." }

// canonicalize rewrites a path that begins with a slash of either kind.
func canonicalize(path string) (string, bool) {
	out := make([]byte, 0, len(path)+16)
	for path != "" {
		start := len(out)
		var ok bool
		if out, path, ok = appendSegment(append(out, '/'), path[1:]); !ok {
			return "", false
		}
		switch string(out[start:]) {
		case "/", "/.":
			out = out[:start]
		case "/..":
			out = out[:max(0, bytes.LastIndexByte(out[:start], '/'))]
		}
	}
	if len(out) == 0 {
		return "/", true
	}
	return string(out), true
}

// appendSegment appends the canonical form of the segment that path begins with and returns the path after it: empty or
// beginning with a slash.
func appendSegment(out []byte, path string) (_ []byte, rest string, ok bool) {
	const hex = "0123456789ABCDEF"
	parameters := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		escaped := c == '%'
		switch {
		case isSlash(c):
			return out, path[i:], true
		case escaped:
			if c, ok = unescape(path[i:]); !ok {
				return out, "", false
			}
			i += 2
		case c == ';':
			parameters = true
		}
		switch {
		case parameters:
		case staysEscaped(c):
			out = append(out, '%', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out, "", true
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// staysEscaped reports whether a byte may stand in a canonical path only as an escape, if it is not a slash between
// segments.
func staysEscaped(c byte) bool {
	switch c {
	case '/', '\\', '?', '#', '%', ';':
		return true
	}
	return c < 0x21 || c > 0x7E
}

// unescape returns the byte that the escape at the head of text stands for.
func unescape(text string) (b byte, ok bool) {
	if len(text) < 3 {
		return 0, false
	}
	high, ok1 := unhex(text[1])
	low, ok2 := unhex(text[2])
	return high<<4 | low, ok1 && ok2
}

func unhex(c byte) (digit byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
