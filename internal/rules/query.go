package rules

import (
	"iter"
	"slices"
	"strings"
)

// QueryCondition is a condition on one parameter of the query. A request without HTTP fails every one, Absent too.
type QueryCondition struct {
	// Name is the parameter's name, decoded.
	Name     string
	Presence Presence
	// Values are compared byte for byte with the decoded value, with Presence Values only; without any the condition never
	// holds. A parameter without `=` has the empty value.
	Values []string
}

// holds decides the condition on an HTTP request. A parameter may come several times: with all, each value must be listed;
// without, one is enough.
func (c *QueryCondition) holds(req *Request, all bool) bool {
	there, listed := 0, 0
	for value := range req.query(c.Name) {
		there++
		if slices.Contains(c.Values, value) {
			listed++
		}
	}
	switch c.Presence {
	case Present:
		return there > 0
	case Absent:
		return there == 0
	}
	return listed > 0 && (!all || listed == there)
}

// query yields the decoded values of a parameter in their order.
func (r *Request) query(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		target, _, _ := strings.Cut(r.Path, "#")
		_, rest, more := strings.Cut(target, "?")
		for more {
			var pair string
			pair, rest, more = strings.Cut(rest, "&")
			key, value, _ := strings.Cut(pair, "=")
			if decodesTo(key, name) && !yield(decodeQuery(value)) {
				return
			}
		}
	}
}

// decodeQuery decodes a name or value once.
func decodeQuery(text string) string {
	if !strings.ContainsAny(text, "%+") {
		return text
	}
	decoded := make([]byte, 0, len(text))
	for text != "" {
		b, size := queryByte(text)
		decoded, text = append(decoded, b), text[size:]
	}
	return string(decoded)
}

// decodesTo compares without decoding more than it needs: a client may send very many names.
func decodesTo(text, want string) bool {
	for i := range len(want) {
		if text == "" {
			return false
		}
		b, size := queryByte(text)
		if b != want[i] {
			return false
		}
		text = text[size:]
	}
	return text == ""
}

// queryByte decodes the first byte of text and says how long it is there. What is no escape stays as it is: servers differ
// in what they make of it, and dropping it would let a parameter vanish from its rule.
func queryByte(text string) (b byte, size int) {
	switch text[0] {
	case '+':
		return ' ', 1
	case '%':
		if b, ok := unescape(text); ok {
			return b, 3
		}
	}
	return text[0], 1
}

// cookie yields the values of a cookie in their order. Clients separate cookies with semicolons, and Envoy may join the
// lines of the header with commas.
func (r *Request) cookie(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.Headers {
			if r.Headers[i].Name != cookieHeader {
				continue
			}
			for pair := range strings.FieldsFuncSeq(r.Headers[i].Value, func(c rune) bool { return c == ';' || c == ',' }) {
				key, value, ok := strings.Cut(pair, "=")
				if ok && strings.Trim(key, " \t") == name && !yield(strings.Trim(value, " \t")) {
					return
				}
			}
		}
	}
}

const cookieHeader = "cookie"

// only returns the value and how many there are; of several it is any.
func only(values iter.Seq[string]) (value string, count int) {
	for value = range values {
		count++
	}
	return value, count
}
